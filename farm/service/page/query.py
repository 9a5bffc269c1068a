"""What a request asks for: the words of its address, and the fields of its form."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from urllib.parse import parse_qsl, urlencode

from starlette.requests import ClientDisconnect, Request

from farm.errors import Forbidden, UnknownRun
from farm.service.auth.sessions import Session
from farm.service.page import views
from farm.store.looking import START, Place, Wanted

#: Seconds in which a form arrives: anybody may send one to sign in.
FORM_SECONDS = 10.0
_LONGEST_FORM = 16_384
_LONGEST_WORD = 300


async def require_own(request: Request, session: Session) -> None:
    """Raise `Forbidden` unless the form was given to this session."""
    if not session.allows((await form(request)).get("csrf", "")):
        raise Forbidden("the form is not one that this page gave; go back, load the page anew, and try again")


async def form(request: Request) -> dict[str, str]:
    """Return the fields of a form, which is short; raises `Forbidden` for any other."""
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
    """Return what an address says by a name, "" where it says nothing."""
    return request.query_params.get(name, "")[:_LONGEST_WORD]


def wanted(request: Request) -> Wanted:
    """Return which lines are asked for."""
    return Wanted(**{name: word(request, name) for name in ("state", "reason", "name", "group")})


def after(request: Request) -> Place:
    """Return behind which line the page begins."""
    return views.place(word(request, "after")) or START


def hour(request: Request) -> datetime:
    """Return the hour that is asked for, as in ``2026-01-31T14``; raises `UnknownRun` for anything else."""
    try:
        return datetime.strptime(word(request, "hour"), "%Y-%m-%dT%H").replace(tzinfo=UTC)
    except ValueError as error:
        raise UnknownRun("there is no such hour") from error


def place(request: Request) -> Place:
    """Return which line is asked for; raises `UnknownRun` for a number that none has."""
    found = views.place("{manifest}:{line}".format(**request.path_params))
    if found is None:
        raise UnknownRun("the run has no such line")
    return found


def following(request: Request, last: Place | None) -> str:
    """Return the address of the page after this one, "" where there is none."""
    if last is None:
        return ""
    asked = {name: value for name, value in request.query_params.items() if value}
    asked["after"] = f"{last.manifest}:{last.line}"
    return f"{request.url.path}?{urlencode(asked, errors='replace')}"


def first(request: Request) -> str:
    """Return the address of the first page."""
    asked = {name: value for name, value in request.query_params.items() if value and name != "after"}
    return f"{request.url.path}?{urlencode(asked, errors='replace')}"
