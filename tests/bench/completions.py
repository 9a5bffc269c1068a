"""Benchmarks, completions: verdicts recorded a second, and how soon they are heard of, Redis beside NOTIFY.

Each lane is a worker's recorder: one thread with a connection of its own that records batches of verdicts,
each in one transaction. The ways take turns; in all of them somebody listens.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from enum import Enum

import psycopg
from farm_workers.bench.measure import programs
from sqlalchemy import Engine

from farm.characters import storable_json
from farm.completions import Listener, Publisher
from farm.judging.report import Answer, Execution, Report
from farm.judging.verdict import judge
from farm.runs.submit import submit
from farm.store import postgres
from farm.store.attempt import Claim, Decision
from farm.store.transitions import _FINISH
from tests.bench.around.answers import write_programs
from tests.bench.around.site import UNSERVED, FarmAtWork, farm_at_work, options
from tests.bench.checks.figures import Figure, quantile
from tests.reports import SEALED

#: How often each way is measured, with how many recorders at once.
TURNS = 12
LANES = (2, 8)
#: Checks that are recorded in a turn, so many in each transaction.
_CHECKS, _BATCH = 2_400, 8
#: For delays, recorders pause so long after each transaction: nothing waits for a core.
_PAUSE_SECONDS = 0.02
_SPARSE_CHECKS = 4_000
_CHANNEL = "farm_completed"
_CONNECTIONS = 40

# Equal notifications of a transaction are one.
_NOTIFYING = f"{_FINISH}, pg_notify('{_CHANNEL}', (SELECT string_agg(id::text, ',') FROM given))"

_REPORT = Report(
    run=Execution(exit_status=0, wall_seconds=0.01, cpu_seconds=0.01, peak_memory_kib=40_000),
    answer=Answer(reached_end=True),
    way="forked",
    audit=SEALED,
)
_DECISION = Decision(
    report=_REPORT, verdict=judge(_REPORT), digest="0" * 64, toolchain="none", checker_version=""
)

Heard = Callable[[frozenset[int]], None]
Batch = Sequence[Claim]


class Way(Enum):
    """How others are told of verdicts."""

    SILENT = "nobody told"
    REDIS = "Redis"
    NOTIFY = "NOTIFY"


def completions() -> Iterator[Figure]:
    """Record verdicts without telling anybody, with Redis, and with NOTIFY."""
    with farm_at_work(connections=_CONNECTIONS) as farm:
        for lanes in LANES:
            rates: dict[Way, list[float]] = {way: [] for way in Way}
            for turn in range(TURNS):
                for way in list(Way)[:: -1 if turn % 2 else 1]:
                    rates[way].append(_turn(farm, way, lanes, _CHECKS)[0])
            yield from _compared(lanes, rates)
        for way in (Way.REDIS, Way.NOTIFY):
            delays = _turn(farm, way, LANES[0], _SPARSE_CHECKS, pause_seconds=_PAUSE_SECONDS)[1]
            for share in (0.5, 0.99):
                yield Figure(
                    key=f"heard_{way.name.lower()}_p{share * 100:g}",
                    name=f"commit until heard, {way.value}, {share:.0%}",
                    unit="ms",
                    samples=(quantile(delays, share) * 1000,),
                )


def _compared(lanes: int, rates: Mapping[Way, Sequence[float]]) -> Iterator[Figure]:
    for way, found in rates.items():
        key, name = f"recorded_{lanes}_{way.name.lower()}", f"{lanes} recorders, {way.value}"
        yield Figure(key=key, name=name, unit="commits/s", samples=tuple(found))
        if way is not Way.SILENT:
            ratios = [rate / alone for rate, alone in zip(found, rates[Way.SILENT], strict=True)]
            yield Figure(key=f"{key}_over_silent", name=f"{name}, ratio", unit="", samples=tuple(ratios))


def _turn(
    farm: FarmAtWork, way: Way, lanes: int, checks: int, *, pause_seconds: float = 0.0
) -> tuple[float, list[float]]:
    """Return how many batches were committed a second, and after what times they were heard of."""
    batches = _claimed(farm, checks)
    heard: dict[int, float] = {}

    def hear(check_ids: frozenset[int]) -> None:
        heard.update(dict.fromkeys(check_ids, time.perf_counter()))

    committed: dict[int, float] = {}
    with ExitStack() as stack:
        if way is not Way.SILENT:
            stack.enter_context(_listening(farm, way, hear))
        records = [stack.enter_context(_recorder(farm, way)) for _ in range(lanes)]
        pool = stack.enter_context(ThreadPoolExecutor(lanes))
        begun = time.perf_counter()
        shares = [batches[lane::lanes] for lane in range(lanes)]
        lanes_at_work = [
            pool.submit(_record, record, share, pause_seconds)
            for record, share in zip(records, shares, strict=True)
        ]
        for lane in lanes_at_work:
            committed |= lane.result()
        seconds = time.perf_counter() - begun
        if way is not Way.SILENT:
            _wait_until(lambda: committed.keys() <= heard.keys())
    return len(batches) / seconds, [heard[check] - at for check, at in committed.items() if check in heard]


def _claimed(farm: FarmAtWork, checks: int) -> list[Batch]:
    """Return claims of so many new checks in batches; nothing else is in the database."""
    farm.empty()
    manifest = write_programs(farm.folder / "programs.jsonl", programs("", 0, checks))
    submit(farm.store, [manifest], options(), known=farm.queries.served(), new_run=True)
    farm.settle()
    claims: list[Claim] = []
    while found := farm.store.claim([UNSERVED], worker="bench", lease_seconds=3600.0, most=64):
        claims += found
    return [claims[first : first + _BATCH] for first in range(0, checks, _BATCH)]


def _record(record: Callable[[Batch], None], batches: Sequence[Batch], pause: float) -> dict[int, float]:
    """Record batches one after the other, and return when that of each first check was committed."""
    committed = {}
    for batch in batches:
        record(batch)
        committed[batch[0].check_id] = time.perf_counter()
        time.sleep(pause)
    return committed


@contextmanager
def _recorder(farm: FarmAtWork, way: Way) -> Iterator[Callable[[Batch], None]]:
    """Give what records a batch as a worker does, over a connection of its own."""
    engine = postgres.connect(farm.database_url, application="farm-worker", connections=1, works=True)
    statement = _NOTIFYING if way is Way.NOTIFY else _FINISH
    with Publisher(farm.broker_url) as publisher:

        def record(batch: Batch) -> None:
            _finish(engine, statement, batch)
            if way is Way.REDIS:
                publisher.publish([claim.check_id for claim in batch])

        _finish(engine, statement, [])  # connects
        yield record
    engine.dispose()


def _finish(engine: Engine, statement: str, batch: Batch) -> None:
    given = storable_json([_DECISION.row(claim) for claim in batch])
    with postgres.single(engine) as cursor:
        rows = cursor.execute(statement, {"given": given}).fetchall()
    assert len(rows) == len(batch)


@contextmanager
def _listening(farm: FarmAtWork, way: Way, heard: Heard) -> Iterator[None]:
    begun = threading.Event()

    def hear(check_ids: frozenset[int]) -> None:
        begun.set()
        heard(check_ids)

    if way is Way.REDIS:
        with Listener(farm.broker_url, hear):
            begun.wait()
            yield
        return
    over = threading.Event()
    thread = threading.Thread(target=_hear_notifications, args=(farm, hear, over), daemon=True)
    thread.start()
    begun.wait()
    yield
    over.set()
    thread.join()


def _hear_notifications(farm: FarmAtWork, heard: Heard, over: threading.Event) -> None:
    url = farm.database_url.replace("+psycopg", "", 1)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"LISTEN {_CHANNEL}")
        heard(frozenset())
        while not over.is_set():
            for each in connection.notifies(timeout=0.2, stop_after=1):
                heard(frozenset(map(int, each.payload.split(","))))


def _wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.perf_counter() + 30.0
    while not condition() and time.perf_counter() < deadline:
        time.sleep(0.01)
