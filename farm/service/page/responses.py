"""The page's answers to browsers: HTML from templates, files, and strict security headers."""

from __future__ import annotations

import hashlib
from datetime import UTC
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import RedirectResponse, Response

from farm.service.auth.browser import ROOT
from farm.service.page.escaping import cut, shown
from farm.service.page.views import SIGNS, STATES
from farm.store.looking import LinePlace

#: Only the page's own files run, style or load, whatever text gets into the HTML.
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)
#: Referrer-Policy: with no-referrer, forms would not carry the origin by which foreign ones are refused.
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
_KINDS = {"page.css": "text/css; charset=utf-8", "page.js": "text/javascript; charset=utf-8"}
_YEAR = 365 * 86_400


def html(template: str, *, status: int = 200, **values: Any) -> Response:
    """Return a page rendered from a template."""
    text = _environment().get_template(template).render(**values)
    return Response(text, status, HEADERS, "text/html; charset=utf-8")


def to(address: str) -> Response:
    """Redirect the browser to another address, by GET."""
    return RedirectResponse(address, 303, HEADERS)


def program(source: bytes, name: str) -> Response:
    """Return a program as a download, which no browser renders."""
    disposition = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(source, 200, HEADERS | disposition, "text/plain; charset=utf-8")


def asset(name: str) -> Response | None:
    """Return a static file of the page, None if it has no file of this name."""
    if name not in _KINDS:
        return None
    headers = HEADERS | {"Cache-Control": f"public, max-age={_YEAR}, immutable"}
    return Response(_asset(name)[0], 200, headers, _KINDS[name])


def _address(name: str) -> str:
    """Return the address of a static file; a changed file gets another address."""
    return f"{ROOT}/assets/{name}?v={_asset(name)[1]}"


@cache
def _asset(name: str) -> tuple[bytes, str]:
    content = files("farm.service.page").joinpath("static", name).read_bytes()
    return content, hashlib.sha256(content).hexdigest()[:12]


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("farm.service.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # Every value of a template passes through this function, so no template can forget to escape.
        finalize=_shown,
    )
    environment.globals.update(root=ROOT, signs=SIGNS, states=STATES, asset=_address, utc=UTC)
    environment.filters.update(cut=lambda text, most: _ending(text, most), number=_number, at=_at)
    return environment


def _shown(value: object) -> object:
    return shown(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _ending(text: str, most: int) -> str:
    head, left_out = cut(text, most)
    return head + "…" if left_out else head


def _number(number: int) -> str:
    """Return a number with narrow spaces between its thousands."""
    return f"{number:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def _at(place: LinePlace) -> str:
    return f"{place.manifest}:{place.line}"
