"""Who waits is told as soon as PostgreSQL says so, whatever of what workers tell is lost."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterable, Sequence

import pytest

from farm.errors import ServerDown
from farm.service.waiters import Waiters
from farm.store.queries import Waited
from farm.store.records import Item

A, B, C = ("a", 1), ("b", 1), ("c", 1)


class Store:
    """What PostgreSQL would say of items, and how often it was asked."""

    def __init__(self, *items: Item) -> None:
        self.check_of = {item: number for number, item in enumerate(items, 1)}
        self.settled: set[Item] = set()
        self.asked: list[frozenset[Item]] = []
        self.failures: list[Exception] = []
        self._changed = asyncio.Condition()

    async def ask(self, items: Sequence[Item]) -> dict[Item, Waited]:
        await asyncio.sleep(0)
        async with self._changed:
            self.asked.append(frozenset(items))
            self._changed.notify_all()
        if self.failures:
            raise self.failures.pop(0)
        return {
            item: Waited(check_id=self.check_of[item], is_settled=item in self.settled)
            for item in items
            if item in self.check_of
        }

    async def until_asked(self, times: int) -> None:
        """Wait until it has been asked so many times."""
        async with self._changed:
            await self._changed.wait_for(lambda: len(self.asked) >= times)


def play(scene: Callable[[], Awaitable[None]]) -> None:
    """Run a scene in a real event loop; one that hangs fails."""

    async def bounded() -> None:
        await asyncio.wait_for(scene(), 30)

    asyncio.run(bounded())


@pytest.fixture
def only_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks by itself while the test lasts: only what is told leads to a look."""
    monkeypatch.setattr("farm.service.waiters.POLL_SECONDS", 3600.0)


@pytest.fixture
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is looked at many times a second, whatever is told."""
    monkeypatch.setattr("farm.service.waiters.POLL_SECONDS", 0.02)
    monkeypatch.setattr("farm.service.waiters._PAUSES", 1.0)


async def ended(waits: Iterable[Awaitable[object]]) -> None:
    await asyncio.gather(*waits)


@pytest.mark.usefixtures("only_told")
class TestWhatIsTold:
    def test_leads_to_a_look_at_that_item_alone(self) -> None:
        async def scene() -> None:
            store = Store(A, B)
            waiters = Waiters(store.ask)
            first, other = waiters.add([A], {}), waiters.add([B], {})
            await store.until_asked(1)
            await asyncio.sleep(0)
            store.settled.add(A)
            waiters.heard([store.check_of[A], 99])
            await first.all()
            assert store.asked[-1] == {A}
            assert other.pending == {B}
            await waiters.close()

        play(scene)

    def test_before_it_was_waited_for_is_seen_by_the_look_that_begins_each_wait(self) -> None:
        async def scene() -> None:
            store = Store(A)
            store.settled.add(A)
            waiters = Waiters(store.ask)
            await waiters.add([A], {A: 1}).all()
            await waiters.close()

        play(scene)

    def test_while_a_look_is_under_way_leads_to_another(self) -> None:
        async def scene() -> None:
            store = Store(A)

            async def ask(items: Sequence[Item]) -> dict[Item, Waited]:
                found = await store.ask(items)
                if len(store.asked) == 1:  # recorded and told, when this look has its answer already
                    store.settled.add(A)
                    waiters.heard([1])
                    await asyncio.sleep(0)
                return found

            waiters = Waiters(ask)
            await waiters.add([A], {A: 1}).all()
            assert len(store.asked) == 2
            await waiters.close()

        play(scene)

    def test_in_another_thread_is_heard(self) -> None:
        async def scene() -> None:
            store = Store(A)
            waiters = Waiters(store.ask)
            waiter = waiters.add([A], {A: 1})
            await store.until_asked(1)
            store.settled.add(A)
            thread = threading.Thread(target=waiters.heard, args=([1],))
            thread.start()
            await waiter.all()
            thread.join()
            await waiters.close()

        play(scene)

    def test_of_the_check_that_an_item_was_given_anew_is_heard(self) -> None:
        async def scene() -> None:
            store = Store(A)
            waiters = Waiters(store.ask)
            waiter = waiters.add([A], {A: 1})
            await store.until_asked(1)
            store.check_of[A] = 7  # parted from a verdict by chance, which was told
            waiters.heard([1])
            await store.until_asked(2)
            await asyncio.sleep(0)
            store.settled.add(A)
            waiters.heard([7])
            await waiter.all()
            await waiters.close()

        play(scene)

    def test_wakes_all_who_wait_for_it(self) -> None:
        async def scene() -> None:
            store = Store(A, B)
            store.check_of[B] = store.check_of[A]  # equal items of two batches
            waiters = Waiters(store.ask)
            several = [waiters.add(items, {}) for items in ([A], [A], [B], [A, B])]
            await store.until_asked(1)
            waiters.remove(several.pop(0))
            await asyncio.sleep(0)
            store.settled |= {A, B}
            waiters.heard([1])
            await ended(waiter.all() for waiter in several)
            await waiters.close()

        play(scene)

    def test_that_nobody_knows_what_ended_leads_to_a_look_at_everything(self) -> None:
        async def scene() -> None:
            store = Store(A, B)
            waiters = Waiters(store.ask)
            waiter = waiters.add([A, B], {})
            await store.until_asked(1)
            await asyncio.sleep(0)
            store.settled |= {A, B}
            waiters.heard([])
            await waiter.all()
            await waiters.close()

        play(scene)

    def test_when_the_loop_has_ended_harms_nobody(self) -> None:
        rooms = []

        async def scene() -> None:
            rooms.append(Waiters(Store().ask))
            await rooms[0].close()

        play(scene)
        rooms[0].heard([1])


class TestWhatIsLost:
    @pytest.mark.usefixtures("quickly")
    def test_is_found_by_looking(self) -> None:
        async def scene() -> None:
            store = Store(A)
            waiters = Waiters(store.ask)
            waiter = waiters.add([A], {A: 1})
            await store.until_asked(2)
            store.settled.add(A)
            await waiter.all()
            await waiters.close()

        play(scene)

    @pytest.mark.usefixtures("quickly")
    def test_is_found_however_much_is_told_of_others(self) -> None:
        async def scene() -> None:
            store = Store(A, B)
            waiters = Waiters(store.ask)
            lost = waiters.add([A], {})
            noise = waiters.add([B], {})
            await store.until_asked(1)
            store.settled.add(A)

            async def tell() -> None:
                while True:
                    waiters.heard([store.check_of[B]])
                    await asyncio.sleep(0)

            telling = asyncio.ensure_future(tell())
            await lost.all()
            telling.cancel()
            assert noise.pending
            await waiters.close()

        play(scene)

    @pytest.mark.usefixtures("quickly")
    def test_is_found_however_many_come_and_go(self) -> None:
        async def scene() -> None:
            store = Store(A, B, C)
            waiters = Waiters(store.ask)
            lost = waiters.add([A], {})
            await store.until_asked(1)
            store.settled.add(A)

            async def visit() -> None:
                while True:
                    visitors = [waiters.add([item], {}) for item in (B, C)]
                    waiters.remove(visitors[0])
                    await asyncio.sleep(0.001)
                    waiters.remove(visitors[1])

            visiting = asyncio.ensure_future(visit())
            await lost.all()
            visiting.cancel()
            await waiters.close()

        play(scene)

    @pytest.mark.usefixtures("quickly")
    def test_goes_for_items_that_are_gone(self) -> None:
        async def scene() -> None:
            waiters = Waiters(Store().ask)
            await waiters.add([A], {A: 1}).all()
            await waiters.close()

        play(scene)


class TestWhilePostgresqlIsAway:
    @pytest.mark.parametrize("failure", [ServerDown("away"), RuntimeError("unforeseen")], ids=repr)
    def test_is_waited_on_and_answered_soon_after(
        self, monkeypatch: pytest.MonkeyPatch, failure: Exception
    ) -> None:
        monkeypatch.setattr("farm.service.waiters.POLL_SECONDS", 0.02)
        # To look costs next to nothing; only the time that PostgreSQL was away could make for a long pause.
        monkeypatch.setattr("farm.service.waiters._PAUSES", 10_000.0)

        async def scene() -> None:
            store = Store(A)
            waiters = Waiters(store.ask)

            store.failures = [failure] * 3
            waiter = waiters.add([A], {A: 1})
            await store.until_asked(3)
            assert waiter.pending
            store.settled.add(A)
            await waiter.all()
            await waiters.close()

        play(scene)


class TestWhoHasLeft:
    def test_leaves_nothing_behind(self) -> None:
        async def scene() -> None:
            store = Store(A, B)
            waiters = Waiters(store.ask)
            several = [waiters.add([A, B], {A: 1, B: 2}), waiters.add([A], {})]
            await store.until_asked(1)
            store.settled.add(A)
            waiters.heard([1])
            await several[1].all()
            for waiter in several:
                waiters.remove(waiter)
            waiters.remove(several[0])
            assert len(waiters) == 0
            assert not (waiters._check_of or waiters._items_of)
            await waiters.close()

        play(scene)


class TestWaiter:
    def test_tells_each_item_once_as_it_is_settled(self) -> None:
        async def scene() -> None:
            store = Store(A, B, C)
            waiters = Waiters(store.ask)
            waiter = waiters.add([A, B, C], {A: 1, B: 2, C: 3})
            told: list[Item] = []
            for item in (B, A, C):
                store.settled.add(item)
                waiters.heard([store.check_of[item]])
                told += await waiter.some()
            assert told == [B, A, C]
            assert await waiter.some() == []
            await waiters.close()

        play(scene)

    def test_of_nothing_is_over_at_once(self) -> None:
        async def scene() -> None:
            waiters = Waiters(Store().ask)
            await waiters.add([], {}).all()
            await waiters.close()

        play(scene)


@pytest.mark.usefixtures("only_told")
def test_who_is_released_waits_no_longer_and_who_comes_later_does_not_begin_to() -> None:
    async def scene() -> None:
        waiters = Waiters(Store(A, B).ask)
        before = waiters.add([A, B], {})
        wait = asyncio.ensure_future(before.all())
        waiters.release()
        await wait
        later = waiters.add([A], {})
        await later.all()
        assert before.pending == {A, B}
        assert later.pending == {A}
        await waiters.close()

    play(scene)
