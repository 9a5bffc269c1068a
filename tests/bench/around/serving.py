"""Bench step, the HTTP service: its batches beside the engine alone, which checks the same in turns."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import httpx
from farm_workers.bench.measure import Ask, BenchProgram, ExpectedWorth, checked, programs

from farm.errors import FarmError
from tests.bench.around.site import FarmAtWork
from tests.bench.around.workers import running
from tests.bench.checks.checks import ATTEMPTS
from tests.bench.checks.figures import Figure, quantile
from tests.bench.checks.turns import Crew

#: Items of a large batch, and how many batches are under way at once.
_BATCH, _AT_ONCE = 256, 2
#: Checks of a turn that are made one by one, and questions whose answer is known.
_SINGLE, _KNOWN = 40, 200
_SECONDS = 300.0
_START_SECONDS = 60.0
_WORTH = {("proved", "ok"): ExpectedWorth.PROVED, ("rejected", "error"): ExpectedWorth.ERROR}
#: The numbers before it are those of the programs that warm up.
_FIRST = 2_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Service:
    """A service under measure: its process, its unix socket, and a client of it."""

    pid: int
    socket: Path
    client: httpx.Client


@dataclass(frozen=True, kw_only=True, slots=True)
class Contest:
    """The service and the engine that are compared, and how often.

    `batches` of 256 items are a turn; `engine` checks one program.
    """

    client: httpx.Client
    engine: Ask
    crew: Crew
    environment: str
    header: str
    rounds: int
    batches: int
    say: Callable[[str], None]

    def post(self, given: Sequence[BenchProgram]) -> None:
        """Have the service judge these, and wait; raises FarmError where one comes out as it must not."""
        items = [
            {
                "program": each.text,
                "header": each.header,
                "formal_statement": each.statement,
                "name": str(number),
            }
            for number, each in enumerate(given)
        ]
        body = {"items": items, "environment": self.environment, "wait_seconds": _SECONDS}
        said = self.client.post("/v1/batches", json=body)
        if said.status_code != 200:
            raise FarmError(f"the service answered {said.status_code}: {said.text[:500]}")
        for told, program in zip(said.json()["items"], given, strict=True):
            if _WORTH.get((told["verdict"], told["reason"])) is not program.worth:
                raise FarmError(f"the service's item came out as {told}, not {program.worth}")


@contextmanager
def served(farm: FarmAtWork, *, without_worker: bool = False) -> Iterator[Service]:
    """Run `farm serve` over a farm, and give it once it answers, and a worker serves where there is one."""
    health = "/health/ready" if without_worker else "/health/serving"
    path = farm.home / "bench-http.sock"
    with running(farm, ["farm", "serve", "--uds", str(path)], {}) as process:
        transport = httpx.HTTPTransport(uds=str(path))
        with httpx.Client(transport=transport, base_url="http://localhost", timeout=_SECONDS + 30) as client:
            until = time.monotonic() + _START_SECONDS
            while not (_listens(path) and _is_ready(client, health)):
                if process.poll() is not None or time.monotonic() > until:
                    raise FarmError("the bench's service does not answer; its output is above")
                time.sleep(0.05)
            yield Service(pid=process.pid, socket=path, client=client)


def _listens(path: Path) -> bool:
    # Not the client: a unix socket that refuses it is left open by httpcore, which warnings tell.
    with socket.socket(socket.AF_UNIX) as trying, suppress(OSError):
        trying.connect(str(path))
        return True
    return False


def _is_ready(client: httpx.Client, health: str) -> bool:
    try:
        return client.get(health).status_code == 200
    except httpx.TransportError:
        return False


def over_engine(contest: Contest) -> Iterator[Figure]:
    """Yield how the service compares with the engine alone."""
    contest.say("service: warming up")
    contest.post(programs(contest.header, 0, 80, attempts=ATTEMPTS))
    for each in programs(contest.header, 80, 20):
        checked(contest.engine, each)
    yield from _single(contest)
    yield from _large(contest)
    yield from _known(contest)


def _single(contest: Contest) -> Iterator[Figure]:
    """Compare checks one by one, in turns."""
    added, through, alone = [], [], []
    for place in range(contest.rounds):
        contest.say(f"service, one by one: round {place + 1} of {contest.rounds}")
        pairs = []
        given = programs(contest.header, _FIRST + place * 2 * _SINGLE, 2 * _SINGLE)
        for mine, other in zip(given[::2], given[1::2], strict=True):
            begun = time.perf_counter()
            contest.post([mine])
            pairs.append((time.perf_counter() - begun, checked(contest.engine, other)))
        service, engine = (1000 * median(each) for each in zip(*pairs, strict=True))
        through.append(service)
        alone.append(engine)
        added.append(service - engine)
    yield Figure(key="serve_single", name="one check over HTTP, p50", unit="ms", samples=tuple(through))
    yield Figure(key="serve_engine", name="one check by the engine, p50", unit="ms", samples=tuple(alone))
    yield Figure(
        key="serve_added",
        name="one check over HTTP, p50, more than the engine alone",
        unit="ms",
        samples=tuple(added),
        at_most=10.0,
    )


def _large(contest: Contest) -> Iterator[Figure]:
    """Compare large batches with the engine in as many threads as the worker has."""
    rates = []
    size = _BATCH * contest.batches
    for place in range(contest.rounds):
        contest.say(f"service, batches of {_BATCH}: round {place + 1} of {contest.rounds}")
        given = programs(contest.header, _FIRST * 2 + place * size, size, attempts=ATTEMPTS)
        if place % 2:
            alone = _alone(contest, given)
            together = _together(contest, given)
        else:
            together = _together(contest, given)
            alone = _alone(contest, given)
        rates.append((size / together, size / alone))
    yield Figure(
        key="serve_batches",
        name=f"batches of {_BATCH} over HTTP",
        unit="checks/s",
        samples=tuple(rate for rate, _ in rates),
    )
    yield Figure(
        key="serve_batches_over_engine",
        name=f"batches of {_BATCH} over HTTP, over the engine alone",
        unit="",
        samples=tuple(rate / alone for rate, alone in rates),
        at_least=0.80,
    )


def _together(contest: Contest, given: Sequence[BenchProgram]) -> float:
    begun = time.perf_counter()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(contest.post, (given[at : at + _BATCH] for at in range(0, len(given), _BATCH))))
    return time.perf_counter() - begun


def _alone(contest: Contest, given: Sequence[BenchProgram]) -> float:
    begun = time.perf_counter()
    contest.crew.turn([contest.engine] * contest.crew.lanes, given)
    return time.perf_counter() - begun


def _known(contest: Contest) -> Iterator[Figure]:
    contest.say("service: known verdicts")
    given = programs(contest.header, _FIRST * 3, 1)
    contest.post(given)
    medians, tails = [], []
    for _ in range(contest.rounds):
        seconds = []
        for _ in range(_KNOWN):
            begun = time.perf_counter()
            contest.post(given)
            seconds.append(1000 * (time.perf_counter() - begun))
        medians.append(median(seconds))
        tails.append(quantile(seconds, 0.99))
    yield Figure(key="serve_known", name="known verdict, p50", unit="ms", samples=tuple(medians), at_most=5.0)
    yield Figure(
        key="serve_known_p99", name="known verdict, p99", unit="ms", samples=tuple(tails), at_most=20.0
    )
