"""Service step, the waiting room: who waits for which items, in one place for the whole process.

Workers tell over Redis which checks they have judged. What they tell is only a reason to look: whether an
item is settled, PostgreSQL says, for all who wait at once. So a message that is lost costs a second.
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
from farm.store.queries import Waited
from farm.store.records import Item

#: Asks what items wait for.
Ask = Callable[[Sequence[Item]], Awaitable[dict[Item, Waited]]]

#: After so many seconds all that is waited for is looked at, whatever was told.
POLL_SECONDS = 1.0
#: Whoever looks at all of it pauses at least so many times as long as that took.
_PAUSES = 10.0
#: So many items are asked for at once.
_TOGETHER = 5000

_log = logger(__name__)


class Waiter:
    """Somebody who waits for items; made by `Waiters.waiting`."""

    def __init__(self, items: Collection[Item]) -> None:
        self.pending = set(items)
        self._settled: list[Item] = []
        self._changed = asyncio.Event()
        self._is_released = False

    def release(self) -> None:
        """End the wait though items are pending."""
        self._is_released = True
        self._changed.set()

    def settle(self, item: Item) -> None:
        """Say that an item is settled."""
        if item in self.pending:
            self.pending.remove(item)
            self._settled.append(item)
            self._changed.set()

    async def some(self) -> list[Item]:
        """Wait until more items are settled and return them; none when all are, or the wait has ended."""
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
    """All who wait in this process; used in its event loop only, but for `heard`."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._loop = asyncio.get_running_loop()
        self._waiters: dict[Item, set[Waiter]] = defaultdict(set)
        self._check_of: dict[Item, int] = {}
        self._items_of: dict[int, set[Item]] = defaultdict(set)
        self._doubtful: set[Item] = set()
        self._woken = asyncio.Event()
        self._is_open = True
        self._task = self._loop.create_task(self._look_for_ever())

    def add(self, items: Collection[Item], checks: Mapping[Item, int]) -> Waiter:
        """Return somebody who waits for these items, whose checks may be known; to be ended by `leave`."""
        waiter = Waiter(items)
        if not self._is_open:
            waiter.release()
        for item in waiter.pending:
            self._waiters[item].add(waiter)
            if item in checks:
                self._expect(item, checks[item])
        # Any of them may have been settled before this; most have not, and wait for what is told.
        self._doubtful |= waiter.pending
        self._woken.set()
        return waiter

    def remove(self, waiter: Waiter) -> None:
        """End a wait."""
        for item in waiter.pending:
            self._forget(item, waiter)
        waiter.pending.clear()

    def release(self) -> None:
        """End all waits, also those to come."""
        self._is_open = False
        for waiter in set().union(*self._waiters.values()):
            waiter.release()

    def heard(self, checks: Collection[int]) -> None:
        """Take what workers tell, in any thread; nothing means that something was missed."""
        with suppress(RuntimeError):  # the loop has ended, and nobody waits
            self._loop.call_soon_threadsafe(self._heard, checks)

    async def close(self) -> None:
        """End the looking."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def __len__(self) -> int:
        """Return how many items are waited for."""
        return len(self._waiters)

    def _heard(self, checks: Collection[int]) -> None:
        if not checks:  # whoever tells was away: anything may have ended meanwhile
            self._doubtful |= self._waiters.keys()
            self._woken.set()
        for check_id in checks:
            if items := self._items_of.get(check_id):
                self._doubtful |= items
                self._woken.set()

    async def _look_for_ever(self) -> None:
        due = -math.inf  # when all of it is looked at again
        while True:
            await self._wait_until(due)
            began = time.monotonic()
            is_whole = began >= due
            if is_whole:
                self._doubtful.update(self._waiters)
            self._woken.clear()
            if not await self._look():
                await asyncio.sleep(POLL_SECONDS)
                due = -math.inf
            elif is_whole:
                ended = time.monotonic()
                due = ended + max(POLL_SECONDS, _PAUSES * (ended - began))

    async def _wait_until(self, due: float) -> None:
        """Wait until something is doubtful, or is to be looked at whatever was told."""
        left = max(0.0, due - time.monotonic()) if self._waiters else None
        with suppress(TimeoutError):
            # Not `wait_for`, which on Python 3.11 can swallow that the task is cancelled.
            async with asyncio.timeout(left):
                await self._woken.wait()

    async def _look(self) -> bool:
        """Settle what is settled of what is doubtful; returns whether that could be found out."""
        asked, self._doubtful = list(self._doubtful & self._waiters.keys()), set()
        for start in range(0, len(asked), _TOGETHER):
            some = asked[start : start + _TOGETHER]
            try:
                found = await self._ask(some)
            except ServerDown:
                return False  # the backend has logged it
            except Exception:  # noqa: BLE001 # the task's edge: nobody would be answered again
                _log.exception("Looking at what is waited for failed")
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
