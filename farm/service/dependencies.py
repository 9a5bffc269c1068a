"""Service step, the submission: what every route has of a request, its wait for verdicts, and its JSON."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, HTTPException, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from farm.errors import ServerDown
from farm.service.auth.local_token import LOCAL
from farm.service.auth.scopes import RequireScope
from farm.service.backend import Backend, require_class
from farm.service.requests import USUAL_CLASS
from farm.store.keys import Key, Scope
from farm.store.records import Item

#: So often it is looked whether the key of a client that waits is still valid.
KEY_SECONDS = 2.0
#: What a client is told whose key was revoked while it waited.
REVOKED = "the key was revoked meanwhile; use another key"


class Problem(BaseModel):
    """Why a request was not carried out, and what to do.

    `batch` is one that was stored all the same; `items` are the places, from 0, of the items at fault;
    `most_items` is how many items the key may have unfinished.
    """

    detail: str
    batch: str | None = None
    items: list[int] | None = None
    most_items: int | None = None


class Json(JSONResponse):
    """JSON in ASCII: what a proof prints may hold what UTF-8 cannot."""

    def render(self, content: object) -> bytes:
        """Return the body."""
        return json.dumps(content, separators=(",", ":"), allow_nan=False).encode("ascii")


async def _backend(request: Request) -> Backend:
    backend: Backend = request.app.state.backend
    return backend


TheBackend = Annotated[Backend, Depends(_backend)]
Submitter = Annotated[Key, Depends(RequireScope(Scope.SUBMIT))]
Reader = Annotated[Key, Depends(RequireScope(Scope.READ))]
Canceller = Annotated[Key, Depends(RequireScope(Scope.CANCEL))]


@dataclass(frozen=True, slots=True)
class Submission:
    """A request under way that submits in the usual class, the backend that it goes to, and its key."""

    request: Request
    backend: Backend
    key: Key


async def _submission(request: Request, backend: TheBackend, key: Submitter) -> Submission:
    require_class(key, USUAL_CLASS)
    return Submission(request, backend, key)


TheSubmission = Annotated[Submission, Depends(_submission)]


async def wait(
    request: Request,
    backend: Backend,
    items: Sequence[Item],
    seconds: float,
    checks: Mapping[Item, int] | None = None,
) -> bool:
    """Wait for items, so many seconds at most; returns whether the client is still there.

    Raises `HTTPException` with status 401 when the key is revoked meanwhile.
    """
    if not items or seconds <= 0:
        return True
    until = time.monotonic() + seconds
    waiter = backend.wait_for(items, checks)
    ends = asyncio.ensure_future(waiter.all()), asyncio.ensure_future(_gone(request))
    everything, away = ends
    try:
        while (left := until - time.monotonic()) > 0:
            await asyncio.wait(ends, timeout=min(left, KEY_SECONDS), return_when=asyncio.FIRST_COMPLETED)
            if everything.done() or away.done():
                break
            if await is_revoked(request):
                raise HTTPException(401, REVOKED, headers={"WWW-Authenticate": "Bearer"})
        return everything.done() or not away.done()
    finally:
        everything.cancel()
        away.cancel()
        backend.waiters.remove(waiter)


async def is_revoked(request: Request) -> bool:
    """Return whether the key of a request has been revoked; while nobody can know, it has not."""
    if request.state.key is LOCAL:
        return False
    with suppress(ServerDown):
        return await request.state.key_again() is None
    return False


async def _gone(request: Request) -> None:
    """Return when the client has gone away."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
