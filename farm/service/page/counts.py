"""The progress of runs, for all open pages: PostgreSQL counts slowly, so counts are cached for a while."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from farm.store.queries import Tally

#: A count is cached for this many times its duration, so counting takes at most 1/20 of one thread.
_SHARE = 20.0
_LEAST_SECONDS = 0.5
#: Runs that are counted at once; the other threads stay free for API calls.
_AT_ONCE = 2
#: Runs in the cache.
_MOST = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class _Counted:
    tally: Tally
    until: float


class Counts:
    """A cache of the counts that `count` returns for a run; for one event loop."""

    def __init__(
        self, count: Callable[[str], Awaitable[Tally]], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._count, self._clock = count, clock
        self._known: dict[str, _Counted] = {}
        self._under_way: dict[str, asyncio.Task[Tally]] = {}
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def of(self, run_id: str) -> Tally:
        """Return the tally of a run; raises `ServerDown`."""
        known = self._fresh(run_id)
        return known if known is not None else await asyncio.shield(self._begun(run_id))

    async def some(self, run_ids: Sequence[str], *, seconds: float) -> dict[str, Tally]:
        """Return the tallies that are ready within `seconds`; the other counts continue."""
        found = {run_id: known for run_id in run_ids if (known := self._fresh(run_id)) is not None}
        tasks = {self._begun(run_id): run_id for run_id in run_ids if run_id not in found}
        if tasks:
            done, _ = await asyncio.wait(tasks, timeout=seconds)
            found |= {tasks[task]: task.result() for task in done}
        return found

    def forget(self, run_id: str) -> None:
        """Drop the count of a run that was changed."""
        self._known.pop(run_id, None)

    def _fresh(self, run_id: str) -> Tally | None:
        known = self._known.get(run_id)
        return known.tally if known is not None and self._clock() < known.until else None

    def _begun(self, run_id: str) -> asyncio.Task[Tally]:
        if run_id not in self._under_way:
            task = asyncio.get_running_loop().create_task(self._counted(run_id))
            self._under_way[run_id] = task
            task.add_done_callback(lambda task: self._ended(run_id, task))
        return self._under_way[run_id]

    def _ended(self, run_id: str, task: asyncio.Task[Tally]) -> None:
        del self._under_way[run_id]
        if not task.cancelled():
            task.exception()  # fetched, so that asyncio does not warn about an error without a reader

    async def _counted(self, run_id: str) -> Tally:
        async with self._slots:
            begun = self._clock()
            tally = await self._count(run_id)
            now = self._clock()
        self._known.pop(run_id, None)
        while len(self._known) >= _MOST:
            del self._known[next(iter(self._known))]
        until = now + max(_LEAST_SECONDS, _SHARE * (now - begun))
        self._known[run_id] = _Counted(tally=tally, until=until)
        return tally
