"""The state of the whole farm: queues, unfinished runs, running checks, recent verdicts.

The cost of a query grows with its result and not with the database: none scans the verdicts or runs of years.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from psycopg import Cursor
from psycopg.rows import DictRow
from sqlalchemy import Engine

from farm.judging.states import Priority
from farm.store.postgres import single


@dataclass(frozen=True, kw_only=True, slots=True)
class Queue:
    """The queued checks of one class, environment and tier, and how long the oldest has waited.

    Where counting the checks of this class and environment was cut short (`is_cut`), there may be more.
    """

    environment: str
    priority: Priority
    tier: str
    waiting: int
    oldest_seconds: float
    is_cut: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Unfinished:
    """The numbers of lines without a verdict by run, and of such items of batches."""

    runs: Mapping[str, int]
    batches: int
    items: int


@dataclass(frozen=True, kw_only=True, slots=True)
class AtWork:
    """A running check, and one line that waits for it; None where no line waits any more."""

    worker: str
    check_id: int
    attempt: int
    environment: str
    seconds: float
    run_id: str | None
    line: int | None
    name: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Decided:
    """How many checks came to a verdict in one second, given in seconds since 1970."""

    second: int
    verdict: str
    checks: int


# The queue's index has all of this but the age; a limit of NULL is none.
_QUEUES = """
    SELECT name AS environment, class AS priority, tier, count(*) AS waiting,
           extract(epoch FROM now() - min(queued_at))::float8 AS oldest_seconds,
           coalesce(sum(count(*)) OVER (PARTITION BY name, class) >= %(most)s, false) AS is_cut
    FROM environments CROSS JOIN unnest(CAST(%(classes)s AS smallint[])) AS classes (class), LATERAL (
        SELECT tier, queued_at FROM checks
        WHERE status = 'queued' AND environment = environments.name AND priority = class
        ORDER BY turn, id LIMIT CAST(%(most)s AS bigint)
    ) AS queued
    GROUP BY 1, 2, 3 ORDER BY 2, 1, 3
"""

# Joined from the checks to their lines, so that the finished runs of years are not scanned.
_UNFINISHED = """
    WITH waited AS (
        SELECT run_id, count(*) AS items FROM (
            SELECT id FROM checks WHERE status = 'queued'
            UNION ALL SELECT id FROM checks WHERE status = 'running' AND lease_until IS NOT NULL
        ) AS unfinished, LATERAL (
            SELECT run_id FROM jobs WHERE check_id = unfinished.id AND cancelled IS NULL OFFSET 0
        ) AS job
        GROUP BY run_id
    )
    SELECT CASE WHEN owner IS NULL THEN run_id END AS run, count(*) AS runs, sum(items)::bigint AS items
    FROM waited, LATERAL (SELECT owner FROM runs WHERE id = run_id OFFSET 0) AS run GROUP BY 1
"""

# The index of leases finds claimed checks; those claimed ahead have not begun.
_RUNNING = """
    SELECT {of_each} worker, id AS check_id, attempt, environment,
           extract(epoch FROM now() - started_at)::float8 AS seconds
    FROM checks WHERE status = 'running' AND lease_until IS NOT NULL AND NOT ahead
    ORDER BY worker COLLATE "C", started_at, id
"""
_LONGEST_OF_EACH = f"""
    SELECT * FROM ({_RUNNING.format(of_each='DISTINCT ON (worker COLLATE "C")')}) AS longest
    ORDER BY seconds DESC, check_id LIMIT %(most)s
"""
_WITH_LINES = """
    SELECT worker, check_id, attempt, environment, seconds, run_id, line, left(name, 200) AS name
    FROM ({held}) AS held
    LEFT JOIN LATERAL (
        SELECT run_id, line, name FROM jobs
        WHERE jobs.check_id = held.check_id AND cancelled IS NULL LIMIT 1
    ) AS job ON true
    ORDER BY worker COLLATE "C", seconds DESC, check_id
"""

# A verdict that was known from the text came from no worker, and has no attempt.
_DECIDED = """
    SELECT floor(extract(epoch FROM decided_at))::bigint AS second, verdict, count(*) AS checks
    FROM verdicts
    WHERE decided_at >= greatest(to_timestamp(%(since)s), now() - %(most)s * interval '1 second')
      AND attempt > 0
    GROUP BY 1, 2
"""


class Overview:
    """Questions about the whole farm; every one raises `ServerDown` when PostgreSQL cannot be reached."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @contextmanager
    def _looking(self) -> Iterator[Cursor[DictRow]]:
        """Give a cursor whose plans use the indexes, whatever the planner believes of the tables' sizes."""
        with single(self._engine) as cursor, cursor.connection.transaction():
            cursor.execute("SET LOCAL enable_seqscan = off")
            cursor.execute("SET LOCAL jit = off")
            yield cursor

    def _all(self, statement: str, **values: object) -> list[DictRow]:
        with self._looking() as cursor:
            return cursor.execute(statement, values).fetchall()

    def queues(self, *, most: int | None = None) -> list[Queue]:
        """Return the queues, the most urgent class first; counts at most `most` checks of each."""
        rows = self._all(_QUEUES, classes=[int(each) for each in Priority], most=most)
        return [Queue(**{**row, "priority": Priority(row["priority"])}) for row in rows]

    def unfinished(self) -> Unfinished:
        """Return which runs are unfinished, and how many batches."""
        rows = self._all(_UNFINISHED)
        of_batches = [row for row in rows if row["run"] is None]
        return Unfinished(
            runs={row["run"]: row["items"] for row in rows if row["run"] is not None},
            batches=sum(row["runs"] for row in of_batches),
            items=sum(row["items"] for row in of_batches),
        )

    def at_work(self) -> list[AtWork]:
        """Return running checks by worker, the longest first."""
        return [AtWork(**row) for row in self._all(_WITH_LINES.format(held=_RUNNING.format(of_each="")))]

    def longest_at_work(self, *, most: int) -> list[AtWork]:
        """Return the longest running check of each worker, of at most `most` workers."""
        rows = self._all(_WITH_LINES.format(held=_LONGEST_OF_EACH), most=most)
        return [AtWork(**row) for row in rows]

    def decided(self, *, since: int, most_seconds: int) -> tuple[float, Sequence[Decided]]:
        """Return PostgreSQL's time and the verdicts of workers since this time, in seconds since 1970.

        Verdicts older than `most_seconds` are left out.
        """
        with self._looking() as cursor:
            row = cursor.execute("SELECT extract(epoch FROM now())::float8 AS now").fetchone()
            rows = cursor.execute(_DECIDED, {"since": since, "most": most_seconds}).fetchall()
        return float(row["now"]) if row else 0.0, [Decided(**each) for each in rows]
