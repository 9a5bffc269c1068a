"""Service step, the exchange: what every route has of a request, its wait for verdicts, and its JSON."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request
from fastapi.responses import JSONResponse

from farm.service.desk import Desk, Forbidden, require_class
from farm.service.requests import USUAL_CLASS
from farm.store.keys import Key, Scope
from farm.store.records import Item


class Json(JSONResponse):
    """JSON in ASCII: what a proof prints may hold what UTF-8 cannot."""

    def render(self, content: object) -> bytes:
        """Return the body."""
        return json.dumps(content, separators=(",", ":"), allow_nan=False).encode("ascii")


async def _desk(request: Request) -> Desk:
    desk: Desk = request.app.state.desk
    return desk


def _may(scope: Scope) -> Callable[[Request], Awaitable[Key]]:
    async def key(request: Request) -> Key:
        found: Key = request.state.key
        if scope not in found.scopes:
            raise Forbidden(f"the key {found.name} has not the scope {scope}; use another key")
        return found

    return key


TheDesk = Annotated[Desk, Depends(_desk)]
Submitter = Annotated[Key, Depends(_may(Scope.SUBMIT))]
Reader = Annotated[Key, Depends(_may(Scope.READ))]
Canceller = Annotated[Key, Depends(_may(Scope.CANCEL))]


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request under way that submits in the usual class, the desk that it goes to, and its key."""

    request: Request
    desk: Desk
    key: Key


async def _exchange(request: Request, desk: TheDesk, key: Submitter) -> Exchange:
    require_class(key, USUAL_CLASS)
    return Exchange(request, desk, key)


TheExchange = Annotated[Exchange, Depends(_exchange)]


async def wait(
    request: Request,
    desk: Desk,
    items: Sequence[Item],
    seconds: float,
    checks: Mapping[Item, int] | None = None,
) -> bool:
    """Wait for items, so many seconds at most; returns whether the client is still there."""
    if not items or seconds <= 0:
        return True
    waiter = desk.waiting(items, checks)
    everything, away = asyncio.ensure_future(waiter.all()), asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait((everything, away), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        return everything.done() or not away.done()
    finally:
        everything.cancel()
        away.cancel()
        desk.room.leave(waiter)


async def _gone(request: Request) -> None:
    """Return when the client has gone away."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
