"""How often runs are counted for the page, and who waits for it."""

from __future__ import annotations

import asyncio

import pytest

from farm.errors import ServerDown
from farm.service.page.counts import Counts
from farm.store.queries import Tally


class Store:
    """Counts runs when it is let; says which it was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.open = asyncio.Event()
        self.fails = False
        self.now = 0.0

    async def count(self, run_id: str) -> Tally:
        self.asked.append(run_id)
        await self.open.wait()
        if self.fails:
            raise ServerDown("PostgreSQL is away")
        self.now += 1.0
        return Tally(statuses={"done": len(self.asked)}, verdicts={})


def test_a_count_is_used_for_twenty_times_what_it_took() -> None:
    async def scene() -> None:
        store = Store()
        store.open.set()
        counts = Counts(store.count, clock=lambda: store.now)
        await counts.of("a")
        store.now += 19
        await counts.of("a")
        assert store.asked == ["a"]
        store.now += 2
        await counts.of("a")
        assert store.asked == ["a", "a"]

    asyncio.run(scene())


def test_all_who_ask_wait_for_one_count() -> None:
    async def scene() -> None:
        store = Store()
        counts = Counts(store.count, clock=lambda: store.now)
        waiting = [asyncio.create_task(counts.of("a")) for _ in range(5)]
        await asyncio.sleep(0)
        store.open.set()
        assert len({id(each) for each in await asyncio.gather(*waiting)}) == 1
        assert store.asked == ["a"]

    asyncio.run(scene())


def test_what_takes_long_is_left_out_and_there_the_next_time() -> None:
    async def scene() -> None:
        store = Store()
        counts = Counts(store.count, clock=lambda: store.now)
        assert await counts.some(["a", "b", "c"], seconds=0.01) == {}
        assert len(store.asked) == 2  # the API's calls find free threads
        store.open.set()
        assert set(await counts.some(["a", "b", "c"], seconds=30)) == {"a", "b", "c"}
        assert sorted(store.asked) == ["a", "b", "c"]

    asyncio.run(scene())


def test_a_run_that_was_changed_is_counted_anew() -> None:
    async def scene() -> None:
        store = Store()
        store.open.set()
        counts = Counts(store.count, clock=lambda: store.now)
        await counts.of("a")
        counts.forget("a")
        await counts.of("a")
        assert store.asked == ["a", "a"]

    asyncio.run(scene())


def test_a_failure_is_told_and_not_kept() -> None:
    async def scene() -> None:
        store = Store()
        store.open.set()
        store.fails = True
        counts = Counts(store.count, clock=lambda: store.now)
        with pytest.raises(ServerDown):
            await counts.of("a")
        with pytest.raises(ServerDown):
            await counts.some(["a"], seconds=30)
        store.fails = False
        assert set(await counts.some(["a"], seconds=30)) == {"a"}

    asyncio.run(scene())
