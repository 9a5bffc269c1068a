"""The parameters of a page's request: those of its address, and the fields of its form."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from urllib.parse import parse_qsl, urlencode

from starlette.requests import ClientDisconnect, Request

from farm.errors import Forbidden, UnknownRun
from farm.service.auth.sessions import Session
from farm.service.page import views
from farm.store.looking import START, LineFilter, LinePlace

#: A form must arrive within this time: the sign-in takes forms without a token.
FORM_SECONDS = 10.0
_LONGEST_FORM = 16_384
_LONGEST_WORD = 300


async def require_own(request: Request, session: Session) -> None:
    """Raise `Forbidden` unless the form comes from this session."""
    if not session.allows((await form(request)).get("csrf", "")):
        raise Forbidden("the form is not one that this page gave; go back, reload the page, and try again")


async def form(request: Request) -> dict[str, str]:
    """Return the fields of a short form; raises `Forbidden` for a longer, late or broken one."""
    body = b""
    try:
        async with asyncio.timeout(FORM_SECONDS):
            async for piece in request.stream():
                body += piece
                if len(body) > _LONGEST_FORM:
                    raise Forbidden("the form is too long")
    except (ClientDisconnect, TimeoutError) as error:
        raise Forbidden("the form did not arrive; send it again") from error
    try:
        return dict(parse_qsl(body.decode("latin-1"), max_num_fields=20, errors="replace"))
    except ValueError as error:
        raise Forbidden("the form has too many fields") from error


def word(request: Request, name: str) -> str:
    """Return a parameter of the address, "" if it is absent."""
    return request.query_params.get(name, "")[:_LONGEST_WORD]


def wanted(request: Request) -> LineFilter:
    """Return the filter of the lines."""
    return LineFilter(**{name: word(request, name) for name in ("state", "reason", "name", "group")})


def after(request: Request) -> LinePlace:
    """Return the line after which the page begins."""
    return views.place(word(request, "after")) or START


def hour(request: Request) -> datetime:
    """Return the parameter `hour`, such as ``2026-01-31T14``; raises `UnknownRun` for any other text."""
    try:
        return datetime.strptime(word(request, "hour"), "%Y-%m-%dT%H").replace(tzinfo=UTC)
    except ValueError as error:
        raise UnknownRun("there is no such hour") from error


def place(request: Request) -> LinePlace:
    """Return the line in the address; raises `UnknownRun` for a number that no line can have."""
    found = views.place("{manifest}:{line}".format(**request.path_params))
    if found is None:
        raise UnknownRun("the run has no such line")
    return found


def following(request: Request, last: LinePlace | None) -> str:
    """Return the address of the next page, "" if this is the last."""
    return "" if last is None else _address(request, after=f"{last.manifest}:{last.line}")


def first(request: Request) -> str:
    """Return the address of the first page."""
    return _address(request, after="")


def _address(request: Request, **changed: str) -> str:
    parameters = {name: value for name, value in {**request.query_params, **changed}.items() if value}
    return f"{request.url.path}?{urlencode(parameters, errors='replace')}"
