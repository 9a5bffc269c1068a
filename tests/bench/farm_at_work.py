"""Benchmarks, the farm under measure: servers of their own in a temporary home, and measured processes."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path

from celery import Celery
from sqlalchemy import Engine, text

from farm import broker, db
from farm.assurance import Assurance
from farm.embedded import down, ensure
from farm.job import Limits
from farm.prepare import SubmitOptions
from farm.program import AssemblyOptions
from farm.queries import Queries
from farm.store import Served, Store

ROOT = Path(__file__).parents[2]

#: An environment that no worker serves: what waits for it is never checked.
UNSERVED = "unserved"

_NOTHING = Served(name=UNSERVED, digest="0" * 64, toolchain="none")


@dataclass(frozen=True)
class FarmAtWork:
    """A farm with real servers and an empty database in a folder of its own."""

    home: Path
    database_url: str
    broker_url: str

    @cached_property
    def engine(self) -> Engine:
        return db.connect(self.database_url, application="farm-bench", connections=4)

    @cached_property
    def store(self) -> Store:
        return Store(self.engine)

    @cached_property
    def queries(self) -> Queries:
        return Queries(self.engine)

    def now(self) -> datetime:
        """Return the time by the database's clock."""
        with self.engine.connect() as connection:
            return connection.execute(text("SELECT clock_timestamp()")).scalar_one()

    @cached_property
    def app(self) -> Celery:
        return broker.application(self.broker_url)


@contextmanager
def farm_at_work() -> Iterator[FarmAtWork]:
    """Start a farm without a worker; nothing of it is left at the end."""
    with tempfile.TemporaryDirectory(prefix="farm-bench-") as folder:
        home = Path(folder) / "home"
        servers = ensure(home, idle_minutes=60, worker=False)
        try:
            db.upgrade(servers.database_url)
            farm = FarmAtWork(home, servers.database_url, servers.broker_url)
            farm.store.register([_NOTHING])
            yield farm
            farm.engine.dispose()
        finally:
            down(home)


def options(
    environment: str = UNSERVED, assurance: Assurance | None = None, *, share: bool = False
) -> SubmitOptions:
    """Return the options that runs are submitted with: the command line's defaults, unless said otherwise.

    Nothing is shared by default: what is measured is the work.
    """
    limits = Limits()
    return SubmitOptions(
        assembly=AssemblyOptions(),
        environment=environment,
        wall_seconds=limits.wall_seconds,
        memory_mib=limits.memory_mib,
        assurance=assurance or Assurance(),
        share=share,
    )


@dataclass(frozen=True)
class Measured:
    """What a step took in a process of its own, and what it gave."""

    seconds: float
    peak_mib: float
    result: str


def in_own_process(step: str, *arguments: str) -> Measured:
    """Carry out a step of `tests.bench.steps` in a process of its own."""
    command = [sys.executable, "-m", "tests.bench.steps", step, *arguments]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    return Measured(**json.loads(done.stdout))
