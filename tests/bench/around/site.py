"""Bench step, the farm under measure: servers of their own in a temporary home, and who runs there."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path

from celery import Celery
from farm_workers.box.launch import descendants
from sqlalchemy import Engine, text

from farm import broker
from farm.assembly.program import AssemblyOptions
from farm.embedded import down, ensure, status
from farm.embedded.client import CONNECTIONS
from farm.errors import FarmError
from farm.judging.assurance import Assurance
from farm.judging.submit_options import SubmitOptions
from farm.judging.tiers import Tier
from farm.limits import Limits
from farm.store import postgres
from farm.store.environments import Served
from farm.store.queries import Queries
from farm.store.transitions import Store
from tests.bench.checks.processes import command_name, cpu_seconds

#: An environment that no worker serves: what waits for it is never checked.
UNSERVED = "unserved"

_NOTHING = Served(name=UNSERVED, digest="0" * 64, toolchain="none", tiers=tuple(Tier))

_IDLE_MINUTES = 60.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Used:
    """What the servers have used since they were started: processor seconds, and transactions committed."""

    postgres_seconds: float
    redis_seconds: float
    transactions: int

    def since(self, before: Used) -> Used:
        """Return what was used since then."""
        return Used(
            postgres_seconds=self.postgres_seconds - before.postgres_seconds,
            redis_seconds=self.redis_seconds - before.redis_seconds,
            transactions=self.transactions - before.transactions,
        )


@dataclass(frozen=True, kw_only=True)
class FarmAtWork:
    """A farm with real servers and an empty database in a folder of its own."""

    home: Path
    database_url: str
    broker_url: str

    @cached_property
    def engine(self) -> Engine:
        """The way to its database."""
        return postgres.connect(self.database_url, application="farm-bench", connections=4)

    @cached_property
    def store(self) -> Store:
        """Its store."""
        return Store(self.engine)

    @cached_property
    def queries(self) -> Queries:
        """What can be asked of its store."""
        return Queries(self.engine)

    @cached_property
    def app(self) -> Celery:
        """The way to its broker."""
        return broker.application(self.broker_url)

    @property
    def folder(self) -> Path:
        """A folder for what is measured with; it goes when the farm does."""
        return self.home.parent

    @property
    def settings(self) -> Mapping[str, str]:
        """The variables that its workers are started with."""
        return {
            "FARM_HOME": str(self.home),
            "FARM_DATABASE_URL": self.database_url.replace("+psycopg", "", 1),
            "FARM_BROKER_URL": self.broker_url,
            "FARM_LOG_LEVEL": "warning",
        }

    def now(self) -> datetime:
        """Return the time by the database's clock."""
        with self.engine.connect() as connection:
            now: datetime = connection.execute(text("SELECT clock_timestamp()")).scalar_one()
        return now

    def used(self) -> Used:
        """Return what the servers have used until now; raises FarmError when they are gone."""
        facts = status(self.home)
        if facts is None:
            raise FarmError("the servers that the bench started have exited")
        named = {pid: command_name(pid) for pid in descendants(facts.pid)}
        with self.engine.connect() as connection:
            committed = connection.scalar(_COMMITTED)
        return Used(
            postgres_seconds=cpu_seconds(pid for pid, name in named.items() if name == "postgres"),
            redis_seconds=cpu_seconds(pid for pid, name in named.items() if name in _REDIS),
            transactions=int(committed or 0),
        )

    def empty(self) -> None:
        """Forget every run, so that a program that was there already does not cost less."""
        with self.engine.begin() as connection:
            connection.execute(text("TRUNCATE runs, programs, checks, attempts, verdicts, tallies CASCADE"))

    def settle(self) -> None:
        """Have the database write and count what it put off, so that nobody's figure pays for it."""
        with self.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("VACUUM ANALYZE"))
            connection.execute(text("CHECKPOINT"))


_REDIS = ("valkey-server", "redis-server")
_COMMITTED = text("SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()")


@contextmanager
def farm_at_work(*, connections: int = CONNECTIONS, servers: str = "auto") -> Iterator[FarmAtWork]:
    """Start a farm without a worker; nothing of it is left at the end.

    Its database takes so many `connections` at once; `servers` says where the programs come from.
    """
    with tempfile.TemporaryDirectory(prefix="farm-bench-") as folder:
        # Where a check runs as another user, that one has to get here.
        Path(folder).chmod(0o755)
        home = Path(folder) / "home"
        found = ensure(home, _IDLE_MINUTES, servers=servers, worker=False, connections=connections)
        try:
            postgres.upgrade(found.database_url)
            farm = FarmAtWork(home=home, database_url=found.database_url, broker_url=found.broker_url)
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
