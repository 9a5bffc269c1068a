"""Queries of a recheck: the lines of a run to judge again, and the changes of their verdicts.

Items of a batch whose idempotency keys were used before are lines of other batches: `places` in the batch's
options has their places.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Connection, Engine, text

from farm.judging.judgement import Judgement
from farm.judging.verdict import Outcome, Reason, Verdict
from farm.store.new_lines import CHECK_COLUMNS, NewCheck, NewJob
from farm.store.postgres import hashing, streamed
from farm.store.records import SHOWN_STATUS

#: Lines that are read at once.
PAGE = 1000
# Rows the server sends at once.
_ROWS = 500

# The lock prevents the deletion of the run, and of its programs, before the recheck's checks refer to them.
_HOLD = text("SELECT options FROM runs WHERE id = :run FOR KEY SHARE")

_HOMES = """
    SELECT place ->> 0 AS run, 0 AS home_manifest, CAST(place ->> 1 AS integer) AS home_line,
           0 AS manifest, CAST(nth AS integer) AS line
    FROM runs, jsonb_array_elements(options -> 'places') WITH ORDINALITY AS item (place, nth)
    WHERE id = :run
"""
_OWN = """
    SELECT run_id AS run, manifest AS home_manifest, line AS home_line, manifest, line FROM jobs
    WHERE run_id = :run
"""

_KINDS = """
    SELECT environment, tier, native, axioms, policy, goals, stop_at_error, count(*) AS lines
    FROM ({homes}) AS home
    JOIN jobs ON (jobs.run_id, jobs.manifest, jobs.line) = (run, home_manifest, home_line)
    JOIN checks ON checks.id = check_id
    WHERE cancelled IS NULL
    GROUP BY 1, 2, 3, 4, 5, 6, 7 ORDER BY 8 DESC, 1
"""

# LIMIT has PostgreSQL use the indexes for each line, whatever the planner assumes about the tables' sizes. A
# verdict of attempt 0 was known from the text alone.
_LINES = f"""
    SELECT home.manifest, home.line, is_cancelled, verdict, reason, detail,
           {", ".join(NewJob._fields)}, {", ".join(CHECK_COLUMNS)}
    FROM (
        SELECT * FROM ({{homes}}) AS every WHERE (manifest, line) > (:manifest, :line)
        ORDER BY manifest, line LIMIT :most
    ) AS home
    JOIN LATERAL (
        SELECT * FROM jobs
        WHERE (run_id, jobs.manifest, jobs.line) = (run, home_manifest, home_line) LIMIT 1
    ) AS job ON true
    JOIN LATERAL (
        SELECT {", ".join(CHECK_COLUMNS)}, cancelled IS NOT NULL AS is_cancelled
        FROM checks WHERE id = check_id LIMIT 1
    ) AS asked ON true
    LEFT JOIN LATERAL (
        SELECT verdict, reason, detail FROM verdicts
        WHERE verdicts.check_id = job.check_id AND attempt = 0 LIMIT 1
    ) AS known ON true
    ORDER BY home.manifest, home.line
"""

_MANIFESTS = text("""
    INSERT INTO manifests (run_id, number, path, sha256, size, next_sha256, next_size)
    SELECT :new, number, path, sha256, size, next_sha256, next_size FROM manifests WHERE run_id = :old
""")

_SIDE = f"""
    SELECT {SHOWN_STATUS} AS status, verdict, reason
    FROM jobs JOIN LATERAL (SELECT status, ahead FROM checks WHERE id = check_id LIMIT 1) AS asked ON true
    LEFT JOIN LATERAL (
        SELECT verdict, reason FROM verdicts
        WHERE verdicts.check_id = jobs.check_id AND cancelled IS NULL LIMIT 1
    ) AS verdict ON true
"""
_TURNED = f"""
    SELECT job.manifest, job.line, job.name, before.status, before.verdict, before.reason,
           now.status, now.verdict, now.reason
    FROM runs AS old JOIN jobs AS job ON job.run_id = %(now)s
    CROSS JOIN LATERAL (SELECT old.options -> 'places' -> (job.line - 1) AS place) AS home
    JOIN LATERAL ({_SIDE} WHERE run_id = coalesce(place ->> 0, old.id) AND manifest = job.manifest
                      AND line = coalesce(CAST(place ->> 1 AS integer), job.line) LIMIT 1) AS before ON true
    JOIN LATERAL ({_SIDE} WHERE run_id = job.run_id AND manifest = job.manifest
                      AND line = job.line LIMIT 1) AS now ON true
    WHERE old.id = %(before)s
    ORDER BY job.manifest, job.line
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sort:
    """The number of lines of a run that were judged with these options."""

    environment: str
    tier: str
    native: bool
    axioms: list[str]
    policy: dict[str, str]
    goals: bool
    stop_at_error: bool
    lines: int


class OldLine(NamedTuple):
    """A line of a run as it was submitted; it has a `verdict` where its text alone decided."""

    manifest: int
    line: int
    is_cancelled: bool
    verdict: Verdict | None
    job: NewJob
    check: NewCheck


class Turned(NamedTuple):
    """A line of a recheck with its old and its new verdict."""

    manifest: int
    line: int
    name: str
    before: Judgement
    now: Judgement


def sorts(connection: Connection, run_id: str) -> list[Sort]:
    """Return the options with which the lines of a run were judged, and lock the run."""
    homes = _homes(connection, run_id)
    with hashing(connection):
        rows = connection.execute(text(_KINDS.format(homes=homes)), {"run": run_id}).mappings().all()
    return [Sort(**row) for row in rows]


def old_lines(connection: Connection, run_id: str) -> Iterator[list[OldLine]]:
    """Yield the lines of a run page by page, those that were cancelled included."""
    asked = text(_LINES.format(homes=_homes(connection, run_id)))
    manifest, line = 0, 0
    while True:
        place = {"manifest": manifest, "line": line, "most": PAGE}
        rows = connection.execute(asked, {"run": run_id, **place}).all()
        if not rows:
            return
        page = [_old_line(*row) for row in rows]
        yield page
        manifest, line = page[-1].manifest, page[-1].line


def _old_line(manifest: int, line: int, is_cancelled: bool, *columns: Any) -> OldLine:
    verdict, reason, detail, *rest = columns
    known = verdict and Verdict(outcome=Outcome(verdict), reason=Reason(reason), detail=detail or "")
    job, check = rest[: len(NewJob._fields)], rest[len(NewJob._fields) :]
    return OldLine(manifest, line, is_cancelled, known, NewJob._make(job), NewCheck._make(check))


def copy_manifests(connection: Connection, *, of: str, to: str) -> None:
    """Give the run `to` the manifests of the run `of`, with their fingerprints."""
    connection.execute(_MANIFESTS, {"old": of, "new": to})


def turned(engine: Engine, before: str, now: str) -> Generator[Turned]:
    """Yield the lines of a recheck in their order, with their old verdicts; raises `ServerDown`."""
    with closing(streamed(engine, _TURNED, {"before": before, "now": now}, rows=_ROWS)) as rows:
        for manifest, line, name, *sides in rows:
            yield Turned(manifest, line, name, Judgement._make(sides[:3]), Judgement._make(sides[3:]))


def _homes(connection: Connection, run_id: str) -> str:
    """Return the subquery for the places of a run's lines."""
    options = connection.scalar(_HOLD, {"run": run_id})
    return _HOMES if options and "places" in options else _OWN
