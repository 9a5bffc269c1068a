"""The routes of the page, and the sign-in and sign-out of browsers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from farm.errors import FarmError, Forbidden, ServerDown, UnknownRun
from farm.service.auth.browser import ROOT, BrowserAuth, Viewer, cookie, way
from farm.service.auth.origins import is_from_elsewhere
from farm.service.auth.sessions import Session
from farm.service.backend import Backend
from farm.service.page import query
from farm.service.page.responses import asset, html, to
from farm.service.page.site import Site
from farm.store.keys import Scope

_Page = Callable[[Request, Viewer], Awaitable[Response]]


def page(backend: Callable[[], Backend], schema: Callable[[], Mapping[str, object]]) -> Starlette:
    """Return the application below `ROOT`, which expects `AuthMiddleware` in front.

    `schema` returns the OpenAPI document of the service, which the page shows too.
    """
    site = Site(backend, schema)
    routes = [
        Route("/sign-in", _ask_in),
        Route("/sign-in", _sign_in, methods=["POST"]),
        Route("/enter", _enter),
        Route("/assets/{name}", _asset),
        Route("/sign-out", _to_viewers(_sign_out), methods=["POST"]),
        Route("/", _to_viewers(site.runs)),
        Route("/runs/{run}", _to_viewers(site.run)),
        Route("/runs/{run}/problems", _to_viewers(site.problems)),
        Route("/runs/{run}/cancel", _to_viewers(site.cancel), methods=["POST"]),
        Route("/runs/{run}/{manifest}/{line}", _to_viewers(site.line)),
        Route("/runs/{run}/{manifest}/{line}/program", _to_viewers(site.program)),
        Route("/checks", _to_viewers(site.checks)),
        Route("/compare", _to_viewers(site.compare)),
        Route("/docs", _to_viewers(site.docs)),
    ]
    handlers = {HTTPException: _no_such, FarmError: _failed}
    return Starlette(routes=routes, exception_handlers=handlers)  # type: ignore[arg-type]


def _to_viewers(show: _Page) -> Callable[[Request], Awaitable[Response]]:
    """Return a handler that shows a page to a signed-in viewer, and redirects others to the sign-in.

    The handler raises `Forbidden` for a key that may not read.
    """

    async def answer(request: Request) -> Response:
        if is_from_elsewhere(request.method, request.headers.raw):
            return _from_elsewhere(request)
        viewer = await _browsers(request).viewer(request.headers.getlist("cookie"), host=_host(request))
        if viewer is None:
            back = f"?next={quote(_own_address(request), safe='')}" if request.method == "GET" else ""
            return to(f"{ROOT}/sign-in{back}")
        viewer.require(Scope.READ)
        return await show(request, viewer)

    return answer


async def _ask_in(request: Request) -> Response:
    """Show the sign-in form."""
    if is_from_elsewhere(request.method, request.headers.raw):
        return _from_elsewhere(request)
    return html("sign_in.html", viewer=None, problem="", next=way(query.word(request, "next")))


async def _sign_in(request: Request) -> Response:
    """Sign a browser in with a token. `AuthMiddleware` has verified that the form is this page's own."""
    form = await query.form(request)
    browsers, leads_to = _browsers(request), way(form.get("next", ""))
    token = form.get("token", "").strip()
    key = await browsers.key(token) if token else None
    if key is None:
        problem = "This is no valid token. A key that was revoked opens nothing."
        return html("sign_in.html", status=401, viewer=None, problem=problem, next=leads_to)
    if Scope.READ not in key.scopes:
        problem = f"The key {key.name} lacks the scope read, so there is nothing to show it."
        return html("sign_in.html", status=403, viewer=None, problem=problem, next=leads_to)
    return _signed_in(request, token, leads_to)


async def _enter(request: Request) -> Response:
    """Sign a browser in by the one-time link that `farm serve` printed."""
    if is_from_elsewhere(request.method, request.headers.raw):
        return _from_elsewhere(request)
    is_looked_up = request.method == "GET" and "sec-purpose" not in request.headers
    token = _browsers(request).sessions.redeem(query.word(request, "code")) if is_looked_up else None
    if token is None:
        problem = "This link was used already, or is too old. Sign in with the token."
        return html("sign_in.html", status=401, viewer=None, problem=problem, next=f"{ROOT}/")
    return _signed_in(request, token, f"{ROOT}/")


async def _sign_out(request: Request, viewer: Viewer) -> Response:
    """End the browser's session."""
    await query.require_own(request, viewer.session)
    _browsers(request).sessions.end(viewer.session)
    answer = to(f"{ROOT}/sign-in")
    _set_cookie(answer, request, None)
    return answer


def _from_elsewhere(request: Request) -> Response:
    """Show a link of this page's own, with which the browser sends its cookie."""
    return html("elsewhere.html", viewer=None, address=_own_address(request))


def _own_address(request: Request) -> str:
    words = request.url.query
    return f"{request.url.path}?{words}" if words else request.url.path


def _signed_in(request: Request, token: str, leads_to: str) -> Response:
    browsers = _browsers(request)
    if before := browsers.session(request.headers.getlist("cookie"), host=_host(request)):
        browsers.sessions.end(before)
    answer = to(leads_to)
    _set_cookie(answer, request, browsers.sessions.begin(token))
    return answer


def _set_cookie(answer: Response, request: Request, session: Session | None) -> None:
    # A proxy in front may have terminated TLS; `AuthMiddleware` has verified the origin.
    is_secure = request.url.scheme == "https" or request.headers.get("origin", "").startswith("https:")
    answer.headers.append("Set-Cookie", cookie(session, host=_host(request), is_secure=is_secure))


def _browsers(request: Request) -> BrowserAuth:
    browsers: BrowserAuth = request.state.browsers
    return browsers


def _host(request: Request) -> str:
    return request.headers["host"].lower()


async def _asset(request: Request) -> Response:
    found = asset(request.path_params["name"])
    if found is None:
        raise HTTPException(404)
    return found


async def _no_such(_request: Request, error: HTTPException) -> Response:
    words = "There is no such page." if error.status_code == 404 else "This cannot be asked so."
    return html("failed.html", status=error.status_code, viewer=None, words=words)


async def _failed(_request: Request, error: FarmError) -> Response:
    kinds = ((ServerDown, 503), (UnknownRun, 404), (Forbidden, 403))
    status = next((status for kind, status in kinds if isinstance(error, kind)), 500)
    words = str(error)
    return html("failed.html", status=status, viewer=None, words=words[:1].upper() + words[1:] + ".")
