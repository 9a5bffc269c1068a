"""The farm's own servers, seen from a command: finds the supervisor that runs them, or starts it."""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from farm.embedded.home import control_socket, end_of_log, lock, make_home, open_log
from farm.errors import ServerDown

#: The requests of a client. `USE` is followed by the client's environment variables as JSON: the worker
#: restarts if its settings differ from them; then the answer is that of `FACTS`.
FACTS, STOP, USE = b"facts", b"stop", b"use"

#: The most connections of the farm's own PostgreSQL: a worker has four, a command two.
CONNECTIONS = 100

_START_SECONDS = 120.0
# PostgreSQL may have much to write to a busy disk before it ends.
_STOP_SECONDS = 300.0
_POLL_SECONDS = 0.02


@dataclass(frozen=True, kw_only=True, slots=True)
class Servers:
    """Where the farm's own servers are, for SQLAlchemy and for Celery, and whether this call started them."""

    database_url: str
    broker_url: str
    started: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Facts:
    """The state of a supervisor; times are in seconds since 1970.

    ``worker_since`` is the start of its worker with the present settings, None without a worker;
    ``worker_failure`` is the reason why the worker does not start.
    """

    pid: int
    database_url: str
    broker_url: str
    postgres_version: str
    valkey_version: str
    since: float
    worker_since: float | None = None
    worker_failure: str | None = None


def ensure(
    home: Path,
    idle_minutes: float = 10.0,
    *,
    servers: str = "auto",
    worker: bool = True,
    connections: int = CONNECTIONS,
) -> Servers:
    """Return the home's servers, started first when none run; several commands at once start them once.

    ``servers`` is the source of their programs: `auto`, `wheels` or `system`. With ``worker`` the database
    gets this farm's tables and a worker runs beside it, with this process's environment variables. PostgreSQL
    accepts at most ``connections``. A supervisor that already runs is used as it is. Raises `ServerDown`,
    with the last lines of the log that has the reason.
    """
    home = home.absolute()
    make_home(home)
    options = [f"--idle-minutes={idle_minutes}", f"--servers={servers}", *["--worker"] * worker]
    options.append(f"--connections={connections}")
    for _ in _until(_START_SECONDS):
        if facts := status(home):
            return Servers(database_url=facts.database_url, broker_url=facts.broker_url, started=False)
        if (held := lock(home)) is not None:
            facts = _start(home, held, options)
            return Servers(database_url=facts.database_url, broker_url=facts.broker_url, started=True)
    raise ServerDown(f"the servers in {home} neither respond nor stop; read {home / 'supervisor.log'}")


def follow(home: Path) -> None:
    """Have the home's worker restarted if this process's variables differ from the worker's.

    Commands that only read runs do not call this: their variables are not meant for a worker.
    """
    if (facts := status(home)) and facts.worker_since is not None:
        _facts(home, USE + json.dumps(_environment()).encode())


def down(home: Path) -> bool:
    """Stop the home's servers, wait until every process is gone, and return whether there were any.

    Raises `ServerDown` when they have not ended within five minutes.
    """
    if not (home / "lock").exists():
        return False
    running = False
    for _ in _until(_STOP_SECONDS):
        if (held := lock(home)) is not None:
            os.close(held)
            return running
        running = True
        _ask(home, STOP)
    raise ServerDown(f"the servers in {home} do not stop; read {home / 'supervisor.log'}")


def status(home: Path) -> Facts | None:
    """Return the facts of the supervisor that serves this home, None if none does.

    Raises `ServerDown` for a supervisor of another version of the farm, which `down` can still stop.
    """
    return _facts(home, FACTS)


def _facts(home: Path, words: bytes) -> Facts | None:
    answer = _ask(home, words)
    try:
        return Facts(**json.loads(answer)) if answer else None
    except TypeError as error:
        raise ServerDown(
            f"the servers in {home} were started by another version of the farm; stop them first: farm down"
        ) from error


def _until(seconds: float) -> Iterator[None]:
    """Yield now and then until the time is up."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        yield
        time.sleep(_POLL_SECONDS)


def _ask(home: Path, words: bytes) -> bytes:
    """Send words to the home's supervisor and return its answer; empty when it is not there or went away."""
    if not home.exists():
        return b""
    with socket.socket(socket.AF_UNIX) as connection, suppress(OSError):
        connection.settimeout(_STOP_SECONDS)
        connection.connect(str(control_socket(home)))
        connection.sendall(words)
        connection.shutdown(socket.SHUT_WR)
        with connection.makefile("rb") as answer:
            return answer.read()
    return b""


def _start(home: Path, held: int, options: list[str]) -> Facts:
    """Start the supervisor, which inherits the lock, and return its facts once it is ready."""
    log = home / "supervisor.log"
    output, start = open_log(log)
    ready, tell = os.pipe()
    whose = map(str, (home, held, tell))
    command = [sys.executable, "-P", "-m", "farm.embedded.supervisor", *whose, *options]
    with output, os.fdopen(ready, "rb") as answer:
        try:
            _detach(command, output, (held, tell))
        finally:
            os.close(held)
            os.close(tell)
        in_time, _, _ = select.select([answer], [], [], _START_SECONDS)
        facts = json.loads((in_time and answer.read()) or "{}")
    if "error" in facts:
        raise ServerDown(f"the farm's servers in {home} did not start: {facts['error']}")
    if not facts:
        raise ServerDown(f"the farm's servers in {home} did not start; {end_of_log(log, start)}")
    return Facts(**facts)


def _detach(command: list[str], output: BinaryIO, descriptors: tuple[int, ...]) -> None:
    # The supervisor forks at once and its first process ends: this reaps the first process.
    subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        cwd="/",
        env=_environment(),
        start_new_session=True,
        pass_fds=descriptors,
        check=False,
    )


def _environment() -> dict[str, str]:
    """Return this process's variables, as a process in another folder is to have them."""
    # PostgreSQL's own variables (PGHOST, PGOPTIONS, ...) speak of other servers than the farm's.
    found = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    if file := found.get("FARM_ENVIRONMENTS"):
        found["FARM_ENVIRONMENTS"] = str(Path(file).expanduser().absolute())
    return found
