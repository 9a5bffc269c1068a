"""What PostgreSQL reads grows with the lines, not with their square, though its statistics know nothing yet.

While a run is loaded ANALYZE counts none of its lines, and a plan for next to no lines is wrong for many.
Rows that were read, and looks at pages, are counted, not seconds: a busy machine changes nothing about them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import Engine, NullPool, create_engine, text

from farm.assembly.program import AssemblyOptions
from farm.judging.submit_options import SubmitOptions
from farm.manifest.lines import opened
from farm.reports.report import report
from farm.runs import revise
from farm.runs.pick import Pick
from farm.runs.prepare.manifests import preparing
from farm.runs.prune import PrunePlan, prune
from farm.store.attempt import Claim
from farm.store.loading import loading
from farm.store.postgres import connect, hashing
from farm.store.queries import Queries
from farm.store.transitions import Store
from tests.commands import write
from tests.farms import CORE, a_decision

_FEW, _MANY = 400, 4000
#: So many times as many lines may have so many times as many rows read; squared it would be a hundred times.
_MOST_GROWTH = 2.0 * _MANY / _FEW
#: A line is looked up in several tables several times, by each of the steps that it goes through.
_MOST_EACH = 150
#: As many checks as a worker claims or records at once.
_BATCH = 64

_TABLES = "runs, manifests, programs, checks, jobs, item_keys, attempts, verdicts"
_READ = text("""
    SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0)
               + heap_blks_hit + heap_blks_read + coalesce(idx_blks_hit, 0) + coalesce(idx_blks_read, 0))
    FROM pg_stat_user_tables JOIN pg_statio_user_tables USING (relid)
""")

#: What is measured, once all is ready for it.
Step = Callable[[], object]


@dataclass(frozen=True)
class Farm:
    """The store as a submitter and as a worker have it, each with one connection, and a folder."""

    submitter: Store
    worker: Store
    folder: Path

    @property
    def queries(self) -> Queries:
        return Queries(self.submitter.engine)

    def load(self, run_id: str, lines: int, *, races: bool = False, deadline: float | None = None) -> None:
        """Load so many lines, two in each group; the tables are counted when nobody sees them yet."""
        entries = (
            {"predicted_proof": f"theorem t{number} : True := trivial", "group": f"g{number // 2}"}
            for number in range(lines)
        )
        path = write(self.folder / run_id, *entries)
        options = SubmitOptions(
            assembly=AssemblyOptions(),
            environment="core",
            stop_on_first_proof=races,
            deadline_seconds=deadline,
        )
        with (
            preparing(options, self.queries.served()) as prepare,
            opened(path) as read,
            self.submitter.transaction() as connection,
            loading(connection, run_id, options, queue_limit=10**6, traceparent="traced") as run,
        ):
            run.open_manifest(path)
            for block in prepare(read, 0):
                run.add(block)
            run.close_manifest(read.fingerprint())
            self.ask("ANALYZE " + _TABLES)

    def judge(self, most: int) -> None:
        """Have so many checks proved, all of them running at once, as workers would."""
        held: list[Claim] = []
        while left := min(_BATCH, most - len(held)):
            held += self.worker.claim(["core"], worker="w", lease_seconds=600, most=left, traced=True)
        for first in range(0, most, _BATCH):
            batch = held[first : first + _BATCH]
            holds = [claim.hold for claim in batch]
            self.worker.extend(holds, lease_seconds=600)
            assert self.worker.lost(holds) == []
            recorded = self.worker.record([(claim, a_decision()) for claim in batch])
            self.worker.stop_rivals(recorded.proved)

    def ask(self, statement: str) -> None:
        """Carry out a statement as somebody else."""
        engine = create_engine(self.submitter.engine.url, poolclass=NullPool)
        with engine.begin() as connection:
            connection.execute(text(statement))

    def read(self) -> int:
        """Return how many rows have been read by now, and pages looked at."""
        for store in (self.submitter, self.worker):
            with store.engine.begin() as connection:
                connection.execute(text("SELECT pg_stat_force_next_flush()"))
        with self.submitter.engine.connect() as connection:
            return int(connection.scalar(_READ) or 0)

    def read_by(self, step: Step) -> int:
        """Return how much a step reads."""
        before = self.read()
        step()
        return self.read() - before


@pytest.fixture
def farm(database: Engine, tmp_path: Path) -> Iterator[Farm]:
    url = database.url.render_as_string(hide_password=False)
    engines = [connect(url, application="test", connections=1, works=works) for works in (False, True)]
    farm = Farm(*map(Store, engines), tmp_path)
    farm.submitter.register([CORE])
    yield farm
    for engine in engines:
        engine.dispose()


def fresh(farm: Farm, lines: int) -> Step:
    return lambda: farm.load("fresh", lines)


def known(farm: Farm, lines: int) -> Step:
    farm.load("before", lines)
    farm.judge(lines)
    return lambda: farm.load("known", lines)


def waited_for(farm: Farm, lines: int) -> Step:
    farm.load("before", lines)
    return lambda: farm.load("shared", lines)


def won_before(farm: Farm, lines: int) -> Step:
    farm.load("before", lines)
    farm.judge(lines // 2)
    return lambda: farm.load("race", lines, races=True)


def judged(farm: Farm, lines: int) -> Step:
    farm.load("judged", lines)
    return lambda: farm.judge(lines)


def won(farm: Farm, lines: int) -> Step:
    farm.load("race", lines, races=True)
    return lambda: farm.judge(lines)


def cancelled(farm: Farm, lines: int) -> Step:
    farm.load("cancelled", lines)
    return lambda: revise.cancel(farm.submitter, "cancelled")


def retried(farm: Farm, lines: int) -> Step:
    farm.load("retried", lines)
    farm.judge(lines)
    return lambda: revise.retry(farm.submitter, "retried", Pick(verdict=("proved",)))


def cancelled_of_two(farm: Farm, lines: int) -> Step:
    farm.load("cancelled", lines)
    farm.load("goes on", lines)
    return lambda: revise.cancel(farm.submitter, "cancelled")


def retried_of_two(farm: Farm, lines: int) -> Step:
    farm.load("retried", lines)
    farm.load("stays", lines)
    farm.judge(lines)
    return lambda: revise.retry(farm.submitter, "retried", Pick(verdict=("proved",)))


def late(farm: Farm, lines: int) -> Step:
    farm.load("late", lines, deadline=0.0)
    return lambda: farm.submitter.sweep(checker_version="1")


def lost(farm: Farm, lines: int) -> Step:
    farm.load("lost", lines)
    for _ in range(0, lines, _BATCH):
        farm.worker.claim(["core"], worker="dead", lease_seconds=-1, most=_BATCH)
    return lambda: farm.worker.sweep(checker_version="1")


def looked_at(farm: Farm, lines: int) -> Step:
    farm.load("looked at", lines)
    farm.judge(lines)

    def look() -> None:
        farm.queries.tally("looked at")
        farm.queries.awaited("looked at")
        farm.queries.solved("looked at")
        farm.queries.queued_in("looked at")
        farm.queries.unserved("looked at", seconds=1.0)
        farm.queries.untiered("looked at")
        farm.queries.runs()

    return look


def read_out(farm: Farm, lines: int) -> Step:
    farm.load("read out", lines)
    farm.judge(lines)
    return lambda: list(farm.queries.judged("read out", 0))


def reported(farm: Farm, lines: int) -> Step:
    farm.load("reported", lines)
    farm.judge(lines)
    run = farm.queries.run("reported")
    return lambda: report(farm.queries, [run])


def pruned(farm: Farm, lines: int) -> Step:
    farm.load("pruned", lines)
    farm.load("stays", lines // 2)
    farm.judge(lines)
    farm.ask("UPDATE runs SET created_at = created_at - interval '1 day' WHERE id = 'pruned'")
    farm.ask("UPDATE verdicts SET decided_at = decided_at - interval '1 day'")
    return lambda: prune(farm.submitter, PrunePlan(older_than_seconds=3600.0, unexported=True))


@pytest.mark.parametrize(
    "ready",
    [
        *(fresh, known, waited_for, won_before),
        *(judged, won, cancelled, cancelled_of_two, retried, retried_of_two, late, lost),
        *(looked_at, read_out, reported, pruned),
    ],
)
def test_what_is_read_grows_with_the_lines(farm: Farm, ready: Callable[[Farm, int], Step]) -> None:
    few = farm.read_by(ready(farm, _FEW))
    farm.ask("TRUNCATE " + _TABLES)
    many = farm.read_by(ready(farm, _MANY))
    assert _MANY < many < _MOST_EACH * _MANY, (few, many)
    assert many < _MOST_GROWTH * few, (few, many)


def test_a_loop_that_is_only_discouraged_is_not_compiled(farm: Farm) -> None:
    with farm.worker.engine.connect() as connection:
        assert connection.scalar(text("SHOW jit")) == "off"
    with farm.submitter.transaction() as connection, hashing(connection):
        assert connection.scalar(text("SHOW jit")) == "off"
