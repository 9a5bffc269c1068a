"""Bench step, one turn of a farm: programs are submitted as a run, and its workers judge them."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from farm_workers.bench.measure import BenchProgram, ExpectedWorth
from sqlalchemy import text

from farm import broker
from farm.errors import FarmError
from farm.judging.verdict import Outcome, Reason
from farm.runs.submit import submit
from tests.bench.around.answers import write_programs
from tests.bench.around.site import FarmAtWork, Used, options
from tests.bench.around.workers import Workers

#: Seconds between two looks whether a turn is over.
_LOOK_SECONDS = 0.05
#: Seconds without a verdict after which a turn has failed.
_PATIENCE_SECONDS = 120.0

_REASONS = {ExpectedWorth.PROVED: Reason.OK, ExpectedWorth.ERROR: Reason.ERROR}

_UNFINISHED = text("SELECT EXISTS (SELECT FROM checks WHERE status IN ('queued', 'running'))")

# A worker may find what was submitted before it is called. At the end its threads have nothing more to do,
# one after the other.
_TIMES = text("""
    WITH judged AS (
        SELECT started_at, decided_at, max(decided_at) OVER () AS ended, verdicts.wall_seconds
        FROM jobs JOIN checks ON checks.id = check_id JOIN verdicts USING (check_id) WHERE run_id = :run
    ), last AS (
        SELECT ended - decided_at AS early FROM judged ORDER BY decided_at DESC LIMIT :lanes
    ), times AS (
        SELECT max(ended) - least(min(started_at), CAST(:called AS timestamptz)) AS whole,
               (SELECT sum(early) FROM last) AS done, sum(wall_seconds) AS lean
        FROM judged
    )
    SELECT CAST(EXTRACT(epoch FROM whole) AS float8) AS seconds, lean AS lean_seconds,
           CAST(EXTRACT(epoch FROM done) AS float8) AS done_seconds
    FROM times
""")


@dataclass(frozen=True, kw_only=True, slots=True)
class Judged:
    """What one turn took: `seconds` from the call to the last verdict, by the database's clock.

    `lean_seconds` are those that Lean was asked, in all of `lanes` threads; `done_seconds` those for which
    threads waited at the end for the last one. `worker_seconds` is processor time of the workers' own
    processes, `used` what the servers used.
    """

    run_id: str
    checks: int
    lanes: int
    seconds: float
    lean_seconds: float
    done_seconds: float
    worker_seconds: float
    used: Used

    @property
    def per_second(self) -> float:
        """Checks per second."""
        return self.checks / self.seconds

    @property
    def overhead_ms(self) -> float:
        """Processor time of the worker's process and of the servers, in milliseconds per check."""
        spent = self.worker_seconds + self.used.postgres_seconds + self.used.redis_seconds
        return self.each_ms(spent)

    @property
    def lost_ms(self) -> float:
        """The time of threads in which a check waited and Lean was not asked, in milliseconds per check."""
        return self.each_ms(self.lanes * self.seconds - self.done_seconds - self.lean_seconds)

    def each_ms(self, seconds: float) -> float:
        """Return seconds of all as milliseconds of one check."""
        return seconds / self.checks * 1000


def judged(
    farm: FarmAtWork, workers: Workers, environment: str, given: Sequence[BenchProgram], *, truly: bool = True
) -> Judged:
    """Have programs judged and return what it took.

    Raises FarmError when one does not come out as it must; unless `truly`, only when it was not judged.
    """
    manifest = write_programs(farm.folder / "programs.jsonl", given)
    run = submit(farm.store, [manifest], options(environment), known=farm.queries.served(), new_run=True)
    before, own = farm.used(), workers.cpu_seconds()
    called = farm.now()
    broker.call(farm.app, [environment])
    wait(farm, seconds=_PATIENCE_SECONDS)
    found = Judged(
        run_id=run.run_id,
        checks=len(given),
        lanes=workers.at_once,
        **_times(farm, run=run.run_id, called=called, lanes=workers.at_once),
        worker_seconds=workers.cpu_seconds() - own,
        used=farm.used().since(before),
    )
    _require(farm, run.run_id, given, truly=truly)
    return found


def _times(farm: FarmAtWork, **values: object) -> dict[str, float]:
    with farm.engine.connect() as connection:
        return dict(connection.execute(_TIMES, values).one()._mapping)


def wait(farm: FarmAtWork, *, seconds: float) -> None:
    """Wait until nothing is queued or running; what is asked costs the server next to nothing.

    Raises FarmError after so many seconds.
    """
    pause = threading.Event()
    with farm.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for _ in range(round(seconds / _LOOK_SECONDS)):
            if not connection.scalar(_UNFINISHED):
                return
            pause.wait(_LOOK_SECONDS)
    raise FarmError("the bench's worker did not judge its programs in time")


def _require(farm: FarmAtWork, run_id: str, given: Sequence[BenchProgram], *, truly: bool) -> None:
    verdicts = farm.queries.tally(run_id).verdicts
    if truly:
        wanted = Counter(_REASONS[program.worth] for program in given)
        got = {reason: number for (_, reason), number in verdicts.items()}
        if got != {str(reason): number for reason, number in wanted.items()}:
            raise FarmError(f"the bench's programs were judged {got}; expected: {dict(wanted)}")
    elif any(outcome == Outcome.JUDGE_ERROR for outcome, _ in verdicts):
        raise FarmError("some of the bench's programs could not be judged")
