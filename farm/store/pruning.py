"""Deletes old runs, their lines, and checks that no line waits for; the caller commits.

A prune skips rows that another transaction has locked, and the next prune finds them; only a text that is
skipped while its last check is deleted may stay for good. Its transactions are short, so others do not wait
long for it. It locks rows first and decides then, and other transactions lock (FOR KEY SHARE) the rows to
which they are about to refer: a check whose verdict answers a line, a stored text, a batch that has an item,
a run to recheck. So no row is deleted that another transaction is about to need.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from sqlalchemy import Connection, Engine, text

from farm.errors import gone
from farm.store.new_lines import TEXT_COLUMNS
from farm.store.postgres import reaching

#: Why an old run stays: it has unfinished lines; it was judged, exported or cancelled since; its manifests
#: lack verdicts; or it has items of a later batch, or another transaction changed or locked it.
Reason = Literal["unfinished", "recent", "unexported", "in_use"]

#: Numbers of runs and of verdicts that one query reads.
_RUNS, _VERDICTS = 500, 20_000

# Each row is looked up in an index, whatever the statistics say of tables that just shrank or grew.
_LOOK_UP = text("""
    SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_hashjoin = off;
    SET LOCAL enable_mergejoin = off; SET LOCAL jit = off
""")
# A deletion that a crash loses is repeated by the next prune. A prune's writes go to the disk at once: at the
# end of a checkpoint they would delay the commits of all other transactions.
_BE_QUICK = text("SET LOCAL synchronous_commit = off; SET LOCAL backend_flush_after = '256kB'")

_AGO = text("SELECT now() - :seconds * interval '1 second'")

# A run's version (xmin) shows whether it was changed since; a retry changes the run.
_OLD = """
    SELECT old.id, created_at, version, coalesce(lines, 0) AS lines, CASE
        WHEN unfinished THEN 'unfinished'
        WHEN greatest(decided_at, exported_at, cancelled_at) >= :before THEN 'recent'
        WHEN unexported AND is_for_files THEN 'unexported' END AS reason
    FROM (
        SELECT id, created_at, owner IS NULL AND options -> 'recheck' IS NULL AS is_for_files,
               cancelled_at, xmin::text AS version FROM runs
        WHERE owner IS {owner} AND created_at < :before AND (created_at, id) > (:at, :id)
        ORDER BY created_at, id LIMIT :most
    ) AS old
    CROSS JOIN LATERAL (
        SELECT sum(lines)::bigint AS lines, bool_or(unfinished) AS unfinished,
               max(decided_at) AS decided_at, max(exported_at) AS exported_at,
               bool_or(decided_at >= coalesce(exported_at, '-infinity')) AS unexported
        FROM (
            SELECT manifest, count(*) AS lines, max(verdict.at) AS decided_at,
                   bool_or(cancelled IS NULL AND verdict.at IS NULL) AS unfinished
            FROM jobs LEFT JOIN LATERAL (
                SELECT decided_at AS at FROM verdicts
                WHERE verdicts.check_id = jobs.check_id AND cancelled IS NULL LIMIT 1
            ) AS verdict ON true
            WHERE run_id = old.id GROUP BY manifest
        ) AS judged
        LEFT JOIN LATERAL (
            SELECT exported_at FROM manifests WHERE run_id = old.id AND number = judged.manifest LIMIT 1
        ) AS written ON true
    ) AS known
    ORDER BY created_at, id
"""
_KINDS = ("NULL", "NOT NULL")  # manifests, and batches: each has an index of its own

_HOLD = text("SELECT FROM runs WHERE id = :id FOR KEY SHARE")
_UNCHANGED = text("""
    SELECT id FROM unnest(CAST(:ids AS text[]), CAST(:versions AS text[])) AS known (run, version)
    JOIN runs ON id = run AND xmin::text = version FOR UPDATE OF runs SKIP LOCKED
""")
_DELETE_RUNS = text("""
    WITH gone AS (
        DELETE FROM runs WHERE id = ANY(:ids) AND NOT EXISTS (
            SELECT FROM runs AS later
            WHERE later.options ? 'places' AND later.id <> runs.id
              AND later.options -> 'places' @> jsonb_build_array(jsonb_build_array(runs.id)))
        RETURNING id
    )
    INSERT INTO pruned_runs SELECT id FROM gone RETURNING run_id
""")

_LEFT = text("SELECT run_id FROM pruned_runs")
_DELETE_LINES = text("""
    DELETE FROM jobs WHERE ctid = ANY(ARRAY(
        SELECT ctid FROM jobs WHERE run_id = ANY(:ids) FOR UPDATE SKIP LOCKED))
""")
# From the last line on: the index keeps entries of deleted lines until no transaction can see them.
_DELETE_SOME_LINES = text("""
    WITH gone AS (
        DELETE FROM jobs WHERE ctid = ANY(ARRAY(
            SELECT ctid FROM jobs WHERE run_id = :id AND (manifest, line) > (:manifest, :line)
            ORDER BY manifest, line LIMIT :most FOR UPDATE SKIP LOCKED))
        RETURNING manifest, line
    )
    SELECT manifest, line, count(*) OVER () AS lines FROM gone ORDER BY manifest DESC, line DESC LIMIT 1
""")
_FORGET = text("""
    DELETE FROM pruned_runs
    WHERE run_id = ANY(:ids) AND NOT EXISTS (SELECT FROM jobs WHERE jobs.run_id = pruned_runs.run_id)
""")

# Many verdicts may be of one moment, so a step ends with the last one of its moment.
_UNTIL = text("""
    SELECT max(decided_at) FROM (
        SELECT decided_at FROM verdicts WHERE decided_at > :after AND decided_at < :before
        ORDER BY decided_at LIMIT :most
    ) AS next
""")
# The ids that one statement returns for the next stay PostgreSQL's text of an array: to parse and format it
# would take Python as long as PostgreSQL takes to delete the rows.
_IN_STEPS = """
    SELECT array_agg(id)::text AS ids, max(id) AS last FROM (
        SELECT id, (row_number() OVER (ORDER BY id) - 1) / :step AS step FROM ({found}) AS found
    ) AS numbered GROUP BY step ORDER BY step
"""
_UNREFERRED = text(
    _IN_STEPS.format(
        found="""
    SELECT check_id AS id FROM verdicts
    WHERE decided_at > :after AND decided_at <= :until
      AND NOT EXISTS (SELECT FROM jobs WHERE jobs.check_id = verdicts.check_id OFFSET 0)
"""
    )
)
# They have no verdict, and nothing is ever shared with them.
_CANCELLED = text(
    _IN_STEPS.format(
        found="""
    SELECT id FROM checks
    WHERE status = 'cancelled' AND id > :after
      AND NOT EXISTS (SELECT FROM jobs WHERE jobs.check_id = checks.id OFFSET 0)
    ORDER BY id LIMIT :most
"""
    )
)

_LOCK_CHECKS = text("""
    SELECT array_agg(id)::text FROM (
        SELECT id FROM checks WHERE id = ANY(CAST(:ids AS bigint[])) FOR UPDATE SKIP LOCKED
    ) AS locked
""")
_DELETE_CHECKS = text(f"""
    WITH gone AS (
        DELETE FROM checks
        WHERE id = ANY(CAST(:ids AS bigint[]))
          AND NOT EXISTS (SELECT FROM jobs WHERE jobs.check_id = checks.id OFFSET 0)
        RETURNING id, {", ".join(TEXT_COLUMNS)}
    ), attempts_gone AS (
        DELETE FROM attempts USING gone WHERE check_id = id
    ), verdicts_gone AS (
        DELETE FROM verdicts USING gone WHERE check_id = id
    ), sentences_gone AS (
        DELETE FROM sentences USING gone WHERE check_id = id
    )
    SELECT (SELECT count(*) FROM gone) AS checks, ARRAY(
        {" UNION ".join(f"SELECT {name} FROM gone WHERE {name} IS NOT NULL" for name in TEXT_COLUMNS)}
    )::text AS texts
""")
# Locked first, then checked by a second statement, which sees all rows stored before the lock.
_LOCK_TEXTS = text("""
    SELECT array_agg(place)::text FROM (
        SELECT programs.ctid AS place FROM programs
        JOIN unnest(CAST(:texts AS bytea[])) AS asked (sha256) USING (sha256)
        FOR UPDATE OF programs SKIP LOCKED
    ) AS locked
""")
_DELETE_TEXTS = text(f"""
    DELETE FROM programs
    WHERE ctid = ANY(CAST(:places AS tid[]))
      {
    " ".join(
        f"AND NOT EXISTS (SELECT FROM checks WHERE {name} = programs.sha256 OFFSET 0)"
        for name in TEXT_COLUMNS
    )
}
""")


@dataclass(frozen=True, kw_only=True, slots=True)
class OldRun:
    """A run that was submitted long ago: how many lines it has, and why it stays, None where it may go."""

    id: str
    version: str
    lines: int
    reason: Reason | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Deleted:
    """How many checks went, and how many texts that no other check refers to."""

    checks: int = 0
    programs: int = 0


def moment(engine: Engine, *, seconds_ago: float) -> datetime:
    """Return the time `seconds_ago` before now by PostgreSQL's clock; raises `ServerDown`."""
    with reaching(engine), engine.connect() as connection:
        ago: datetime = connection.execute(_AGO, {"seconds": seconds_ago}).scalar_one()
        return ago


def be_short(connection: Connection) -> None:
    """Set up a transaction that deletes something."""
    connection.execute(_LOOK_UP)
    connection.execute(_BE_QUICK)


def old_runs(engine: Engine, before: datetime) -> Iterator[Sequence[OldRun]]:
    """Yield the runs that were submitted before then, some together; raises `ServerDown`."""
    for owner in _KINDS:
        statement = text(_OLD.format(owner=owner))
        at, id_ = datetime.min.replace(tzinfo=before.tzinfo), ""
        while True:
            values = {"before": before, "at": at, "id": id_, "most": _RUNS}
            with reaching(engine), engine.begin() as connection:
                connection.execute(_LOOK_UP)
                rows = connection.execute(statement, values).all()
            if not rows:
                break
            yield [OldRun(id=row.id, version=row.version, lines=row.lines, reason=row.reason) for row in rows]
            at, id_ = rows[-1].created_at, rows[-1].id


def hold(connection: Connection, run_id: str) -> None:
    """Lock a run with its lines and their checks until the commit; raises `UnknownRun` for a deleted run."""
    if not connection.execute(_HOLD, {"id": run_id}).rowcount:
        raise gone(run_id)


def delete_runs(connection: Connection, runs: Sequence[OldRun]) -> list[str]:
    """Delete runs with their manifests and keys, and return which; their lines are still to be deleted.

    One that was changed since, is locked, or has items of a batch that was stored since, stays.
    """
    known = {"ids": [each.id for each in runs], "versions": [each.version for each in runs]}
    locked = connection.scalars(_UNCHANGED, known).all()
    return list(connection.scalars(_DELETE_RUNS, {"ids": locked})) if locked else []


def left_over(connection: Connection) -> list[str]:
    """Return the deleted runs of whose lines some may be there."""
    return list(connection.scalars(_LEFT))


def delete_lines(connection: Connection, run_ids: Sequence[str]) -> int:
    """Delete all lines of deleted runs, and return how many."""
    lines = connection.execute(_DELETE_LINES, {"ids": list(run_ids)}).rowcount
    forget(connection, run_ids)
    return lines


def delete_some_lines(
    connection: Connection, run_id: str, after: tuple[int, int], *, most: int
) -> tuple[int, tuple[int, int] | None]:
    """Delete lines of a deleted run behind this manifest and line; returns how many, and the last of them."""
    values = {"id": run_id, "manifest": after[0], "line": after[1], "most": most}
    row = connection.execute(_DELETE_SOME_LINES, values).one_or_none()
    return (0, None) if row is None else (row.lines, (row.manifest, row.line))


def forget(connection: Connection, run_ids: Sequence[str]) -> None:
    """Forget those of the deleted runs that have no line left."""
    connection.execute(_FORGET, {"ids": list(run_ids)})


def unreferred_checks(engine: Engine, before: datetime, *, step: int) -> Iterator[str]:
    """Yield the checks judged before then that no line waits for, `step` at a time; raises `ServerDown`."""
    after = datetime.min.replace(tzinfo=before.tzinfo)
    while True:
        with reaching(engine), engine.begin() as connection:
            connection.execute(_LOOK_UP)
            values = {"after": after, "before": before, "most": _VERDICTS}
            until = connection.scalar(_UNTIL, values)
            if until is None:
                return
            found = connection.scalars(_UNREFERRED, {"after": after, "until": until, "step": step}).all()
        yield from found
        after = until


def cancelled_checks(engine: Engine, *, step: int) -> Iterator[str]:
    """Yield the cancelled checks that no line has, `step` at a time; raises `ServerDown`."""
    after = 0
    while True:
        with reaching(engine), engine.begin() as connection:
            connection.execute(_LOOK_UP)
            found = connection.execute(_CANCELLED, {"after": after, "most": _VERDICTS, "step": step}).all()
        if not found:
            return
        yield from (row.ids for row in found)
        after = found[-1].last


def delete_checks(connection: Connection, check_ids: str) -> Deleted:
    """Delete those checks that no line waits for, with their attempts, verdicts and texts of their own."""
    locked = connection.scalar(_LOCK_CHECKS, {"ids": check_ids})
    if locked is None:
        return Deleted()
    gone = connection.execute(_DELETE_CHECKS, {"ids": locked}).one()
    places = connection.scalar(_LOCK_TEXTS, {"texts": gone.texts})
    programs = connection.execute(_DELETE_TEXTS, {"places": places}).rowcount if places else 0
    return Deleted(checks=gone.checks, programs=programs)
