"""Benchmarks, tenants: one key's check beside thousands of another's, and single items beside a batch."""

from __future__ import annotations

import itertools
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx
from farm_workers.bench.measure import program
from farm_workers.box.isolation import prepared
from farm_workers.environments.lean_environment import EMBEDDED
from farm_workers.machine.environments import installed

from farm.errors import FarmError
from farm.service.auth.tokens import ApiToken
from farm.settings import Settings
from farm.store.keys import Key, Keys, Scope
from tests.bench.around.site import FarmAtWork, farm_at_work
from tests.bench.around.workers import farm_worker, running
from tests.bench.checks.figures import Figure, quantile

_SAMPLES, _ITEMS, _THREADS, _ROUNDS = 200, 400, 64, 3
_SECONDS, _START_SECONDS = 600.0, 60.0


def tenants(singles: int = 2000) -> Iterator[Figure]:
    """Measure a key's requests alone and beside this number of another's, and single items over a batch."""
    settings = Settings.load()
    with prepared(settings.home / "work") as isolation:
        header = installed(settings.home, None, isolation).lean(EMBEDDED).header
    numbers = itertools.count()
    with (
        farm_at_work(servers=settings.servers) as farm,
        farm_worker(farm, EMBEDDED, 2, {}),
        _served(farm) as url,
        _client(url, farm, "flood") as flood,
        _client(url, farm, "other") as other,
        ThreadPoolExecutor(_THREADS) as pool,
    ):

        def item() -> dict[str, str]:
            made = program(header, next(numbers))
            return {"program": made.text, "header": made.header, "formal_statement": made.statement}

        def seconds_of_one(client: httpx.Client) -> float:
            return _seconds(lambda: _post(client, [item()], _SECONDS))

        list(pool.map(seconds_of_one, [flood, other] * 20))
        shares = []
        for _ in range(_ROUNDS):
            together = _seconds(lambda: _post(flood, [item() for _ in range(_ITEMS)], _SECONDS))
            alone = _seconds(lambda: list(pool.map(seconds_of_one, [flood] * _ITEMS)))
            shares.append(together / alone)
        yield Figure(
            key="singles_over_batch",
            name=f"single items a second, {_THREADS} at once, over those of a batch",
            unit="",
            samples=tuple(shares),
            at_least=0.8,
        )
        idle = [seconds_of_one(other) for _ in range(_SAMPLES)]
        list(pool.map(lambda _: _post(flood, [item()], 0), range(singles)))
        beside = list[float]()
        while farm.queries.queue_length(most=_THREADS) >= _THREADS and len(beside) < _SAMPLES:
            beside.append(seconds_of_one(other))
    ratio = quantile(beside, 0.99) / quantile(idle, 0.99)
    yield Figure(
        key="beside_flood",
        name=f"p99 of a key beside {singles} single requests of another, over an idle farm's",
        unit="",
        samples=(ratio,),
        at_most=3.0,
    )
    yield Figure(key="idle_one", name="one check of an idle farm", unit="s", samples=tuple(idle))
    yield Figure(key="beside_one", name="one check beside them", unit="s", samples=tuple(beside))


def _seconds(does: Callable[[], object]) -> float:
    begun = time.perf_counter()
    does()
    return time.perf_counter() - begun


def _post(client: httpx.Client, items: list[dict[str, str]], wait_seconds: float) -> None:
    body = {"items": items, "environment": EMBEDDED, "wait_seconds": wait_seconds}
    said = client.post("/v1/batches", json=body)
    if said.status_code not in (200, 202):
        raise FarmError(f"the service answered {said.status_code}: {said.text[:500]}")


@contextmanager
def _served(farm: FarmAtWork) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    with running(farm, ["farm", "serve", "--port", str(port)], {}) as process:
        until = time.monotonic() + _START_SECONDS
        while not _is_ready(url):
            if process.poll() is not None or time.monotonic() > until:
                raise FarmError("the bench's service does not answer; its output is above")
            time.sleep(0.05)
        yield url


def _is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health/serving").status_code == 200
    except httpx.TransportError:
        return False


def _client(url: str, farm: FarmAtWork, name: str) -> httpx.Client:
    token = ApiToken.new()
    key = Key(id=token.id, name=name, scopes=frozenset(Scope), classes=frozenset({"online"}))
    Keys(farm.engine).add(key, token.sha256)
    limits = httpx.Limits(max_connections=None)
    headers = {"Authorization": f"Bearer {token.text}"}
    return httpx.Client(base_url=url, headers=headers, timeout=_SECONDS + 30, limits=limits)
