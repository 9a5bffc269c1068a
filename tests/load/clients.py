"""Clients of a service that is disturbed: each asks for a batch in its own way and notes what it is told."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import httpx

from farm.client import AsyncClient, Client, Result
from farm.trainers import asking, trl, verl
from tests.chaos.facts import UNSERVED
from tests.load.items import Items, Known
from tests.processes import PATIENCE

#: How long a client waits for its verdicts: whatever happens to the farm, it must be over by then.
DEADLINE_SECONDS = 300.0 * PATIENCE
_POLL_SECONDS = 20.0
_THREADS = 32
#: Where the tests may not confine a check, its proofs are worth the same here.
_OPTIONS: Mapping[str, Any] = {"accept": ["forgeable"]}


@dataclass(frozen=True, kw_only=True, slots=True)
class Told:
    """What a client was told of an item at last; a trainer's reward function tells neither id nor verdict."""

    id: str | None = None
    status: str = "done"
    verdict: tuple[str | None, str | None] | None = None
    reward: float | None

    @classmethod
    def of(cls, result: Result) -> Told:
        """Return what `farm.client` tells."""
        return cls(
            id=result.id,
            status=result.status,
            verdict=(result.verdict, result.reason),
            reward=result.reward,
        )

    @classmethod
    def of_json(cls, said: Mapping[str, Any]) -> Told:
        """Return what the service itself tells."""
        verdict = said["verdict"], said["reason"]
        return cls(id=said["id"], status=said["status"], verdict=verdict, reward=said["reward"])


@dataclass(kw_only=True)
class Asked:
    """A batch that a client asked for, and what came of it; None is told where the client did not wait.

    `once`: no item of it may be stored twice, whatever happened on the way. `given_up`: its items may be
    cancelled.
    """

    way: str
    items: Sequence[Known]
    once: bool
    given_up: bool
    begun: float = field(default_factory=time.monotonic)
    seconds: float | None = None
    told: Sequence[Told] | None = None
    trouble: str | None = None


class Clients:
    """All clients of a load; for one event loop. `token` is an API key."""

    def __init__(self, url: str, token: str, chance: random.Random) -> None:
        self._chance = chance
        self._http = httpx.AsyncClient(
            base_url=url,
            headers={"Authorization": f"Bearer {token}"},
            limits=httpx.Limits(max_connections=None),
            timeout=httpx.Timeout(_POLL_SECONDS + 40, connect=10),
        )
        # These find the service, and the token of its latest start, in the files of its home.
        self._async = AsyncClient(deadline=DEADLINE_SECONDS, **_OPTIONS)
        self._sync = Client(deadline=DEADLINE_SECONDS, **_OPTIONS)
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="client")

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()
        await self._async.close()
        await asking.close()
        self._sync.close()
        self._threads.shutdown()

    async def ask(self, asked: Asked) -> None:
        """Ask for a batch in its way, and note what came of it."""
        asked.begun = time.monotonic()
        try:
            async with asyncio.timeout(DEADLINE_SECONDS + 60):
                asked.told = await WAYS[asked.way].ask(self, [each.item for each in asked.items])
        except Exception as error:  # noqa: BLE001 # whatever a client is told must be in the report
            asked.trouble = f"{type(error).__name__}: {error}"
        asked.seconds = time.monotonic() - asked.begun

    async def _raw(self, items: Sequence[Mapping[str, object]]) -> list[Told]:
        """Ask with keys, again and again with the same body, as docs/use/http.md tells clients to."""
        keyed = [{**item, "key": f"key-{item['name']}"} for item in items]
        said = await self._posted(keyed, wait_seconds=_POLL_SECONDS)
        return await self._waited([each["id"] for each in said["items"]])

    async def _twice(self, items: Sequence[Mapping[str, object]]) -> list[Told]:
        both = await asyncio.gather(self._raw(items), self._raw(items))
        ids = [[each.id for each in told] for told in both]
        if ids[0] != ids[1]:
            raise AssertionError(f"the same keys are the items {ids}")
        return both[0]

    async def _checked(self, items: Sequence[Mapping[str, object]]) -> list[Told]:
        return list(map(Told.of, await self._async.check_all(items)))

    async def _streamed(self, items: Sequence[Mapping[str, object]]) -> list[Told]:
        found = [each async for each in self._async.stream(items)]
        return list(map(Told.of, sorted(found, key=lambda each: each.index)))

    async def _in_thread(self, items: Sequence[Mapping[str, object]]) -> list[Told]:
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self._threads, lambda: self._sync.check_all(items))
        return list(map(Told.of, found))

    async def _trl(self, items: Sequence[Mapping[str, Any]]) -> list[Told]:
        rewards = trl.rewards(deadline=DEADLINE_SECONDS, **_OPTIONS)
        fields = ("header", "formal_statement", "name")
        columns = {field: [each[field] for each in items] for field in fields}
        completions = [[{"role": "assistant", "content": each["generation"]}] for each in items]
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self._threads, lambda: rewards(completions=completions, **columns))
        return [Told(reward=each) for each in found]

    async def _verl(self, items: Sequence[Mapping[str, Any]]) -> list[Told]:
        options = {"deadline": DEADLINE_SECONDS, **_OPTIONS}
        asked = (verl.compute_score("lean", each["generation"], each, **options) for each in items)
        return [Told(reward=each) for each in await asyncio.gather(*asked)]

    async def _away(self, items: Sequence[Mapping[str, object]], **more: object) -> None:
        """Ask without keys, and go away before there is an answer."""
        body = {"items": items, "wait_seconds": _POLL_SECONDS, **_OPTIONS, **more}
        with suppress(httpx.TransportError, TimeoutError):
            async with asyncio.timeout(1.0 if more else self._chance.uniform(0.05, 0.5)):
                await self._http.post("/v1/batches", json=body)

    async def _away_for_ever(self, items: Sequence[Mapping[str, object]]) -> None:
        await self._away(items, environment=UNSERVED)

    async def _cancels(self, items: Sequence[Mapping[str, object]], environment: str = "core") -> list[Told]:
        batch = await self._async.submit(items, environment=environment)
        await asyncio.sleep(self._chance.uniform(0.0, 0.3))
        await self._async.cancel(batch)
        found = await self._async.batch(batch, wait_seconds=_POLL_SECONDS)
        while not found.done:
            found = await self._async.batch(batch, wait_seconds=_POLL_SECONDS)
        return list(map(Told.of, found.results))

    async def _cancels_unserved(self, items: Sequence[Mapping[str, object]]) -> list[Told]:
        return await self._cancels(items, UNSERVED)

    async def _posted(self, items: Sequence[Mapping[str, object]], *, wait_seconds: float) -> Any:
        body = {"items": items, "wait_seconds": wait_seconds, **_OPTIONS}
        return await self._answered("POST", "/v1/batches", json=body)

    async def _waited(self, ids: Iterable[str]) -> list[Told]:
        parameters: dict[str, str | float] = {"ids": ",".join(ids), "wait_seconds": _POLL_SECONDS}
        while True:
            said = await self._answered("GET", "/v1/items", params=parameters)
            if all(each["status"] in ("done", "cancelled") for each in said):
                return list(map(Told.of_json, said))

    async def _answered(self, method: str, path: str, **arguments: Any) -> Any:
        """Ask until there is an answer other than "later"."""
        while True:
            try:
                answer = await self._http.request(method, path, **arguments)
            except httpx.TransportError:
                await asyncio.sleep(0.25)
                continue
            if answer.status_code in (429, 503):
                await asyncio.sleep(min(1.0, float(answer.headers["Retry-After"])))
                continue
            if answer.status_code not in (200, 202):
                raise AssertionError(f"{method} {path} was answered {answer.status_code}: {answer.text}")
            return answer.json()


@dataclass(frozen=True, kw_only=True, slots=True)
class Way:
    """A way to ask: how often it comes, and what holds for it."""

    weight: int
    ask: Callable[[Clients, Sequence[Mapping[str, object]]], Awaitable[Sequence[Told] | None]]
    once: bool = True
    given_up: bool = False
    is_trainer: bool = False

    def asked(self, name: str, items: Items, size: int) -> Asked:
        """Return a batch of new items to be asked in this way."""
        made = items.generations(size) if self.is_trainer else items.batch(size)
        return Asked(way=name, items=made, once=self.once, given_up=self.given_up)


#: Every way by its name. Those of no weight come once.
WAYS: Mapping[str, Way] = {
    "raw": Way(weight=25, ask=Clients._raw),
    "raw twice": Way(weight=10, ask=Clients._twice),
    "AsyncClient": Way(weight=25, ask=Clients._checked),
    "AsyncClient.stream": Way(weight=10, ask=Clients._streamed),
    "Client": Way(weight=20, ask=Clients._in_thread),
    "TRL": Way(weight=10, ask=Clients._trl, is_trainer=True),
    "verl": Way(weight=10, ask=Clients._verl, is_trainer=True),
    "goes away": Way(weight=5, ask=Clients._away, given_up=True),
    "cancels": Way(weight=5, ask=Clients._cancels, given_up=True),
    "cancels what waits": Way(weight=2, ask=Clients._cancels_unserved, given_up=True),
    "goes away from what waits": Way(weight=0, ask=Clients._away_for_ever, given_up=True),
}
