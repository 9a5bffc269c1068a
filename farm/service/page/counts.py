"""How far runs are, for many pages at once: a count costs PostgreSQL work, so it is used for a while."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from farm.store.queries import Tally

#: A count that took a second is used for so many: whoever asks, counting takes this share of one thread.
_SHARE = 20.0
_LEAST_SECONDS = 0.5
#: So many runs are counted at once, so that the API's calls find free threads.
_AT_ONCE = 2
#: Runs whose counts are kept.
_MOST = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class _Counted:
    tally: Tally
    until: float


class Counts:
    """The counts of runs, each by `count`, as fresh as they can be had cheaply; for one event loop."""

    def __init__(
        self, count: Callable[[str], Awaitable[Tally]], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._count, self._clock = count, clock
        self._known: dict[str, _Counted] = {}
        self._under_way: dict[str, asyncio.Task[Tally]] = {}
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def of(self, run_id: str) -> Tally:
        """Return how far a run is; raises `ServerDown`."""
        known = self._fresh(run_id)
        return known if known is not None else await asyncio.shield(self._begun(run_id))

    async def some(self, run_ids: Sequence[str], *, seconds: float) -> dict[str, Tally]:
        """Return how far those runs are that could be counted in so many seconds; the others go on."""
        found = {run_id: known for run_id in run_ids if (known := self._fresh(run_id)) is not None}
        tasks = {self._begun(run_id): run_id for run_id in run_ids if run_id not in found}
        if tasks:
            done, _ = await asyncio.wait(tasks, timeout=seconds)
            found |= {tasks[task]: task.result() for task in done}
        return found

    def forget(self, run_id: str) -> None:
        """Count a run anew: something has changed it."""
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
            task.exception()  # whoever waits has it; nobody may wait

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
