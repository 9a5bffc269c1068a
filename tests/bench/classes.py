"""Measures what a check of one class waits behind a queue that is full of another.

`python -m tests.bench parts --only classes` has a real worker and a real service. One client has checks made
one after the other: first alone, then while a batch of the class `online` fills the queue.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import httpx
from farm_workers.bench.measure import BenchProgram, programs

from farm.errors import FarmError
from tests.bench.around.serving import served
from tests.bench.around.site import farm_at_work
from tests.bench.around.workers import farm_worker
from tests.bench.checks.figures import Figure, quantile

_HEADER = "prelude\nimport Core\n\n"
#: Checks of the full queue, and how many are made one by one, alone and beside it.
_FULL, _SINGLE = 1200, 60
_SECONDS = 300.0


def classes() -> Iterator[Figure]:
    """Yield how long a check takes alone, and behind a full queue of the class `online`."""
    with farm_at_work() as farm, farm_worker(farm, "core", 2, {}), served(farm) as service:
        _post(service.client, programs(_HEADER, 0, 20), "online")
        alone = _one_by_one(service.client, 10_000, "online")
        with ThreadPoolExecutor(1) as pool:
            full = pool.submit(_post, service.client, programs(_HEADER, 20_000, _FULL), "online")
            time.sleep(1.0)  # the queue is full and the worker goes on with its image
            behind = _one_by_one(service.client, 30_000, "interactive")
            is_full = not full.done()
            full.result()
    if not is_full:
        raise FarmError("the queue was empty before all single checks were made")
    yield _figure("online_alone", "one check of the class online, alone", alone)
    yield _figure("interactive_behind", "one check of the class interactive, behind a full queue", behind)
    ratio = quantile(behind, 0.99) / quantile(alone, 0.99)
    yield Figure(
        key="interactive_behind_over_alone",
        name="the p99 of the second over the p99 of the first",
        unit="",
        samples=(ratio,),
        at_most=2.0,
    )


def _figure(key: str, name: str, seconds: Sequence[float]) -> Figure:
    return Figure(key=f"{key}_p99", name=f"{name}, p99", unit="ms", samples=(1000 * quantile(seconds, 0.99),))


def _one_by_one(client: httpx.Client, first: int, priority: str) -> list[float]:
    seconds = []
    for each in programs(_HEADER, first, _SINGLE):
        began = time.perf_counter()
        _post(client, [each], priority)
        seconds.append(time.perf_counter() - began)
    return seconds


def _post(client: httpx.Client, given: Sequence[BenchProgram], priority: str) -> None:
    items = [
        {"program": each.text, "header": each.header, "formal_statement": each.statement, "name": str(number)}
        for number, each in enumerate(given)
    ]
    body = {"items": items, "priority": priority, "wait_seconds": _SECONDS}
    answer = client.post("/v1/batches", json=body)
    if answer.status_code != 200:
        raise FarmError(f"the service answered {answer.status_code}: {answer.text[:500]}")
