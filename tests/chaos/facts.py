"""All that the chaos suite knows of the farm's tables, settings and commands."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, LiteralString

import psycopg

from tests.chaos.lines import MEMORY_MIB

LEASE_SECONDS = 3.0

#: What may become of an attempt before the one that gave the verdict.
UNFINISHED = frozenset({"lost", "returned", "judge_error"})

#: What the attempts of a worker say whose disk is full, or closed: the check is not to blame.
DISK_TROUBLE = ("No space left", "Permission denied")

#: Reasons of verdicts that are known when a run is submitted: no worker ever takes such a line.
KNOWN_AT_ONCE = frozenset({"invalid_text"})

#: What a command says that ends because it reaches no server.
NO_SERVER = "does not answer"

_ANSWER_SECONDS = 60.0

_RUNS = "SELECT run_id FROM manifests WHERE path = %(path)s"
_LINES = """
    SELECT jobs.line, checks.id, checks.status, checks.attempt, verdicts.verdict, verdicts.reason
    FROM jobs JOIN checks ON checks.id = jobs.check_id LEFT JOIN verdicts ON verdicts.check_id = checks.id
    WHERE jobs.run_id = %(run)s ORDER BY jobs.line
"""
_OF_RUN = "check_id IN (SELECT check_id FROM jobs WHERE run_id = %(run)s)"
_ATTEMPTS: LiteralString = (
    f"SELECT check_id, number, worker, outcome, detail FROM attempts WHERE {_OF_RUN} ORDER BY 1, 2"
)
_DECIDED: LiteralString = (
    f"SELECT extract(epoch FROM decided_at)::float FROM verdicts WHERE {_OF_RUN} ORDER BY 1"
)
_PROGRESS = """
    SELECT count(*) FILTER (WHERE status IN ('queued', 'running')), count(*)
    FROM checks WHERE id IN (SELECT check_id FROM jobs WHERE run_id = %(run)s)
"""
_WAITING = """
    SELECT count(*) FROM jobs JOIN checks ON checks.id = check_id
    WHERE run_id = %(run)s AND cancelled IS NULL AND status IN ('queued', 'running')
"""
_RUNNING = "SELECT id, attempt FROM checks WHERE status = 'running'"
_HOLDERS = "SELECT worker FROM checks WHERE status = 'running'"
_LOCKS = """
    SELECT objid FROM pg_locks JOIN pg_database ON pg_database.oid = database
    WHERE locktype = 'advisory' AND datname = current_database()
"""
_LOADING = """
    SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
    AND application_name NOT LIKE 'farm-worker%%' AND backend_xid IS NOT NULL
"""
_BACKENDS = """
    SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
    AND backend_type = 'client backend' ORDER BY pid
"""
_END_CONNECTIONS = f"SELECT count(pg_terminate_backend(pid)) FROM ({_BACKENDS}) AS others"
_UNSERVED = """
    INSERT INTO environments (name, digest, toolchain, tiers, seen_at)
    VALUES (%(name)s, 'none', 'none', '{kernel,audit,lean}', now())
    ON CONFLICT DO NOTHING
"""

#: An environment that no worker serves: what waits for it is never checked.
UNSERVED = "unserved"


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a run as the store has it."""

    number: int
    check: int
    status: str
    attempt: int
    verdict: tuple[str, str] | None


@dataclass(frozen=True, slots=True)
class Attempt:
    """What became of one attempt."""

    check: int
    number: int
    worker: str
    outcome: str | None
    detail: str | None


@dataclass(frozen=True)
class Facts:
    """Questions to one database of the farm; while PostgreSQL is away they wait for it."""

    url: str

    def runs(self, manifest: Path) -> list[str]:
        return [run for (run,) in self._ask(_RUNS, path=str(manifest))]

    def lines(self, run: str) -> list[Line]:
        return [
            Line(number, check, status, attempt, None if verdict is None else (verdict, reason))
            for number, check, status, attempt, verdict, reason in self._ask(_LINES, run=run)
        ]

    def attempts(self, run: str) -> list[Attempt]:
        return [Attempt(*row) for row in self._ask(_ATTEMPTS, run=run)]

    def decided(self, run: str) -> list[float]:
        """Return when verdicts were recorded, in seconds since 1970, the earliest first."""
        return [when for (when,) in self._ask(_DECIDED, run=run)]

    def progress(self, run: str) -> tuple[int, int]:
        """Return how many checks of a run are unfinished, and how many there are."""
        ((left, every),) = self._ask(_PROGRESS, run=run)
        return left, every

    def waiting(self, run: str) -> int:
        """Return how many lines of a run wait for a verdict."""
        ((lines,),) = self._ask(_WAITING, run=run)
        return int(lines)

    def running(self) -> list[tuple[int, int]]:
        """Return the checks that somebody has a lease of, each with its attempt."""
        return list(self._ask(_RUNNING))

    def is_holding(self, process: int) -> bool:
        """Whether the worker with this process id has a check now."""
        return any(worker.endswith(f":{process}") for (worker,) in self._ask(_HOLDERS))

    def advisory_locks(self) -> list[int]:
        return [lock for (lock,) in self._ask(_LOCKS)]

    def loading(self) -> list[int]:
        """Return the backends that store a run at this moment."""
        return [pid for (pid,) in self._ask(_LOADING)]

    def backends(self) -> list[int]:
        return [pid for (pid,) in self._ask(_BACKENDS)]

    def end_connections(self) -> int:
        """End every connection to this database but the one that asks, and return how many there were."""
        ((ended,),) = self._ask(_END_CONNECTIONS)
        return int(ended)

    def know_unserved(self) -> None:
        """Let runs be submitted that wait for ever."""
        self._ask(_UNSERVED, name=UNSERVED)

    def _ask(self, question: LiteralString, **values: object) -> list[tuple[Any, ...]]:
        deadline = time.monotonic() + _ANSWER_SECONDS
        while True:
            try:
                return self._asked(question, values)
            except psycopg.OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)

    def _asked(self, question: LiteralString, values: dict[str, object]) -> list[tuple[Any, ...]]:
        url = self.url.replace("+psycopg", "", 1)
        with psycopg.connect(url, application_name="chaos", connect_timeout=10, autocommit=True) as database:
            cursor = database.execute(question, values)
            return cursor.fetchall() if cursor.description else []


def settings(*, database_url: str, broker_url: str, home: Path, attempts: int | None) -> dict[str, str]:
    """Return the settings of a process of the farm; without `attempts` a check has as many as by default."""
    known = {} if attempts is None else {"FARM_ATTEMPTS": str(attempts)}
    return known | {
        "FARM_DATABASE_URL": database_url,
        "FARM_BROKER_URL": broker_url,
        "FARM_HOME": str(home),
        "FARM_LEASE_SECONDS": f"{LEASE_SECONDS:g}",
        "FARM_MEMORY_MIB": str(MEMORY_MIB),
    }


def submit(manifest: Path, *, alone: bool = False) -> list[str]:
    """Return the words of a `farm submit`, which resume a run that is there; `alone`, it shares nothing."""
    return ["submit", str(manifest), *(["--no-share"] if alone else [])]


def submit_unserved(manifest: Path) -> list[str]:
    """Return the words of a `farm submit` whose lines no worker takes."""
    return ["submit", str(manifest), "--environment", UNSERVED, "--no-wait"]


def submit_beside(manifest: Path) -> list[str]:
    """Return the words of a `farm submit` that leaves."""
    return ["submit", str(manifest), "--no-wait"]


def cancel(run: str) -> list[str]:
    return ["cancel", run]


def export(run: str) -> list[str]:
    return ["export", run]
