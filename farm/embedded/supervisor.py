"""The farm's own servers, the background process: starts them, restarts them, and ends when idle."""

from __future__ import annotations

import argparse
import json
import logging
import os
import select
import shutil
import signal
import socket
import sys
import time
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import LiteralString

import psycopg

from farm import log
from farm.embedded.binaries import find_pair
from farm.embedded.child import FIRST_PAUSE_SECONDS, Child, ChildSpec
from farm.embedded.client import FACTS, STOP, USE, Facts
from farm.embedded.home import control_socket, last_used, make_socket_folder
from farm.embedded.pair import start_postgres, start_valkey
from farm.embedded.worker import OwnWorker
from farm.errors import FarmError

_IDLE_POLL_SECONDS = 5.0

_OTHER_CLIENTS = """
    SELECT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'client backend'
    AND pid <> pg_backend_pid() AND application_name NOT LIKE 'farm-worker%')
"""
_SET_UP = "SELECT to_regclass('checks') IS NOT NULL"
_WORK_LEFT = """
    SELECT EXISTS (SELECT FROM checks WHERE status = 'queued')
        OR EXISTS (SELECT FROM checks WHERE status = 'running')
"""

_log = logging.getLogger("farm.supervisor")


class Supervisor:
    """The servers of one home and, if requested, their worker."""

    def __init__(self, home: Path, lock: int) -> None:
        self._home, self._lock = home, lock
        self._children: list[Child] = []
        self._worker: OwnWorker | None = None
        self._sockets: Path | None = None
        self._last_busy = 0.0
        # Signals arrive here as bytes, so that one select waits for them, for clients and for the time.
        self._bell, self._ring = socket.socketpair()
        self._bell.setblocking(False)
        self._ring.setblocking(False)
        signal.set_wakeup_fd(self._ring.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)

    def start(self, servers: str, *, worker: bool, connections: int) -> Facts:
        """Start all servers and return the facts once all answer; raises `ServerDown`."""
        postgres, valkey = find_pair(servers)
        self._sockets = make_socket_folder(self._home)
        broker_url = start_valkey(self._home, self._lock, valkey, self._keep)
        database_url = start_postgres(self._home, self._lock, postgres, self._keep, connections=connections)
        if worker:
            self._worker = OwnWorker(self._home, (database_url, broker_url), self._keep, os.environ)
        self._last_busy = time.time()
        return Facts(
            pid=os.getpid(),
            database_url=database_url,
            broker_url=broker_url,
            postgres_version=postgres.version,
            valkey_version=valkey.version,
            since=self._last_busy,
            worker_since=None if self._worker is None else self._worker.since,
        )

    def serve(self, facts: Facts, listener: socket.socket, idle_seconds: float) -> str:
        """Answer clients and tend the children until there is a reason to end, and return that."""
        poll = min(_IDLE_POLL_SECONDS, idle_seconds / 4)
        while not self._is_idle(facts, idle_seconds):
            for child in self._children:
                child.tend()
            healthy = all(child.alive for child in self._children)
            ready, _, _ = select.select(
                [self._bell, listener], [], [], poll if healthy else FIRST_PAUSE_SECONDS
            )
            if self._bell in ready and {signal.SIGTERM, signal.SIGINT} & set(self._bell.recv(64)):
                return "stopped by a signal"
            if listener in ready and self._answer(listener, facts) == STOP:
                return "stopped by a command"
        return "idle"

    def end(self) -> None:
        """Stop everything, the worker first, and wait until it is gone."""
        while self._children:
            self._children.pop().end()
        if self._sockets:
            shutil.rmtree(self._sockets, ignore_errors=True)

    def _keep(self, program: ChildSpec) -> Child:
        child = Child(program)
        self._children.append(child)
        return child

    def _answer(self, listener: socket.socket, facts: Facts) -> bytes:
        connection, _ = listener.accept()
        connection.settimeout(1.0)
        try:
            words = _heard(connection)
            if words.startswith(USE) and self._worker is not None:
                self._worker.follow(json.loads(words.removeprefix(USE)))
            if words.startswith((FACTS, USE)):
                connection.sendall(json.dumps(asdict(self._now(facts))).encode())
        except (OSError, ValueError):  # the client is gone, or its request is incomplete
            words = b""
        if words == STOP:
            self._stopping = connection  # its end tells the waiting client that this process is gone
        else:
            connection.close()
        return words

    def _now(self, facts: Facts) -> Facts:
        if self._worker is None:
            return facts
        return replace(facts, worker_since=self._worker.since, worker_failure=self._worker.failure)

    def _is_idle(self, facts: Facts, idle_seconds: float) -> bool:
        # A command marks its use before it asks for us: one that was answered is never left without servers.
        try:
            used = last_used(self._home).stat().st_mtime
        except FileNotFoundError:
            return True  # the home was removed
        if _is_busy(facts.database_url):
            self._last_busy = time.time()
        return time.time() - max(used, self._last_busy) >= idle_seconds


def _is_busy(database_url: str) -> bool:
    """Return whether checks are unfinished or a client is connected; true while PostgreSQL is down."""
    url = database_url.replace("+psycopg", "", 1)
    try:
        with psycopg.connect(
            url, application_name="farm-supervisor", connect_timeout=5, autocommit=True
        ) as database:

            def holds(query: LiteralString) -> bool:
                return database.execute(query).fetchone() == (True,)

            return holds(_OTHER_CLIENTS) or (holds(_SET_UP) and holds(_WORK_LEFT))
    except psycopg.OperationalError:
        return True


def _heard(connection: socket.socket) -> bytes:
    """Return a client's request; an earlier farm's client sends one word and keeps its side open."""
    words = connection.recv(16)
    while words.startswith(USE) and (more := connection.recv(1 << 16)):
        words += more
    return words


def _listen(home: Path) -> socket.socket:
    path = control_socket(home)
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.setblocking(True)
    listener.bind(str(path))
    listener.listen()
    return listener


def _tell(ready: int, news: dict[str, object]) -> None:
    with os.fdopen(ready, "w") as pipe:
        json.dump(news, pipe)


def run(options: argparse.Namespace) -> int:
    """Serve a home from its start to its end and return the exit status."""
    supervisor = Supervisor(options.home, options.lock)
    try:
        facts = supervisor.start(options.servers, worker=options.worker, connections=options.connections)
        with closing(_listen(options.home)) as listener:
            _tell(options.ready, asdict(facts))
            _log.info("ready: %s", facts)
            why = supervisor.serve(facts, listener, 60 * options.idle_minutes)
        _log.info("stopping: %s", why)
    except FarmError as error:
        _log.error("%s", error)
        _tell(options.ready, {"error": str(error)})
        return 1
    finally:
        supervisor.end()
    return 0


def main() -> int:
    """Read the command line, leave the process that started us, and run."""
    parser = argparse.ArgumentParser(prog="farm.embedded.supervisor")
    parser.add_argument("home", type=Path)
    parser.add_argument("lock", type=int)
    parser.add_argument("ready", type=int)
    parser.add_argument("--idle-minutes", type=float, required=True)
    parser.add_argument("--servers", required=True)
    parser.add_argument("--worker", action="store_true")
    parser.add_argument("--connections", type=int, required=True)
    options = parser.parse_args()
    if os.fork():
        os._exit(0)  # the process that started this one waits for its end
    os.umask(0o077)
    log.configure("info", os.environ.get("FARM_LOG_FORMAT", "").lower())
    return run(options)


if __name__ == "__main__":
    sys.exit(main())
