"""Steps of sessions and searches count for their keys in PostgreSQL while this service does them."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Protocol, TypeVar

from farm.connections import Connections
from farm.errors import ServerDown
from farm.store import limits
from farm.store.keys import Key

_T = TypeVar("_T")

#: How often a running step is renewed: more than once in the time after which it counts no more.
_RENEW_SECONDS = limits.STEP_SECONDS / 3


class Do(Protocol):
    """Runs a step in a thread that may query PostgreSQL."""

    def __call__(self, step: Callable[[], _T], /) -> Awaitable[_T]:
        """Return the step's result."""
        ...


class KeyUses:
    """The use of keys with limits. A step of a service that is killed counts no more after a while."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def require_room(self, key: Key, proofs: int) -> None:
        """Raise `OverLimit` if a submit of these proofs would; counts nothing."""
        limits.require_room(self._connections.engine, key, proofs)

    @asynccontextmanager
    async def step(self, key: Key, do: Do) -> AsyncIterator[None]:
        """Count one proof of a key inside the block; raises `OverLimit`."""
        if not limits.has_limit(key):
            yield
            return
        name, engine = f"step {secrets.token_hex(16)}", self._connections.engine
        await do(lambda: limits.begin_step(engine, key, name))
        renewing = asyncio.get_running_loop().create_task(self._renew(name, do))
        try:
            yield
        finally:
            renewing.cancel()
            with suppress(ServerDown):  # it counts no more after a while
                await do(lambda: limits.end_step(engine, name))

    async def _renew(self, name: str, do: Do) -> None:
        engine = self._connections.engine
        while True:
            await asyncio.sleep(_RENEW_SECONDS)
            with suppress(ServerDown):
                await do(lambda: limits.renew_step(engine, name))
