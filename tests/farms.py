"""What the tests of whole farms share: a farm without a worker to look into, and waiting for runs."""

from __future__ import annotations

from dataclasses import dataclass

import redis
from commands import Command
from processes import eventually
from sqlalchemy import Engine, text

from farm.queries import Queries
from farm.store import Store

_TABLES = ("runs", "manifests", "programs", "checks", "jobs", "attempts", "verdicts")


@dataclass(frozen=True)
class Quiet:
    """A farm without a worker: what is submitted stays queued. The core environment was served once."""

    farm: Command
    engine: Engine
    redis: redis.Redis

    @property
    def store(self) -> Store:
        return Store(self.engine)

    @property
    def queries(self) -> Queries:
        return Queries(self.engine)

    def rows(self) -> dict[str, int]:
        """Return how many rows each table has that a run fills, leaving out the empty ones."""
        counts = {table: self.ask(f"SELECT count(*) FROM {table}")[0] for table in _TABLES}
        return {table: rows for table, rows in counts.items() if rows}

    def ask(self, question: str, **values: object) -> list[object]:
        """Return the first column of what a question gives."""
        with self.engine.connect() as connection:
            return list(connection.scalars(text(question), values))


def verdict_count(queries: Queries, run_id: str) -> int:
    """Return how many lines of a run have a verdict."""
    return sum(queries.tally(run_id).verdicts.values())


def wait_for_run(queries: Queries, status: str, *, seconds: float = 30.0) -> str:
    """Wait until the newest run has a check in this status, and return the run's id."""

    def begun() -> bool:
        runs = queries.runs(most=1)
        return bool(runs) and queries.tally(runs[0].id).statuses.get(status, 0) > 0

    eventually(begun, seconds=seconds)
    return queries.run(None).id
