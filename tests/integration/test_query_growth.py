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

pytestmark = pytest.mark.whole

_FEW, _MANY = 200, 2000
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
#: Steps by what becomes of a run in each; what comes before a step makes all ready for it.
Steps = Iterator[tuple[str, Step]]


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


def one_run(farm: Farm, lines: int) -> Steps:
    yield "loaded", lambda: farm.load("first", lines)
    yield "judged", lambda: farm.judge(lines)
    yield "looked at", lambda: looked_at(farm.queries, "first")
    yield "read out", lambda: list(farm.queries.judged("first", 0))
    yield "reported", lambda: report(farm.queries, [farm.queries.run("first")])
    yield "loaded with known lines", lambda: farm.load("known", lines)


def looked_at(queries: Queries, run_id: str) -> None:
    queries.tally(run_id)
    queries.awaited(run_id)
    queries.solved(run_id)
    queries.queued_in(run_id)
    queries.unserved(run_id, seconds=1.0)
    queries.untiered(run_id)
    queries.runs()


def two_runs(farm: Farm, lines: int) -> Steps:
    farm.load("cancelled", lines)
    yield "loaded with lines that are waited for", lambda: farm.load("goes on", lines)
    yield "cancelled beside another", lambda: revise.cancel(farm.submitter, "cancelled")


def two_judged_runs(farm: Farm, lines: int) -> Steps:
    farm.load("retried", lines)
    farm.load("stays", lines)
    farm.judge(lines)
    yield "retried beside another", lambda: retry(farm)


def retry(farm: Farm) -> None:
    revise.retry(farm.submitter, "retried", Pick(verdict=("proved",)))


def retried(farm: Farm, lines: int) -> Steps:
    farm.load("retried", lines)
    farm.judge(lines)
    yield "retried", lambda: retry(farm)


def cancelled(farm: Farm, lines: int) -> Steps:
    farm.load("cancelled", lines)
    yield "cancelled", lambda: revise.cancel(farm.submitter, "cancelled")


def won_before(farm: Farm, lines: int) -> Steps:
    farm.load("before", lines)
    farm.judge(lines // 2)
    yield "loaded with races that are won", lambda: farm.load("race", lines, races=True)


def won(farm: Farm, lines: int) -> Steps:
    farm.load("race", lines, races=True)
    yield "races judged", lambda: farm.judge(lines)


def late(farm: Farm, lines: int) -> Steps:
    farm.load("late", lines, deadline=0.0)
    yield "swept at its deadline", lambda: farm.submitter.sweep(checker_version="1")


def lost(farm: Farm, lines: int) -> Steps:
    farm.load("lost", lines)
    for _ in range(0, lines, _BATCH):
        farm.worker.claim(["core"], worker="dead", lease_seconds=-1, most=_BATCH)
    yield "swept with its worker lost", lambda: farm.worker.sweep(checker_version="1")


def pruned(farm: Farm, lines: int) -> Steps:
    farm.load("pruned", lines)
    farm.load("stays", lines // 2)
    farm.judge(lines)
    farm.ask("UPDATE runs SET created_at = created_at - interval '1 day' WHERE id = 'pruned'")
    farm.ask("UPDATE verdicts SET decided_at = decided_at - interval '1 day'")
    plan = PrunePlan(older_than_seconds=3600.0, unexported=True)
    yield "pruned", lambda: prune(farm.submitter, plan)


@pytest.mark.parametrize(
    "steps",
    [one_run, two_runs, two_judged_runs, retried, cancelled, won_before, won, late, lost, pruned],
)
def test_what_is_read_grows_with_the_lines(farm: Farm, steps: Callable[[Farm, int], Steps]) -> None:
    few = {name: farm.read_by(step) for name, step in steps(farm, _FEW)}
    farm.ask("TRUNCATE " + _TABLES)
    many = {name: farm.read_by(step) for name, step in steps(farm, _MANY)}
    told = {name: (few[name], many[name]) for name in many}
    assert [name for name, read in many.items() if not _MANY < read < _MOST_EACH * _MANY] == [], told
    assert [name for name, read in many.items() if not read < _MOST_GROWTH * few[name]] == [], told


def test_a_loop_that_is_only_discouraged_is_not_compiled(farm: Farm) -> None:
    with farm.worker.engine.connect() as connection:
        assert connection.scalar(text("SHOW jit")) == "off"
    with farm.submitter.transaction() as connection, hashing(connection):
        assert connection.scalar(text("SHOW jit")) == "off"
