"""Sweeps: checks of dead workers return to the queue, and lines past their deadline are cancelled."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from sqlalchemy import Engine, text

from farm.judging.states import CancelReason, Status
from farm.store import tallies, waiting
from farm.store.postgres import reaching

# One sweep at a time on a database: a row that is always there, which only who records verdicts can lock.
_SWEEPING = text("SELECT 1 FROM sweeping FOR NO KEY UPDATE SKIP LOCKED")

# A dead worker does not extend its leases. The last failure allowed ends the check instead of queueing it
# again: a check that crashes every worker must not be retried for ever.
_TAKE_BACK = text("""
    WITH expired AS (
        SELECT id, attempt, worker, started_at, environment, tier, failures + 1 >= :most AS spent FROM checks
        WHERE status = 'running' AND lease_until < now()
        ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
    ), moved AS (
        UPDATE checks SET
            status = CASE WHEN spent THEN 'done' ELSE 'queued' END, lease_until = NULL,
            failures = failures + 1, identity = CASE WHEN NOT spent THEN identity END
        FROM expired WHERE checks.id = expired.id
    ), ended AS (
        INSERT INTO attempts (check_id, number, worker, started_at, outcome, detail)
        SELECT id, attempt, worker, started_at, 'lost', 'the worker stopped responding' FROM expired
        RETURNING outcome
    ), counted AS (
        INSERT INTO tallies SELECT 'attempts', outcome, count(*) FROM ended GROUP BY outcome
    ), judged AS (
        INSERT INTO verdicts (
            check_id, attempt, verdict, reason, detail, messages, hits, wall_seconds, cpu_seconds,
            peak_memory_kib, isolation, environment_digest, toolchain, checker_version)
        SELECT id, attempt, 'judge_error', 'worker_lost', 'every worker that took it stopped responding',
               '[]', '[]', 0, 0, 0, '', '', '', :checker_version
        FROM expired WHERE spent
    )
    SELECT environment, tier, count(*) AS leases, count(*) FILTER (WHERE spent) AS ended
    FROM expired GROUP BY environment, tier
""")

_LATE = text("SELECT id FROM runs WHERE deadline_at < now() ORDER BY id")

# Running checks may return to the queue, so the deadline stays until the run has none.
_OVER = text("""
    UPDATE runs SET deadline_at = NULL
    WHERE deadline_at < now() AND NOT EXISTS (
        SELECT FROM jobs JOIN checks ON checks.id = check_id
        WHERE run_id = runs.id AND cancelled IS NULL AND status IN ('queued', 'running'))
""")


@dataclass(frozen=True, kw_only=True, slots=True)
class GivenUp:
    """How many checks of an environment and tier ended with their last lease."""

    environment: str
    tier: str
    checks: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Swept:
    """The result of a sweep: expired leases, and lines past their deadline."""

    taken_back: int = 0
    past_deadline: int = 0
    given_up: tuple[GivenUp, ...] = ()


def sweep(engine: Engine, *, most: int, checker_version: str, answer_seconds: float = math.inf) -> Swept:
    """Requeue checks of dead workers, and cancel lines past their deadline; raises `ServerDown`.

    After `most` failed attempts a check ends as `judge_error`. One sweep runs at a time; a second one does
    nothing. Nor does one whose transaction takes longer than `answer_seconds` to begin: PostgreSQL hung, and
    with it all heartbeats.
    """
    asked_at = time.monotonic()
    with reaching(engine), engine.begin() as connection:
        if connection.scalar(_SWEEPING) is None:
            return Swept()
        if time.monotonic() - asked_at > answer_seconds:
            return Swept()
        expired = connection.execute(_TAKE_BACK, {"most": most, "checker_version": checker_version}).all()
        connection.execute(_OVER)
        tallies.add_up(connection)
        late = connection.scalars(_LATE).all()
    return Swept(
        taken_back=sum(row.leases for row in expired),
        past_deadline=sum(_past_deadline(engine, run_id) for run_id in late),
        given_up=tuple(
            GivenUp(environment=row.environment, tier=row.tier, checks=row.ended)
            for row in expired
            if row.ended
        ),
    )


def _past_deadline(engine: Engine, run_id: str) -> int:
    """Cancel the queued checks of a run, in a transaction that locks nothing else."""
    with reaching(engine), engine.begin() as connection:
        return waiting.cancel(connection, run_id, CancelReason.DEADLINE, (Status.QUEUED,))
