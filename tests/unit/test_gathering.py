"""Requests that arrive while others are being stored are stored together, and each has its own answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from farm.errors import ServerDown
from farm.service.gathering import MOST, Gathering


class Store:
    """Takes requests once it may; answers each with its own text, and is upset by some of them."""

    def __init__(self) -> None:
        self.groups: list[list[str]] = []
        self.may = asyncio.Event()

    async def __call__(self, requests: Sequence[str]) -> list[str | Exception]:
        self.groups.append(list(requests))
        await self.may.wait()
        for each in requests:
            if each == "down":
                raise ServerDown("PostgreSQL is away")
            if each == "upset":
                raise ValueError(each)
        return [KeyError(each) if each == "bad" else f"{each}!" for each in requests]


def run(work: Callable[[Store, Gathering[str, str]], Coroutine[Any, Any, None]]) -> None:
    async def all_of_it() -> None:
        store = Store()
        await work(store, Gathering(store))

    asyncio.run(all_of_it())


async def asked(gathering: Gathering[str, str], store: Store, *requests: str) -> list[Any]:
    """Ask all of these while the first one is being stored, and return the answers and errors."""
    tasks = [asyncio.ensure_future(gathering.add("kind", each)) for each in requests]
    while not store.groups:
        await asyncio.sleep(0)
    store.may.set()
    return await asyncio.gather(*tasks, return_exceptions=True)


def test_the_first_is_stored_at_once_and_those_behind_it_together() -> None:
    async def work(store: Store, gathering: Gathering[str, str]) -> None:
        first = asyncio.ensure_future(gathering.add("kind", "a"))
        while not store.groups:
            await asyncio.sleep(0)
        others = [asyncio.ensure_future(gathering.add("kind", each)) for each in "bcd"]
        await asyncio.sleep(0)
        store.may.set()
        assert await asyncio.gather(first, *others) == ["a!", "b!", "c!", "d!"]
        assert store.groups == [["a"], ["b", "c", "d"]]
        assert await gathering.add("kind", "e") == "e!"

    run(work)


def test_each_kind_is_stored_by_itself() -> None:
    async def work(store: Store, gathering: Gathering[str, str]) -> None:
        store.may.set()
        found = await asyncio.gather(*(gathering.add(kind, kind) for kind in "abab"))
        assert found == ["a!", "b!", "a!", "b!"]
        assert sorted(store.groups) == [["a", "a"], ["b", "b"]]

    run(work)


@pytest.mark.parametrize("bad", ["bad", "upset"])
@pytest.mark.parametrize("place", [0, 1, 3])
def test_a_bad_one_harms_no_other(bad: str, place: int) -> None:
    async def work(store: Store, gathering: Gathering[str, str]) -> None:
        requests = ["a", "b", "c"]
        requests.insert(place, bad)
        found = await asked(gathering, store, *requests)
        assert isinstance(found.pop(place), (KeyError, ValueError))
        assert found == ["a!", "b!", "c!"]

    run(work)


def test_all_hear_that_postgresql_is_away_and_later_ones_are_stored_again() -> None:
    async def work(store: Store, gathering: Gathering[str, str]) -> None:
        found = await asked(gathering, store, "a", "down", "b")
        assert all(isinstance(each, ServerDown) for each in found)
        assert await gathering.add("kind", "c") == "c!"

    run(work)


def test_a_client_that_goes_away_harms_no_other() -> None:
    async def work(store: Store, gathering: Gathering[str, str]) -> None:
        tasks = [asyncio.ensure_future(gathering.add("kind", each)) for each in "abc"]
        while not store.groups:
            await asyncio.sleep(0)
        tasks[1].cancel()
        store.may.set()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        assert (found[0], found[2]) == ("a!", "c!")

    run(work)


def test_a_group_is_bounded() -> None:
    async def work(store: Store, gathering: Gathering[str, str]) -> None:
        store.may.set()
        requests = [str(number) for number in range(2 * MOST + 1)]
        assert await asked(gathering, store, *requests) == [f"{each}!" for each in requests]
        assert max(map(len, store.groups)) == MOST

    run(work)
