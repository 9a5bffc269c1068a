"""The rows of a report: every line of a run in a few columns, streamed."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from typing import NamedTuple

from farm.store.postgres import Engine, streamed
from farm.store.records import SHOWN_STATUS

# Rows the server sends at once.
_ROWS = 500

# Each is looked up in an index, for a run is a few of all the checks that there are; LIMIT keeps the planner,
# whatever it assumes about the tables' sizes, from reading one whole to hash it.
_OUTCOMES = f"""
    SELECT manifest, line, name, group_name, {SHOWN_STATUS}, coalesce(cancelled = 'group', false), shared,
           asked.wall_seconds, asked.cpu_seconds, asked.memory_mib, verdict.*
    FROM jobs
    JOIN LATERAL (SELECT * FROM checks WHERE id = check_id LIMIT 1) AS asked ON true
    LEFT JOIN LATERAL (
        SELECT verdict, reason, wall_seconds, cpu_seconds, peak_memory_kib,
               nullif(facts ->> 'error_kind', '') AS error_kind
        FROM verdicts WHERE verdicts.check_id = jobs.check_id AND cancelled IS NULL LIMIT 1
    ) AS verdict ON true
    WHERE jobs.run_id = %(run_id)s
    ORDER BY manifest, line
"""


class LineOutcome(NamedTuple):
    """One line: its place, its limits, and its verdict, None for an unfinished line.

    `stopped` lines are cancelled because another line of their group is proved.
    """

    manifest: int
    line: int
    name: str
    group: str | None
    status: str
    stopped: bool
    shared: bool
    wall_limit: float
    cpu_limit: float
    memory_limit_mib: int
    verdict: str | None
    reason: str | None
    wall_seconds: float | None
    cpu_seconds: float | None
    peak_memory_kib: int | None
    error_kind: str | None


def outcomes(engine: Engine, run_id: str) -> Generator[LineOutcome]:
    """Yield the lines of a run in order of manifests and lines; raises `ServerDown`."""
    with closing(streamed(engine, _OUTCOMES, {"run_id": run_id}, rows=_ROWS)) as rows:
        yield from map(LineOutcome._make, rows)
