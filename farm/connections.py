"""The servers and the store of a process, each connected at its first use."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from farm import tracing
from farm.errors import QueueFull, ServerDown
from farm.settings import Settings

# SQLAlchemy, psycopg and Celery cost half a second to import: a command that needs none of them does not pay.
if TYPE_CHECKING:
    from celery import Celery

    from farm.completions import Completions
    from farm.sessions.front import Front
    from farm.store.environments import ServedEnvironment
    from farm.store.postgres import Engine
    from farm.store.queries import Queries
    from farm.store.transitions import Store

#: Threads of a command.
_FEW = 2
#: How long the farm's own worker may take until it serves, in seconds: it reads and tries large libraries.
_WORKER_SECONDS = 600.0
#: How long a command waits for what it could leave out, in seconds.
_COURTESY_SECONDS = 5
#: The most that two clocks of one machine differ.
_SKEW_SECONDS = 1.0


@dataclass(frozen=True)
class Connections:
    """The ways to the farm that the settings name."""

    settings: Settings
    #: How many threads may ask PostgreSQL at once; more than a few do so all the time.
    threads: int = _FEW

    @classmethod
    def here(cls, *, threads: int = _FEW) -> Connections:
        """Return the connections that the environment variables name; raises `SettingsError`.

        Begins tracing if the variables name a collector.
        """
        settings = Settings.load()
        tracing.begin("farm")
        return cls(settings, threads)

    @cached_property
    def urls(self) -> tuple[str, str]:
        """The database's and the broker's URL; starts the farm's own servers when none are configured."""
        return self.revived()

    def revived(self) -> tuple[str, str]:
        """Return the same connections, with the farm's own servers restarted if they have ended."""
        from farm import embedded

        settings = self.settings
        if settings.database_url and settings.broker_url:
            return settings.database_url, settings.broker_url
        servers = embedded.ensure(settings.home, settings.idle_minutes, servers=settings.servers)
        return servers.database_url, servers.broker_url

    @cached_property
    def engine(self) -> Engine:
        """The way to the database, which is at the revision this farm needs."""
        from farm.store import postgres

        serves = self.threads > _FEW
        engine = postgres.connect(
            self.urls[0],
            application=postgres.signed("farm"),
            connections=self.threads,
            works=serves,
            plans_once=serves,
        )
        postgres.require_schema(engine)
        return engine

    @cached_property
    def store(self) -> Store:
        """Changes of state."""
        from farm.store.transitions import Store

        return Store(self.engine, max_failures=self.settings.attempts)

    @cached_property
    def queries(self) -> Queries:
        """Questions to the store."""
        from farm.store.queries import Queries

        return Queries(self.engine)

    @cached_property
    def courtesies(self) -> Queries:
        """Questions whose answers are worth a few seconds and no more; raises `ServerDown` after those."""
        from farm.store.queries import Queries

        return Queries(self.engine, most_seconds=_COURTESY_SECONDS)

    @cached_property
    def broker(self) -> Celery:
        """The queues."""
        from farm import broker

        return broker.application(self.urls[1])

    @cached_property
    def completions(self) -> Completions:
        """The listener for checks that end."""
        from farm.completions import Completions

        return Completions(self.urls[1])

    @cached_property
    def sessions(self) -> Front:
        """The front to sessions on workers."""
        from farm.sessions.front import Front

        return Front(self.urls[1])

    def close(self) -> None:
        """Close the connections that were made."""
        if "sessions" in self.__dict__:
            self.sessions.close()
        if "completions" in self.__dict__:
            self.completions.close()
        if "engine" in self.__dict__:
            self.engine.dispose()

    def require_room(self) -> None:
        """Raise `QueueFull` when as many checks wait as may."""
        limit = self.settings.queue_limit
        if self.queries.queue_length(most=limit) >= limit:
            raise QueueFull("too many checks wait already; try again later")

    def environments(self) -> list[ServedEnvironment]:
        """Return the environments that workers serve.

        The farm's own worker is restarted if the settings have changed since its start, and registers a
        moment later, so it is waited for; raises `ServerDown`, with the end of its log, when it does not
        start.
        """
        from farm import embedded

        queries = self.queries
        if self.settings.database_url:
            return queries.served()
        embedded.follow(self.settings.home)
        pause = threading.Event()
        until = time.monotonic() + _WORKER_SECONDS
        while True:
            # Before the question: how long a worker was silent is the database's answer of a later moment.
            asked = time.time()
            known = queries.served()
            if self._is_served(known, asked):
                return known
            if time.monotonic() > until:
                raise ServerDown(
                    f"the farm's own worker serves nothing after {_WORKER_SECONDS:g} s; "
                    f"see why in {self.settings.home / 'worker.log'}, then end it: farm down"
                )
            pause.wait(0.1)

    def _is_served(self, known: Sequence[ServedEnvironment], asked: float) -> bool:
        """Return whether the farm's own worker had reported since its last start when it was `asked` for."""
        from farm import embedded

        facts = embedded.status(self.settings.home)
        if facts is None or facts.worker_since is None:
            return bool(known)  # there is no worker of the farm's own to wait for
        newest = min((each.silent_seconds for each in known), default=float("inf"))
        if asked - newest >= facts.worker_since or _are_all_unfit(known, asked - facts.worker_since):
            return True
        if facts.worker_failure is not None:
            raise ServerDown(
                "the farm's own worker does not start; correct the fault that its log names, and try again: "
                f"{facts.worker_failure}"
            )
        return False


def _are_all_unfit(known: Sequence[ServedEnvironment], age: float) -> bool:
    """Return whether a worker of this age has examined its environments and serves none of them."""
    found = [one for each in known for one in each.pending if one.seconds <= age + _SKEW_SECONDS]
    return bool(found) and all(each.is_unfit for each in found)
