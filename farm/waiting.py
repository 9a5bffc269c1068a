"""Who waits for a check: lines that share one, part from it, win for their group, or are cancelled.

Several jobs may wait for one check. These are the changes to who does; each is a part of a transaction of
`farm.store`, and nothing here commits. Whoever changes jobs locks their checks first, and in the order of
their ids: so no two transactions wait for each other.
"""

from __future__ import annotations

from collections.abc import Sequence

from psycopg import Cursor
from psycopg.rows import DictRow
from sqlalchemy import Connection, text

from farm.job import Cancelled

#: What a check is made of, apart from its state and its identity.
WORK = (
    "program_sha256, submitted, challenge_sha256, challenge_name, environment, tier, confirm, axioms, policy,"
    " wall_seconds, cpu_seconds, memory_mib, environment_digest, checker_version, priority"
)

# Every job but the first of each check; the one that brought the check is the first.
_OTHERS = """
    SELECT run_id, manifest, line, check_id, nextval(pg_get_serial_sequence('checks', 'id')) AS new_id
    FROM (
        SELECT *, row_number() OVER (PARTITION BY check_id ORDER BY shared, run_id, manifest, line) AS place
        FROM jobs WHERE check_id = ANY(%(ids)s) AND cancelled IS NULL
    ) AS waiting WHERE place > 1
"""

# And the jobs of one run whose check went away, unshared, while the run was being loaded.
_LEFT_ALONE = """
    SELECT run_id, manifest, line, check_id, nextval(pg_get_serial_sequence('checks', 'id')) AS new_id
    FROM jobs JOIN checks ON checks.id = check_id
    WHERE run_id = :run_id AND shared AND checks.identity IS NULL
"""

_PART = """
    WITH parting AS ({parting}), made AS (
        INSERT INTO checks (id, turn, status, {work})
        SELECT new_id, turn, 'queued', {work} FROM parting JOIN checks ON checks.id = check_id
    )
    UPDATE jobs SET check_id = new_id, shared = false FROM parting
    WHERE (jobs.run_id, jobs.manifest, jobs.line) = (parting.run_id, parting.manifest, parting.line)
"""

# Nearly always nothing of it races, and this is all that a verdict costs then. Of an EXISTS the planner
# believes, before it knows a table, that reading it from its beginning finds something soon.
_RACES = "SELECT bool_or(races) AS any FROM jobs WHERE check_id = ANY(%(ids)s)"

_RIVALS = """
    WITH won AS (
        SELECT DISTINCT run_id, coalesce(group_name, name) AS rivals
        FROM jobs JOIN verdicts USING (check_id)
        WHERE {proved} AND races AND verdict = 'proved'
    ), locked AS (
        SELECT checks.id FROM checks WHERE status IN ('queued', 'running') AND id IN (
            SELECT check_id FROM jobs JOIN won
            ON jobs.run_id = won.run_id AND coalesce(group_name, name) = rivals
            AND hashtextextended(coalesce(group_name, name), 0) = hashtextextended(rivals, 0)
            WHERE races AND cancelled IS NULL)
        ORDER BY id FOR UPDATE
    )
    UPDATE jobs SET cancelled = 'group' FROM won, locked
    WHERE jobs.run_id = won.run_id AND coalesce(group_name, name) = rivals
            AND hashtextextended(coalesce(group_name, name), 0) = hashtextextended(rivals, 0)
      AND races AND cancelled IS NULL AND check_id = locked.id
    RETURNING check_id
"""
# Two statements: a plan for either would read every job there is.
_RIVALS_OF_CHECKS = text(_RIVALS.format(proved="check_id = ANY(:ids)"))
_RIVALS_OF_RUN = text(_RIVALS.format(proved="run_id = :run_id"))

_UNFINISHED = text("""
    SELECT id FROM checks WHERE status = ANY(:statuses)
    AND id IN (SELECT check_id FROM jobs WHERE run_id = :run_id AND cancelled IS NULL)
    ORDER BY id FOR UPDATE
""")

_CANCEL = text("""
    UPDATE jobs SET cancelled = :why
    WHERE run_id = :run_id AND cancelled IS NULL AND check_id = ANY(:ids)
""")

_DROP = text("""
    WITH idle AS (
        SELECT id, status, attempt, worker, started_at FROM checks
        WHERE id = ANY(:ids) AND status IN ('queued', 'running')
          AND NOT EXISTS (SELECT FROM jobs WHERE check_id = checks.id AND cancelled IS NULL)
    ), dropped AS (
        UPDATE checks SET status = 'cancelled', lease_until = NULL, identity = NULL
        FROM idle WHERE checks.id = idle.id
    )
    INSERT INTO attempts (check_id, number, worker, started_at, outcome, detail)
    SELECT id, attempt, worker, started_at, 'cancelled', 'nobody waits for it any more'
    FROM idle WHERE status = 'running'
""")


def part(cursor: Cursor[DictRow], check_ids: Sequence[int]) -> int:
    """Give every job but the first of each check a new check of its own, and return how many were made.

    For what came out by chance: what a clock or a full machine decided about one line says nothing about
    another. The checks are locked.
    """
    return cursor.execute(_PART.format(parting=_OTHERS, work=WORK), {"ids": list(check_ids)}).rowcount


def part_left_alone(connection: Connection, run_id: str) -> int:
    """Give jobs of a run a new check whose check was taken from under them, and return how many.

    A run that is being loaded is seen by nobody: what it attached itself to can end meanwhile with a verdict
    that is not to be shared, or be cancelled.
    """
    return connection.execute(text(_PART.format(parting=_LEFT_ALONE, work=WORK)), {"run_id": run_id}).rowcount


def any_races(cursor: Cursor[DictRow], check_ids: Sequence[int]) -> bool:
    """Whether a line that waits for one of these checks has rivals, which its proof would end."""
    row = cursor.execute(_RACES, {"ids": list(check_ids)}).fetchone()
    return row is not None and bool(row["any"])


def stop_rivals(connection: Connection, check_ids: Sequence[int]) -> int:
    """Cancel what is unfinished in the groups that these checks won; returns how many lines.

    Nothing may be locked yet, or all that is unfinished of these groups: two proofs of one group, recorded at
    the same moment, would wait for each other.
    """
    return _cancelled(connection, connection.scalars(_RIVALS_OF_CHECKS, {"ids": list(check_ids)}).all())


def stop_rivals_of_run(connection: Connection, run_id: str) -> int:
    """Cancel what is unfinished in those groups of a run that are won already, as `stop_rivals` does."""
    return _cancelled(connection, connection.scalars(_RIVALS_OF_RUN, {"run_id": run_id}).all())


def _cancelled(connection: Connection, lost: Sequence[int]) -> int:
    drop(connection, lost)
    return len(lost)


def cancel(connection: Connection, run_id: str, why: Cancelled, statuses: Sequence[str]) -> int:
    """Cancel the lines of a run whose checks have one of these statuses, and return how many."""
    ids = connection.scalars(_UNFINISHED, {"run_id": run_id, "statuses": list(statuses)}).all()
    if not ids:
        return 0
    cancelled = connection.execute(_CANCEL, {"run_id": run_id, "why": why, "ids": ids}).rowcount
    drop(connection, ids)
    return cancelled


def drop(connection: Connection, check_ids: Sequence[int]) -> None:
    """Cancel those of these checks that nobody waits for any more. They are locked."""
    if check_ids:
        connection.execute(_DROP, {"ids": list(check_ids)})
