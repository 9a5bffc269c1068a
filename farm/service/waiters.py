"""The requests of this process that wait for verdicts, and one task that polls PostgreSQL for all of them.

Workers publish over Redis the ids of checks that they have judged. A message only causes a query: PostgreSQL
decides whether an item is settled, for all waiters at once. So a lost message costs a second.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress

from farm.errors import ServerDown
from farm.log import logger
from farm.pauses import pause_after
from farm.store.queries import Waited
from farm.store.records import Item

#: Queries the state of items, and the checks that they wait for.
Ask = Callable[[Sequence[Item]], Awaitable[dict[Item, Waited]]]

#: All awaited items are polled after this time, whether or not a message came.
POLL_SECONDS = 1.0
#: After such a poll the task pauses for at least this many times its duration.
_PAUSES = 10.0
#: Items of one query.
_TOGETHER = 5000

_log = logger(__name__)


class Waiter:
    """One request's wait for its items; made by `Waiters.add`."""

    def __init__(self, items: Collection[Item]) -> None:
        self.pending = set(items)
        self._settled: list[Item] = []
        self._changed = asyncio.Event()
        self._is_released = False

    def release(self) -> None:
        """End the wait although items are pending."""
        self._is_released = True
        self._changed.set()

    def settle(self, item: Item) -> None:
        """Mark an item as settled."""
        if item in self.pending:
            self.pending.remove(item)
            self._settled.append(item)
            self._changed.set()

    async def some(self) -> list[Item]:
        """Wait until more items are settled and return them; [] after the last one, or after `release`."""
        while self.pending and not self._settled and not self._is_released:
            self._changed.clear()
            await self._changed.wait()
        settled, self._settled = self._settled, []
        return settled

    async def all(self) -> None:
        """Wait until all items are settled."""
        while self.pending and not self._is_released:
            await self.some()


class Waiters:
    """All waits of this process; only `heard` may be called from other threads than the event loop's."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._loop = asyncio.get_running_loop()
        self._waiters: dict[Item, set[Waiter]] = defaultdict(set)
        self._check_of: dict[Item, int] = {}
        self._items_of: dict[int, set[Item]] = defaultdict(set)
        self._doubtful: set[Item] = set()
        self._woken = asyncio.Event()
        self._is_open = True
        self._task = self._loop.create_task(self._poll_for_ever())

    def add(self, items: Collection[Item], checks: Mapping[Item, int]) -> Waiter:
        """Return a wait for these items, to be ended by `remove`; `checks` has known ids of checks."""
        waiter = Waiter(items)
        if not self._is_open:
            waiter.release()
        for item in waiter.pending:
            self._waiters[item].add(waiter)
            if item in checks:
                self._expect(item, checks[item])
        # Any of them may have been settled before this call, so poll them once; then messages suffice.
        self._doubtful |= waiter.pending
        self._woken.set()
        return waiter

    def remove(self, waiter: Waiter) -> None:
        """End a wait."""
        for item in waiter.pending:
            self._forget(item, waiter)
        waiter.pending.clear()

    def release(self) -> None:
        """End all waits, and each later one at once."""
        self._is_open = False
        for waiter in set().union(*self._waiters.values()):
            waiter.release()

    def heard(self, checks: Collection[int]) -> None:
        """Take the ids of judged checks, in any thread; an empty collection means that messages were lost."""
        with suppress(RuntimeError):  # the loop has ended, and all waits with it
            self._loop.call_soon_threadsafe(self._heard, checks)

    async def close(self) -> None:
        """Stop the polling task."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def __len__(self) -> int:
        """Return the number of awaited items."""
        return len(self._waiters)

    def _heard(self, checks: Collection[int]) -> None:
        if not checks:  # the listener lost its connection: any check may have ended since
            self._doubtful |= self._waiters.keys()
            self._woken.set()
        for check_id in checks:
            if items := self._items_of.get(check_id):
                self._doubtful |= items
                self._woken.set()

    async def _poll_for_ever(self) -> None:
        due = -math.inf  # the time of the next poll of all items
        while True:
            await self._wait_until(due)
            began = time.monotonic()
            is_whole = began >= due
            if is_whole:
                self._doubtful.update(self._waiters)
            self._woken.clear()
            if not await self._poll():
                await asyncio.sleep(POLL_SECONDS)
                due = -math.inf
            elif is_whole:
                ended = time.monotonic()
                due = ended + max(POLL_SECONDS, pause_after(ended - began, times=_PAUSES))

    async def _wait_until(self, due: float) -> None:
        """Wait for a message about an awaited item, or until all items are due for a poll."""
        left = max(0.0, due - time.monotonic()) if self._waiters else None
        with suppress(TimeoutError):
            # Not `wait_for`, which on Python 3.11 can swallow the task's cancellation.
            async with asyncio.timeout(left):
                await self._woken.wait()

    async def _poll(self) -> bool:
        """Query the doubtful items and settle those that are done; return False if the query failed."""
        doubtful, self._doubtful = list(self._doubtful & self._waiters.keys()), set()
        for start in range(0, len(doubtful), _TOGETHER):
            some = doubtful[start : start + _TOGETHER]
            try:
                found = await self._ask(some)
            except ServerDown:
                return False  # the backend has logged it
            except Exception:  # noqa: BLE001 # the task's edge: without this task no wait would end
                _log.exception("The query for awaited items failed")
                return False
            for item in some:
                self._take(item, found.get(item))
        return True

    def _take(self, item: Item, waited: Waited | None) -> None:
        if waited is not None and not waited.is_settled:
            self._expect(item, waited.check_id)
            return
        for waiter in list(self._waiters.get(item, ())):
            waiter.settle(item)
            self._forget(item, waiter)

    def _expect(self, item: Item, check_id: int) -> None:
        if item in self._waiters and self._check_of.get(item) != check_id:
            self._drop_check(item)
            self._check_of[item] = check_id
            self._items_of[check_id].add(item)

    def _forget(self, item: Item, waiter: Waiter) -> None:
        waiters = self._waiters.get(item)
        if waiters is None:
            return
        waiters.discard(waiter)
        if not waiters:
            del self._waiters[item]
            self._drop_check(item)

    def _drop_check(self, item: Item) -> None:
        check_id = self._check_of.pop(item, None)
        if check_id is not None and (items := self._items_of.get(check_id)):
            items.discard(item)
            if not items:
                del self._items_of[check_id]
