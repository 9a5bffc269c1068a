"""Changes to the jobs that wait for a check: they share it, part from it, lose to a rival, or are cancelled.

Several jobs may wait for one check. Each change is a part of a caller's transaction. A transaction that
changes jobs locks their checks first, in the order of their ids, which prevents deadlocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psycopg import Cursor
from psycopg.rows import DictRow
from sqlalchemy import Connection, Row, text

from farm.characters import storable
from farm.judging.states import CancelReason
from farm.store.new_runs import WORK
from farm.store.postgres import hashing

_WORK = ", ".join(WORK)

# Every job but the first of each check, which is the job that brought the check.
_OTHERS = """
    SELECT run_id, manifest, line, check_id, nextval(pg_get_serial_sequence('checks', 'id')) AS new_id
    FROM (
        SELECT *, row_number() OVER (PARTITION BY check_id ORDER BY shared, run_id, manifest, line) AS place
        FROM jobs WHERE check_id = ANY(%(ids)s) AND cancelled IS NULL
    ) AS waiting WHERE place > 1
"""

# The jobs of one run whose check lost its cache key while the run was being loaded.
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

# Nearly always no line races, and a verdict costs only this query. With EXISTS the planner, without
# statistics, would scan the table from its beginning.
_RACES = "SELECT bool_or(races) AS any FROM jobs WHERE check_id = ANY(%(ids)s)"

# Those of the rivals that have lost and are unfinished, their checks locked.
_LOST = """
    WITH won AS ({won})
    SELECT lost.* FROM (
        SELECT rival.run_id, manifest, line, check_id FROM {rivals}
        WHERE races AND cancelled IS NULL ORDER BY check_id
    ) AS lost, LATERAL (
        SELECT FROM checks WHERE id = lost.check_id AND status IN ('queued', 'running')
        LIMIT 1 FOR NO KEY UPDATE
    ) AS unfinished
"""
# Of a few checks. Each is looked up by itself (OFFSET 0 keeps that apart), in indexes that find nothing else:
# while statistics know of no lines, going through all that race seems as good.
_LOST_TO_CHECKS = text(
    _LOST.format(
        won="""
            SELECT DISTINCT run_id || coalesce(group_name, name) AS rivals
            FROM unnest(CAST(:ids AS bigint[])) AS done (id), LATERAL (
                SELECT verdict FROM verdicts WHERE check_id = done.id LIMIT 1
            ) AS judged, LATERAL (
                SELECT * FROM jobs WHERE check_id = done.id OFFSET 0
            ) AS line
            WHERE verdict IN ('proved', 'disproved') AND races AND coalesce(group_name, name) <> ''
        """,
        rivals="""
            won JOIN LATERAL (
                SELECT *, run_id || coalesce(group_name, name) AS own FROM jobs
                WHERE hashtextextended(run_id || coalesce(group_name, name), 0) = hashtextextended(rivals, 0)
                  AND races OFFSET 0
            ) AS rival ON own = rivals
        """,
    )
)
# Of a whole run, by going through it.
_LOST_IN_RUN = text(
    _LOST.format(
        won="""
            SELECT DISTINCT coalesce(group_name, name) AS rivals FROM jobs, LATERAL (
                SELECT FROM verdicts
                WHERE verdicts.check_id = jobs.check_id AND verdict IN ('proved', 'disproved') LIMIT 1
            ) AS proof
            WHERE run_id = :run_id AND races AND coalesce(group_name, name) <> ''
        """,
        rivals="""
            won JOIN jobs AS rival ON rival.run_id = :run_id AND coalesce(group_name, name) = rivals
        """,
    )
)
_LOSE = text("""
    UPDATE jobs SET cancelled = 'group'
    FROM unnest(
        CAST(:runs AS text[]), CAST(:manifests AS integer[]), CAST(:lines AS integer[]),
        CAST(:check_ids AS bigint[])
    ) AS lost (run_id, manifest, line, check_id)
    WHERE (jobs.run_id, jobs.manifest, jobs.line) = (lost.run_id, lost.manifest, lost.line)
      AND jobs.check_id = lost.check_id AND cancelled IS NULL
""")

# All lines of a run, or those with these numbers, or of these groups.
_SOME = """
    (CAST(:lines AS integer[]) IS NULL OR line = ANY(:lines))
    AND (CAST(:groups AS text[]) IS NULL OR coalesce(group_name, name) = ANY(:groups))
"""
_UNFINISHED_OF = """
    SELECT locked.id FROM (
        SELECT DISTINCT check_id AS id FROM jobs
        WHERE run_id = :run_id AND cancelled IS NULL AND {some} ORDER BY id
    ) AS waited, LATERAL (
        SELECT id FROM checks WHERE checks.id = waited.id AND status = ANY(:statuses)
        LIMIT 1 FOR NO KEY UPDATE
    ) AS locked
"""
_UNFINISHED = text(_UNFINISHED_OF.format(some=_SOME))

_CANCEL_OF = """
    UPDATE jobs SET cancelled = :why FROM unnest(CAST(:ids AS bigint[])) AS ended (id)
    WHERE run_id = :run_id AND cancelled IS NULL AND check_id = ended.id AND {some}
"""
_CANCEL = text(_CANCEL_OF.format(some=_SOME))

_DROP = text("SELECT drop_idle_checks(CAST(:ids AS bigint[]))")

# One of the lines that wait for a check is not shared: the check and its cost count for this line's run.
_HEIRS = text("""
    SELECT run_id, manifest, line FROM (
        SELECT DISTINCT ON (check_id) run_id, manifest, line, shared FROM jobs
        WHERE check_id = ANY(:ids) AND cancelled IS NULL
        ORDER BY check_id, shared, run_id, manifest, line
    ) AS first WHERE shared
""")
_INHERIT = text("""
    UPDATE jobs SET shared = false
    FROM unnest(CAST(:runs AS text[]), CAST(:manifests AS integer[]), CAST(:lines AS integer[]))
         AS heir (run_id, manifest, line)
    WHERE (jobs.run_id, jobs.manifest, jobs.line) = (heir.run_id, heir.manifest, heir.line)
""")


def part(cursor: Cursor[DictRow], check_ids: Sequence[int]) -> int:
    """Give every job but the first of each check a new check of its own, and return their number.

    For verdicts by chance: a timeout, or memory shortage, of one line proves nothing about another. The
    caller has locked the checks.
    """
    return cursor.execute(_PART.format(parting=_OTHERS, work=_WORK), {"ids": list(check_ids)}).rowcount


def part_left_alone(connection: Connection, run_id: str) -> None:
    """Give jobs of a run new checks in place of checks that can no longer be shared.

    Other transactions do not see a run that is being loaded, so a check to which it attached a line can end
    with a verdict that is not shared, or be cancelled.
    """
    connection.execute(text(_PART.format(parting=_LEFT_ALONE, work=_WORK)), {"run_id": run_id})


def any_races(cursor: Cursor[DictRow], check_ids: Sequence[int]) -> bool:
    """Whether a line that waits for one of these checks has rivals, which its proof would end."""
    row = cursor.execute(_RACES, {"ids": list(check_ids)}).fetchone()
    return row is not None and bool(row["any"])


def stop_rivals(connection: Connection, check_ids: Sequence[int]) -> None:
    """Cancel the unfinished lines of the groups that these checks won.

    The caller has locked no row, or all unfinished checks of these groups: two proofs of one group, recorded
    at the same moment, would deadlock otherwise.
    """
    _lose(connection, connection.execute(_LOST_TO_CHECKS, {"ids": list(check_ids)}).all())


def stop_rivals_of_run(connection: Connection, run_id: str) -> None:
    """Cancel the unfinished lines of the groups of a run that are won already, as `stop_rivals` does."""
    with hashing(connection):
        lost = connection.execute(_LOST_IN_RUN, {"run_id": run_id}).all()
    _lose(connection, lost)


def _lose(connection: Connection, lost: Sequence[Row[Any]]) -> None:
    """Cancel lines whose checks are locked, except lines that have another check by now."""
    if not lost:
        return
    runs, manifests, lines, check_ids = map(list, zip(*lost, strict=True))
    values = {"runs": runs, "manifests": manifests, "lines": lines, "check_ids": check_ids}
    connection.execute(_LOSE, values)
    leave_behind(connection, check_ids)


def cancel(
    connection: Connection,
    run_id: str,
    why: CancelReason,
    statuses: Sequence[str],
    *,
    lines: Sequence[int] | None = None,
    groups: Sequence[str] | None = None,
) -> int:
    """Cancel the lines of a run whose checks have one of these statuses, and return how many.

    If lines or groups are named, only those lines and the lines of those groups.
    """
    some = {
        "lines": None if lines is None else list(lines),
        "groups": None if groups is None else [storable(each) for each in groups],
    }
    ids = connection.scalars(_UNFINISHED, {"run_id": run_id, "statuses": list(statuses), **some}).all()
    if not ids:
        return 0
    with hashing(connection):
        values = {"run_id": run_id, "why": why, "ids": ids, **some}
        cancelled = connection.execute(_CANCEL, values).rowcount
    leave_behind(connection, ids)
    return cancelled


def leave_behind(connection: Connection, check_ids: Sequence[int]) -> None:
    """Settle checks, all locked, for which some lines wait no longer.

    Unfinished checks without a waiting line are cancelled. Where the line that was not shared has gone, the
    next one takes its place: otherwise the check's cost would count for no run.
    """
    if not check_ids:
        return
    connection.execute(_DROP, {"ids": list(check_ids)})
    heirs = connection.execute(_HEIRS, {"ids": list(check_ids)}).all()
    if heirs:
        runs, manifests, lines = map(list, zip(*heirs, strict=True))
        connection.execute(_INHERIT, {"runs": runs, "manifests": manifests, "lines": lines})
