"""What the tests of whole farms share: a farm without a worker to look into, and waiting for runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis
from sqlalchemy import Engine, text

from farm.assembly.program import AssemblyOptions
from farm.embedded import Facts, status
from farm.judging.submit_options import SubmitOptions
from farm.judging.tiers import Tier
from farm.judging.verdict import judge
from farm.runs.submit import Submitted, submit
from farm.store import postgres
from farm.store.attempt import Claim, Decision
from farm.store.environments import Served
from farm.store.queries import Queries
from farm.store.transitions import Store
from tests.commands import Command, Running, write
from tests.processes import eventually
from tests.reports import CLEAN, with_facts

CORE = Served(name="core", digest="d1", toolchain="Lean 4.35.0", tiers=tuple(Tier), checker_version="1")


@contextmanager
def asking(farm: Command) -> Iterator[tuple[Facts, Queries]]:
    """Give the facts of a farm's own servers and questions to its store."""
    facts = status(Path(farm.settings["FARM_HOME"]))
    assert facts is not None
    engine = postgres.connect(facts.database_url, application="farm-test")
    try:
        yield facts, Queries(engine)
    finally:
        engine.dispose()


_TABLES = ("runs", "manifests", "programs", "checks", "jobs", "attempts", "verdicts")
#: The tables that `Quiet.clear` empties: what the servers, the workers and a migration filled stays.
_CLEARED = (*_TABLES, "item_keys", "tallies", "api_keys", "key_uses", "unfinished")


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

    def clear(self) -> None:
        """Take away every run and every key, for the next of the tests that share this farm."""
        with self.engine.begin() as connection:
            connection.execute(text(f"TRUNCATE {', '.join(_CLEARED)} CASCADE"))

    def ask(self, question: str, **values: object) -> list[object]:
        """Return the first column of what a question gives."""
        with self.engine.connect() as connection:
            return list(connection.scalars(text(question), values))

    def judge(self, run_id: str, *numbers: int, manifest: int = 0, **facts: object) -> None:
        """Give these lines of a run a verdict, proved unless the facts say otherwise, as a worker would."""
        for number in numbers:
            waiting = self.ask(
                """
                SELECT check_id FROM jobs JOIN checks ON checks.id = check_id
                WHERE run_id = :run AND manifest = :manifest AND line = :line AND status = 'queued'
                """,
                run=run_id,
                manifest=manifest,
                line=number,
            )
            for check_id in waiting:  # none where an equal line was judged already
                assert finished(self.store, claimed(self.store, int(str(check_id))), **facts)


@contextmanager
def a_worker(quiet: Quiet, folder: Path, **settings: str) -> Iterator[Running]:
    """A `farm worker` of the test's own, serving when the block begins."""
    with serving(quiet.farm, folder, **settings) as worker:
        yield worker


@contextmanager
def serving(farm: Command, folder: Path, **settings: str) -> Iterator[Running]:
    """A worker of a farm with these settings besides, serving when the block begins."""
    with farm.having(**settings).forked(folder, "worker") as worker:
        eventually(lambda: "Serving" in worker.said, seconds=60)
        yield worker


def load(store: Store, path: Path, *entries: Mapping[str, object], **options: Any) -> str:
    """Store a run of these manifest lines, call nobody, and return the run's id."""
    return submitted(store, write(path, *entries), **options).run_id


def submitted(
    store: Store, path: Path, *, new_run: bool = False, queue_limit: int | None = None, **options: Any
) -> Submitted:
    """Submit a manifest as it is, calling nobody."""
    chosen = {"assembly": AssemblyOptions(), "environment": "core", **options}
    return submit(
        store,
        [path],
        SubmitOptions(**chosen),
        known=Queries(store.engine).served(),
        new_run=new_run,
        queue_limit=queue_limit,
    )


def claimed(store: Store, check_id: int, *, worker: str = "w", lease_seconds: float = 60.0) -> Claim:
    """Claim this check, whatever else waits."""
    with store.engine.begin() as connection:
        first = text("UPDATE checks SET priority = 0 WHERE id = :id AND status = 'queued'")
        connection.execute(first, {"id": check_id})
    (claim,) = store.claim(["core"], worker=worker, lease_seconds=lease_seconds)
    assert claim.check_id == check_id
    return claim


def finished(store: Store, claim: Claim, **facts: object) -> bool:
    """Record a verdict, proved unless the facts say otherwise; whether it was accepted."""
    recorded = store.record([(claim, a_decision(**facts))])
    if recorded.proved:
        store.stop_rivals(recorded.proved)
    return claim.check_id in recorded.check_ids


def a_decision(**facts: object) -> Decision:
    """Return what a worker finds out about a check, with some facts given."""
    report = with_facts(CLEAN, **facts)
    return Decision(
        report=report,
        verdict=judge(report),
        digest=CORE.digest,
        toolchain=CORE.toolchain,
        checker_version="1",
    )


def verdict_count(queries: Queries, run_id: str) -> int:
    """Return how many lines of a run have a verdict."""
    return sum(queries.tally(run_id).verdicts.values())


def wait_for_run(queries: Queries, manifest: Path, status: str, *, seconds: float = 30.0) -> str:
    """Wait until the run of a manifest has a check in this status, and return the run's id."""

    found: list[str] = []

    def look() -> list[str]:
        runs = [run.id for run in queries.runs() if run.manifests[0] == manifest]
        found.extend(run for run in runs if queries.tally(run).statuses.get(status))
        return found

    eventually(look, seconds=seconds)
    return found[0]
