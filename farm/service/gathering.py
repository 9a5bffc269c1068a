"""Gathers requests that arrive while others of their kind are being stored, and stores them together next.

A transaction and a call of workers for each single proof would cost more than the rest of its bookkeeping. A
request that finds no other at work is stored at once, so gathering delays nothing.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Generic, TypeVar

from farm.errors import ServerDown

#: Requests that are stored together.
MOST = 128

_A = TypeVar("_A")
_B = TypeVar("_B")


class Gathering(Generic[_A, _B]):
    """Stores requests of one kind together, one transaction after the other; for one event loop."""

    def __init__(self, store: Callable[[Sequence[_A]], Awaitable[Sequence[_B | Exception]]]) -> None:
        """Have `store` return for each request its answer, or why it alone was refused."""
        self._store = store
        self._waiting: dict[Hashable, list[tuple[_A, asyncio.Future[_B]]]] = defaultdict(list)
        self._at_work: dict[Hashable, asyncio.Task[None]] = {}

    async def add(self, kind: Hashable, request: _A) -> _B:
        """Store a request, and return its answer or raise why there is none."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[_B] = loop.create_future()
        self._waiting[kind].append((request, answer))
        if kind not in self._at_work:
            self._at_work[kind] = loop.create_task(self._work(kind))
        return await answer

    async def _work(self, kind: Hashable) -> None:
        while some := self._waiting[kind][:MOST]:
            del self._waiting[kind][:MOST]
            for (_, answer), outcome in zip(
                some, await self._outcomes([each for each, _ in some]), strict=True
            ):
                _settle(answer, outcome)
        del self._waiting[kind], self._at_work[kind]

    async def _outcomes(self, requests: Sequence[_A]) -> Sequence[_B | Exception]:
        """Store requests together, or each by itself where the fault of one of them keeps all out."""
        try:
            return await self._store(requests)
        except ServerDown as error:
            return [error] * len(requests)
        except Exception as error:  # noqa: BLE001 # it is raised for the request whose fault it is
            if len(requests) == 1:
                return [error]
        return [(await self._outcomes([each]))[0] for each in requests]


def _settle(answer: asyncio.Future[_B], outcome: _B | Exception) -> None:
    if answer.done():  # its client has gone; the request stays stored
        return
    if isinstance(outcome, Exception):
        answer.set_exception(outcome)
    else:
        answer.set_result(outcome)
