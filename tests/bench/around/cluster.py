"""Bench step, a simulated cluster: how many verdicts a second one PostgreSQL and one Redis take.

The workers are real, down to Celery and their connections; only the checker is a stand-in that takes a fixed
time. All of it runs on this machine: what the
workers' own processes take of it, the nodes of a cluster would.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from farm_workers.bench.measure import programs
from farm_workers.loop.context import CONNECTIONS
from sqlalchemy import text

from tests.bench.around.judging import Judged, judged
from tests.bench.around.site import FarmAtWork
from tests.bench.around.workers import SIMULATED, Workers, stand_ins
from tests.bench.checks.figures import Figure, quantile, rounded

#: Connections that a database needs besides those of the workers.
_OTHER_CONNECTIONS = 20

# By how many seconds a check was begun later than one whose turn came after its own.
_OVERTAKEN = text("""
    SELECT EXTRACT(epoch FROM started_at - min(started_at) OVER (
        ORDER BY turn, id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING))
    FROM jobs JOIN checks ON checks.id = check_id WHERE run_id = :run
""")

_STATES = text("""
    SELECT state = 'active' AND wait_event IS NULL, wait_event_type, wait_event, count(*)
    FROM pg_stat_activity WHERE application_name = 'farm-worker' GROUP BY 1, 2, 3
""")


@dataclass(frozen=True, kw_only=True, slots=True)
class Size:
    """A cluster: so many workers with so many checks at once, which take `check_seconds` each.

    Checks of no time have no offered load: the cluster is then as fast as it can be.
    """

    workers: int
    at_once: int
    check_seconds: float
    checks: int

    @property
    def connections(self) -> int:
        """How many connections the workers may open."""
        return CONNECTIONS * self.workers + _OTHER_CONNECTIONS

    @property
    def offered(self) -> float:
        """Verdicts a second that there would be if nothing but the checks took time."""
        return self.workers * self.at_once / self.check_seconds if self.check_seconds else float("inf")


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """What was seen of the workers' connections: how many each time, and how often in which state."""

    connections: list[int] = field(default_factory=list)
    waits: dict[str, int] = field(default_factory=dict)

    @property
    def commonest_waits(self) -> str:
        """The states of connections that had something to do, the commonest first, with their shares."""
        busy = {state: number for state, number in self.waits.items() if state != _IDLE}
        total = sum(busy.values()) or 1
        ordered = sorted(busy.items(), key=lambda each: -each[1])[:3]
        return ", ".join(f"{state} {number / total:.0%}" for state, number in ordered)


_IDLE = "Client:ClientRead"
_LOOK_SECONDS = 0.1


@dataclass(frozen=True, kw_only=True, slots=True)
class Cluster:
    """What a cluster of one size achieved, over all its turns."""

    size: Size
    turns: Sequence[Judged]
    delays: Sequence[float]
    seen: Seen

    def row(self) -> dict[str, object]:
        """Return it for scripts and for the table."""
        total = sum(each.checks for each in self.turns)
        seconds = sum(each.seconds for each in self.turns)
        used = [each.used for each in self.turns]
        return {
            "workers": self.size.workers,
            "at_once": self.size.at_once,
            "check_seconds": self.size.check_seconds,
            "offered_per_second": rounded(self.size.offered) if self.size.check_seconds else None,
            "verdicts_per_second": rounded(total / seconds),
            "workers_ms": rounded(sum(each.worker_seconds for each in self.turns) / total * 1000),
            "postgres_ms": rounded(sum(each.postgres_seconds for each in used) / total * 1000),
            "redis_ms": rounded(sum(each.redis_seconds for each in used) / total * 1000),
            "transactions": rounded(sum(each.transactions for each in used) / total),
            "connections": max(self.seen.connections, default=0),
            "late_p50_ms": rounded(quantile(self.delays, 0.5) * 1000),
            "late_p99_ms": rounded(quantile(self.delays, 0.99) * 1000),
            "waits": self.seen.commonest_waits,
        }


def simulated(
    farm: FarmAtWork, sizes: Sequence[Size], rounds: int, say: Callable[[str], None]
) -> list[Cluster]:
    """Let clusters of these sizes judge runs of their own, and return what each achieved."""
    return [_one(farm, size, rounds, say) for size in sizes]


def _one(farm: FarmAtWork, size: Size, rounds: int, say: Callable[[str], None]) -> Cluster:
    farm.empty()
    farm.settle()
    say(f"simulated cluster: starting {size.workers} workers")
    turns, delays = [], []
    with stand_ins(farm, size.workers, at_once=size.at_once, check_seconds=size.check_seconds) as workers:
        _judge(farm, workers, size, 0)
        with _watching(farm) as seen:
            for place in range(rounds):
                say(f"simulated cluster: {size.workers} workers, round {place + 1} of {rounds}")
                turns.append(_judge(farm, workers, size, place + 1))
                delays += _overtaken(farm, turns[-1].run_id)
    return Cluster(size=size, turns=turns, delays=delays, seen=seen)


def _judge(farm: FarmAtWork, workers: Workers, size: Size, place: int) -> Judged:
    """Have one run judged; the first one, in which everybody wakes, is a quarter as long."""
    checks = size.checks if place else size.checks // 4
    return judged(farm, workers, SIMULATED, programs("", place * size.checks, checks), truly=False)


def _overtaken(farm: FarmAtWork, run_id: str) -> list[float]:
    with farm.engine.connect() as connection:
        return list(map(float, connection.scalars(_OVERTAKEN, {"run": run_id})))


@contextmanager
def _watching(farm: FarmAtWork) -> Iterator[Seen]:
    """Look now and then at what the workers' connections wait for, inside the block."""
    seen, over = Seen(), threading.Event()

    def watch() -> None:
        with farm.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            while not over.wait(_LOOK_SECONDS):
                rows = connection.execute(_STATES).all()
                seen.connections.append(sum(row[3] for row in rows))
                for works, kind, event, number in rows:
                    state = "at work" if works else f"{kind}:{event}"
                    seen.waits[state] = seen.waits.get(state, 0) + number

    thread = threading.Thread(target=watch, name="watch", daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()


def figures(clusters: Sequence[Cluster]) -> Iterator[Figure]:
    """Yield what share of the offered load each size carried, and the most verdicts a second."""
    for cluster in clusters:
        if cluster.size.check_seconds:
            yield Figure(
                key=f"cluster_{cluster.size.workers}_share",
                name=f"share of the offered load that {cluster.size.workers} simulated workers carry",
                unit="",
                samples=tuple(each.per_second / cluster.size.offered for each in cluster.turns),
            )
    fastest = max(clusters, key=lambda each: sum(turn.per_second for turn in each.turns))
    yield Figure(
        key="cluster_most",
        name=f"verdicts/s of the fastest simulated cluster, {fastest.size.workers} workers",
        unit="verdicts/s",
        samples=tuple(each.per_second for each in fastest.turns),
    )
