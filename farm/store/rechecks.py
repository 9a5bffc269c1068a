"""What a recheck asks of the store: the lines of a run that are to be judged again, and what became of them.

The items of a batch that were asked for before, under the same keys, are lines of other batches: `places` in
the batch's options says which.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from sqlalchemy import Connection, Engine, text

from farm.judging.judgement import Judgement
from farm.store.postgres import hashing, reaching
from farm.store.records import SHOWN_STATUS

if TYPE_CHECKING:
    import psycopg

#: Lines that are read at once.
PAGE = 1000
# Rows the server sends at once.
_ROWS = 500

# Nobody may delete the run, and with it its programs, before the checks of the recheck need them.
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
    SELECT environment, tier, native, axioms, policy, goals, count(*) AS lines
    FROM ({homes}) AS home
    JOIN jobs ON (jobs.run_id, jobs.manifest, jobs.line) = (run, home_manifest, home_line)
    JOIN checks ON checks.id = check_id
    WHERE cancelled IS NULL
    GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY 7 DESC, 1
"""

# Each line is looked up in the indexes, whatever the planner thinks of the tables' sizes. A verdict of
# attempt 0 was known from the text alone.
_LINES = """
    SELECT home.manifest, home.line, name, group_name, segments::text, fallback_segments::text,
           restated_segments::text, warnings::text, asked.*, known.*
    FROM (
        SELECT * FROM ({homes}) AS every WHERE (manifest, line) > (:manifest, :line)
        ORDER BY manifest, line LIMIT :most
    ) AS home
    JOIN LATERAL (
        SELECT * FROM jobs
        WHERE (run_id, jobs.manifest, jobs.line) = (run, home_manifest, home_line) LIMIT 1
    ) AS job ON true
    JOIN LATERAL (
        SELECT program_sha256, submitted, fallback_sha256, fallback_submitted, restated_sha256,
               restated_submitted, challenge_sha256, challenge_name, context_end, environment, wall_seconds,
               cpu_seconds, memory_mib, image,
               cancelled IS NOT NULL AS is_cancelled
        FROM checks WHERE id = check_id LIMIT 1
    ) AS asked ON true
    LEFT JOIN LATERAL (
        SELECT verdict, reason, detail FROM verdicts
        WHERE verdicts.check_id = job.check_id AND attempt = 0 LIMIT 1
    ) AS known ON true
    ORDER BY home.manifest, home.line
"""

_SIDE = f"""
    SELECT {SHOWN_STATUS} AS status, verdict, reason, left(detail, 400) AS detail
    FROM jobs JOIN LATERAL (SELECT status, ahead FROM checks WHERE id = check_id LIMIT 1) AS asked ON true
    LEFT JOIN LATERAL (
        SELECT verdict, reason, detail FROM verdicts
        WHERE verdicts.check_id = jobs.check_id AND cancelled IS NULL LIMIT 1
    ) AS verdict ON true
"""  # noqa: S608 - a constant
_TURNED = f"""
    SELECT job.manifest, job.line, job.name, before.status, before.verdict, before.reason,
           now.status, now.verdict, now.reason, now.detail
    FROM runs AS old JOIN jobs AS job ON job.run_id = %(now)s
    CROSS JOIN LATERAL (SELECT old.options -> 'places' -> (job.line - 1) AS place) AS home
    JOIN LATERAL ({_SIDE} WHERE run_id = coalesce(place ->> 0, old.id) AND manifest = job.manifest
                      AND line = coalesce(CAST(place ->> 1 AS integer), job.line) LIMIT 1) AS before ON true
    JOIN LATERAL ({_SIDE} WHERE run_id = job.run_id AND manifest = job.manifest
                      AND line = job.line LIMIT 1) AS now ON true
    WHERE old.id = %(before)s
    ORDER BY job.manifest, job.line
"""  # noqa: S608 - constants


@dataclass(frozen=True, kw_only=True, slots=True)
class Sort:
    """How many lines of a run were judged in this way."""

    environment: str
    tier: str
    native: bool
    axioms: list[str]
    policy: dict[str, str]
    goals: bool
    lines: int


class OldLine(NamedTuple):
    """A line of a run as it was judged, or is to be; `verdict` is there where its text alone decided."""

    manifest: int
    line: int
    name: str
    group: str | None
    segments: str
    fallback_segments: str | None
    restated_segments: str | None
    warnings: str
    program_sha256: bytes
    submitted: list[tuple[int, int]]
    fallback_sha256: bytes | None
    fallback_submitted: list[tuple[int, int]] | None
    restated_sha256: bytes | None
    restated_submitted: list[tuple[int, int]] | None
    challenge_sha256: bytes | None
    challenge_name: str | None
    context_end: int
    environment: str
    wall_seconds: float
    cpu_seconds: float
    memory_mib: int
    image: int
    is_cancelled: bool
    verdict: str | None
    reason: str | None
    detail: str | None


class Turned(NamedTuple):
    """A line of a recheck: what became of it in the run of before, and now; `detail` is of now."""

    manifest: int
    line: int
    name: str
    before: Judgement
    now: Judgement
    detail: str | None


def sorts(connection: Connection, run_id: str) -> list[Sort]:
    """Return in which ways the lines of a run were judged, and keep the run for the transaction."""
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
        page = [OldLine._make(row) for row in rows]
        yield page
        manifest, line = page[-1].manifest, page[-1].line


def turned(engine: Engine, before: str, now: str) -> Generator[Turned]:
    """Yield the lines of a recheck in their order, with what they were before; raises `ServerDown`."""
    with reaching(engine), engine.connect() as connection:
        driver = cast("psycopg.Connection[Any]", connection.connection.driver_connection)
        driver.execute("SET LOCAL jit = off")
        stream = driver.cursor(binary=True).stream(_TURNED, {"before": before, "now": now}, size=_ROWS)
        # Who stops asking in the middle ends the query here, before the connection is given back.
        with closing(cast("Generator[tuple[Any, ...]]", stream)) as rows:
            for manifest, line, name, *sides, detail in rows:
                before_, now_ = Judgement._make(sides[:3]), Judgement._make(sides[3:])
                yield Turned(manifest, line, name, before_, now_, detail)


def _homes(connection: Connection, run_id: str) -> str:
    """Return the question for where the lines of a run are."""
    options = connection.scalar(_HOLD, {"run": run_id})
    return _HOMES if options and "places" in options else _OWN
