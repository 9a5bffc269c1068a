"""The dependencies of the service's handlers: the backend, the caller's key, and the wait for verdicts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, HTTPException, Query, Request

from farm.errors import ServerDown
from farm.service.auth.local_token import LOCAL
from farm.service.auth.scopes import RequireScope
from farm.service.backend import Backend, require_class
from farm.service.requests import USUAL_CLASS, Wait
from farm.store.keys import Key, Scope
from farm.store.records import Item

#: The key of a client that waits is checked again after this time.
KEY_SECONDS = 2.0
#: A disconnection that has come in already is noticed within this time.
_MOMENT_SECONDS = 0.1
#: The answer to a client whose key was revoked while it waited.
REVOKED = "the key was revoked meanwhile; use another key"


async def _backend(request: Request) -> Backend:
    backend: Backend = request.app.state.backend
    return backend


TheBackend = Annotated[Backend, Depends(_backend)]
Submitter = Annotated[Key, Depends(RequireScope(Scope.SUBMIT))]
Reader = Annotated[Key, Depends(RequireScope(Scope.READ))]
Canceller = Annotated[Key, Depends(RequireScope(Scope.CANCEL))]
WaitSeconds = Annotated[Wait, Query()]


@dataclass(frozen=True, slots=True)
class Submission:
    """A drop-in's request, with the backend and with a key that may submit in the usual priority class."""

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
    """Wait for the verdicts of items, at most `seconds`; return whether the client is still connected.

    `checks` are the ids of the items' checks as far as they are known. Raises `HTTPException` with status 401
    when the key is revoked during the wait.
    """
    if not items or seconds <= 0:
        return True
    until = time.monotonic() + seconds
    waiter = backend.wait_for(items, checks)
    ends = asyncio.ensure_future(waiter.all()), asyncio.ensure_future(_disconnected(request))
    judged, gone = ends
    try:
        while (left := until - time.monotonic()) > 0:
            await asyncio.wait(ends, timeout=min(left, KEY_SECONDS), return_when=asyncio.FIRST_COMPLETED)
            if judged.done() or gone.done():
                break
            if await is_revoked(request):
                raise HTTPException(401, REVOKED, headers={"WWW-Authenticate": "Bearer"})
        if waiter.pending and not gone.done():  # the time is over, or the service ends: has the client gone?
            await asyncio.wait({gone}, timeout=_MOMENT_SECONDS)
        return not waiter.pending or not gone.done()
    finally:
        judged.cancel()
        gone.cancel()
        backend.waiters.remove(waiter)


async def is_revoked(request: Request) -> bool:
    """Return whether the key of a request was revoked; False while PostgreSQL does not answer."""
    if request.state.key is LOCAL:
        return False
    with suppress(ServerDown):
        return await request.state.key_again() is None
    return False


async def _disconnected(request: Request) -> None:
    """Return when the client has closed the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
