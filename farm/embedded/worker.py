"""The farm's own servers, their worker: its settings, and when changed settings restart it."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import psycopg

from farm import tracing
from farm.embedded.child import Child, ChildSpec
from farm.revision import SCHEMA
from farm.settings import VARIABLES, WORKER

#: How the farm's own commands are run; `-P` keeps a folder named farm in the current one from being imported.
FARM = (sys.executable, "-P", "-m", "farm")

# `farm down` must not take as long as the longest check. This worker serves the owner of this machine, and
# each verdict states if no stronger isolation is available.
_DEFAULTS = {"FARM_GRACE_SECONDS": "5", "FARM_ISOLATION": "rlimit"}
# How much longer than its checks a worker may take to end in order.
_ENDING_SECONDS = 15.0

# The supervisor sets these for the worker, each from other sources than the variables of a command.
_SET_HERE = {
    "FARM_HOME",
    "FARM_DATABASE_URL",
    "FARM_BROKER_URL",
    "FARM_DATABASE_URL_FILE",
    "FARM_BROKER_URL_FILE",
}
_NOT_ITS_OWN = _SET_HERE | {name for name, each in VARIABLES.items() if WORKER not in each.readers}


class OwnWorker:
    """The worker beside the servers of one home; it restarts when its settings have changed."""

    def __init__(
        self, home: Path, urls: tuple[str, str], keep: Callable[[ChildSpec], Child], given: Mapping[str, str]
    ) -> None:
        """Bring the database to this farm's revision, and begin the worker with the variables ``given``.

        ``urls`` are the database's and the broker's; ``keep`` runs a program on. Raises `ServerDown`.
        """
        self._home, self._urls = home, urls
        self._begun_with = _fingerprint(home, given)
        if not _is_current(urls[0]):  # the command's start costs more than all else of a start
            Child(self._program(("db", "upgrade"), given)).wait()
        self._child = keep(self._program(("worker",), given))

    @property
    def since(self) -> float:
        """The start with the present settings, in seconds since 1970."""
        return self._child.since

    @property
    def failure(self) -> str | None:
        """Why it does not start, with the end of its log; None while it does not seem to fail."""
        return self._child.failure

    def follow(self, given: Mapping[str, str]) -> None:
        """Restart it, in order, if these variables or the file of environments have changed.

        A failed worker restarts as well: the fault may have been corrected.
        """
        asked = _fingerprint(self._home, given)
        if asked != self._begun_with or self.failure is not None:
            self._begun_with = asked
            self._child.replace(self._program(("worker",), given))

    def _program(self, words: tuple[str, ...], given: Mapping[str, str]) -> ChildSpec:
        # An empty variable of the farm's counts as not set.
        inherited = {name: value for name, value in given.items() if value or not name.startswith("FARM_")}
        environment = (
            _DEFAULTS
            | {name: value for name, value in inherited.items() if not name.endswith("_URL_FILE")}
            | {
                "FARM_HOME": str(self._home),
                "FARM_DATABASE_URL": self._urls[0],
                "FARM_BROKER_URL": self._urls[1],
                "PGAPPNAME": "farm-worker",
            }
        )
        return ChildSpec(
            name=f"farm {' '.join(words)}",
            command=(*FARM, *words),
            log=self._home / "worker.log",
            grace_seconds=float(environment["FARM_GRACE_SECONDS"]) + _ENDING_SECONDS,
            environment=environment,
        )


def _is_current(database_url: str) -> bool:
    """Return whether the database is at this farm's revision."""
    try:
        with psycopg.connect(database_url.replace("+psycopg", "", 1), connect_timeout=10) as database:
            return database.execute("SELECT version_num FROM alembic_version").fetchone() == (SCHEMA,)
    except psycopg.Error:  # there are no tables, or PostgreSQL says why in the log of the upgrade
        return False


def _fingerprint(home: Path, given: Mapping[str, str]) -> str:
    """Return a digest of all that a worker reads once: its settings, and the file that names environments."""
    settings = {
        name: given[name] for name in sorted(VARIABLES) if name not in _NOT_ITS_OWN and given.get(name)
    } | dict(sorted(tracing.settings(given).items()))
    try:
        file = Path(settings.get("FARM_ENVIRONMENTS") or home / "farm.toml").read_bytes().hex()
    except OSError:
        file = None
    return hashlib.sha256(json.dumps([settings, file]).encode()).hexdigest()
