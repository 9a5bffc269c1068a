"""A snapshot of the farm's state for its metrics.

It reads a bounded number of rows whatever the size of the database, apart from one count of queued checks.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, RowMapping, text
from sqlalchemy.exc import SQLAlchemyError

from farm.errors import FarmError
from farm.judging.states import Priority
from farm.store.postgres import reaching, revision

#: Number of the newest runs in a snapshot.
NEWEST = 20
#: The oldest check is searched among this number of next ones: each waiting run has a line among them.
_NEXT = 1000
#: Up to this number every unfinished check is counted; of more, every second, third and so on.
_LOOKED_AT = 20_000
#: Lines of a run, and manifests, whose verdicts are looked at to know since when an export is due.
_LINES, _MANIFESTS = 100, 100
#: A reading that takes so long would take as long the next time.
_MOST_SECONDS = 10

_Key = TypeVar("_Key")

#: The queue of an environment and a class, by its name.
Queue = tuple[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class FarmReading:
    """The state of a farm at one moment: `waiting` and `oldest_seconds` by queue, `held` by environment.

    `attempts` are counted by outcome and `lines` by the check that answers them, both since the farm was set
    up. `oldest_run_seconds` is 0 without any run. `left` are the unfinished lines of runs, `lags` the
    ages of their oldest verdicts not yet exported; both for the newest runs of manifests, by id.
    """

    schema: str
    seconds: float
    database_bytes: int
    oldest_run_seconds: float
    waiting: Mapping[Queue, int]
    oldest_seconds: Mapping[Queue, float]
    held: Mapping[str, int]
    overdue: int
    silent_seconds: Mapping[str, float]
    attempts: Mapping[str, int]
    lines: Mapping[str, int]
    in_progress: int
    left: Mapping[str, int]
    lags: Mapping[str, float]


_QUEUES = """
    SELECT environment, priority, n, (
        SELECT extract(epoch FROM now() - min(queued_at))::float8 FROM (
            SELECT queued_at FROM checks
            WHERE status = 'queued' AND environment = queue.environment AND priority = queue.priority
            ORDER BY turn, id LIMIT :next
        ) AS first
    ) AS oldest
    FROM (
        SELECT environment, priority, count(*) AS n FROM checks
        WHERE status = 'queued' GROUP BY environment, priority
    ) AS queue
"""

_ENVIRONMENTS = """
    SELECT name, extract(epoch FROM now() - seen_at)::float8 AS silent FROM environments
"""

_LEASES = """
    SELECT environment, count(*) AS n, count(*) FILTER (WHERE lease_until < now()) AS overdue
    FROM checks WHERE lease_until IS NOT NULL GROUP BY environment
"""

# Runs of manifests and batches have an index each.
_OLDEST_RUN = """
    SELECT coalesce(extract(epoch FROM now() - least(
        (SELECT created_at FROM runs WHERE owner IS NULL ORDER BY created_at LIMIT 1),
        (SELECT created_at FROM runs WHERE owner IS NOT NULL ORDER BY created_at LIMIT 1))), 0)::float8
"""

_TALLIES = "SELECT subject, word, sum(number)::bigint AS n FROM tallies GROUP BY subject, word"

# Each check is looked up by itself (OFFSET 0 separates the subquery), whatever the statistics say.
_LEFT = """
    SELECT runs.id, count(*) * :each AS n FROM (
        SELECT id FROM checks WHERE status = 'queued' AND id % :each = 0
        UNION ALL
        SELECT id FROM checks WHERE lease_until IS NOT NULL AND id % :each = 0
    ) AS unfinished
    CROSS JOIN LATERAL (
        SELECT run_id FROM jobs WHERE check_id = unfinished.id AND cancelled IS NULL OFFSET 0
    ) AS job
    CROSS JOIN LATERAL (SELECT * FROM runs WHERE id = run_id AND owner IS NULL LIMIT 1) AS runs
    GROUP BY runs.id, created_at ORDER BY created_at DESC
"""

# Lines are begun in their order, so a sample at even distances finds the time of the oldest verdict. Rechecks
# are left out: their verdicts go into a manifest only when a user exports them.
_LAGS = """
    SELECT newest.id, coalesce(extract(epoch FROM now() - min(since)), 0)::float8 AS lag
    FROM (
        SELECT id, created_at FROM runs WHERE owner IS NULL AND options -> 'recheck' IS NULL
        ORDER BY created_at DESC LIMIT :newest
    ) AS newest
    CROSS JOIN LATERAL (
        SELECT number, exported_at, count(*) OVER () AS many FROM manifests WHERE run_id = newest.id
        ORDER BY exported_at NULLS FIRST, number LIMIT :manifests
    ) AS manifest
    LEFT JOIN LATERAL (
        SELECT line FROM jobs WHERE run_id = newest.id AND manifest = manifest.number
        ORDER BY line DESC LIMIT 1
    ) AS last ON true
    LEFT JOIN LATERAL generate_series(1, last.line, greatest(1, last.line * many / :lines)) AS place ON true
    LEFT JOIN LATERAL (
        SELECT check_id, cancelled FROM jobs
        WHERE run_id = newest.id AND manifest = manifest.number AND line >= place ORDER BY line LIMIT 1
    ) AS job ON true
    LEFT JOIN LATERAL (
        SELECT greatest(decided_at, newest.created_at) AS since FROM verdicts
        WHERE verdicts.check_id = job.check_id AND cancelled IS NULL
          AND decided_at > coalesce(exported_at, '-infinity') LIMIT 1
    ) AS due ON true
    GROUP BY newest.id, created_at ORDER BY created_at DESC
"""


def read(engine: Engine) -> FarmReading:
    """Return the state of the farm at this moment.

    Raises `ServerDown`, and `FarmError` where reading takes too long or the database is of another revision.
    """
    began = time.monotonic()
    try:
        with reaching(engine), engine.connect() as connection:
            connection.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"))
            connection.execute(text(f"SET LOCAL statement_timeout = '{_MOST_SECONDS}s'"))
            # As for a worker's connections: PostgreSQL scans no table because it seems small.
            for setting in ("enable_seqscan = off", "jit = off", "plan_cache_mode = force_custom_plan"):
                connection.execute(text(f"SET LOCAL {setting}"))
            return _read(connection, began)
    except SQLAlchemyError as error:
        raise FarmError(str(error).partition("\n")[0]) from error


def _read(connection: Connection, began: float) -> FarmReading:
    def rows(statement: str, **values: object) -> list[RowMapping]:
        return list(connection.execute(text(statement), values).mappings())

    queues = {
        (row["environment"], Priority(row["priority"]).name.lower()): row for row in rows(_QUEUES, next=_NEXT)
    }
    leases = {row["environment"]: row for row in rows(_LEASES)}
    environments = rows(_ENVIRONMENTS)
    held = {row["name"]: 0 for row in environments} | _column(leases, "n")
    waiting = _column(queues, "n")
    unfinished = sum(waiting.values()) + sum(held.values())
    left = rows(_LEFT, each=1 + unfinished // (_LOOKED_AT + 1))
    tallies = rows(_TALLIES)
    lags = rows(_LAGS, newest=NEWEST, manifests=_MANIFESTS, lines=_LINES)
    return FarmReading(
        schema=revision(connection) or "",
        database_bytes=int(connection.scalar(text("SELECT pg_database_size(current_database())")) or 0),
        oldest_run_seconds=float(connection.scalar(text(_OLDEST_RUN)) or 0),
        waiting=waiting,
        oldest_seconds=_column(queues, "oldest"),
        held=held,
        overdue=sum(row["overdue"] for row in leases.values()),
        silent_seconds={row["name"]: row["silent"] for row in environments if row["silent"] is not None},
        attempts=_counts(tallies, "attempts"),
        lines=_counts(tallies, "lines"),
        in_progress=len(left),
        left={row["id"]: row["n"] for row in left[:NEWEST]},
        lags={row["id"]: row["lag"] for row in lags},
        seconds=time.monotonic() - began,
    )


def _column(rows: Mapping[_Key, RowMapping], name: str) -> dict[_Key, Any]:
    return {key: row[name] for key, row in rows.items()}


def _counts(tallies: Iterable[RowMapping], subject: str) -> dict[str, int]:
    return {row["word"]: row["n"] for row in tallies if row["subject"] == subject}
