"""The farm's own servers, PostgreSQL and Valkey: prepares and starts each, and waits until it answers."""

from __future__ import annotations

import os
import shutil
import signal
import socket
from collections.abc import Callable
from pathlib import Path

import psycopg

from farm.embedded.binaries import NOBODY, Binary
from farm.embedded.child import Child, ChildSpec
from farm.embedded.home import make_socket_folder
from farm.errors import ServerDown

Keep = Callable[[ChildSpec], Child]

# For a small machine: never forgets a commit, is reached by its socket only.
_POSTGRES_SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "shared_buffers": "128MB",
    "synchronous_commit": "on",
    "logging_collector": "off",
    "log_destination": "stderr",
    "log_line_prefix": "%m [%p] %a ",
    "log_timezone": "UTC",
    "timezone": "UTC",
}

# It only wakes workers: they find a lost call within a second by polling.
_VALKEY_SETTINGS = {"port": "0", "unixsocketperm": "700", "save": "", "appendonly": "no", "daemonize": "no"}


def start_postgres(home: Path, lock: int, binary: Binary, keep: Keep, *, connections: int) -> str:
    """Start PostgreSQL in the home, its database made if need be, and return its SQLAlchemy URL.

    It accepts at most ``connections``. The caller holds the home's ``lock`` and keeps the children passed to
    ``keep`` running. Raises `ServerDown`.
    """
    sockets = make_socket_folder(home)
    data = _data_folder(home, lock, binary)
    # The lock was free, so no server of this home lives: the process ids in these files are dead, or another
    # program's.
    (data / "postmaster.pid").unlink(missing_ok=True)
    shutil.rmtree(sockets / "postgres", ignore_errors=True)
    folder = _make_folder(sockets / "postgres", binary)
    settings = _POSTGRES_SETTINGS | {
        "unix_socket_directories": str(folder),
        "max_connections": str(connections),
    }
    options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    child = keep(
        ChildSpec(
            name="PostgreSQL",
            command=(*binary.command(), "-D", str(data), *options),
            log=home / "postgres.log",
            stop=signal.SIGINT,  # at SIGTERM it would wait for its clients to leave
            orphaned=signal.SIGINT,
            lock=lock,
        )
    )
    child.wait_until(lambda: _postgres_answers(folder))
    _create_database(folder)
    return f"postgresql+psycopg://farm@/farm?host={folder}"


def start_valkey(home: Path, lock: int, binary: Binary, keep: Keep) -> str:
    """Start Valkey in the home and return Celery's URL of it.

    The caller holds the home's ``lock`` and keeps the child passed to ``keep`` running. Raises `ServerDown`.
    """
    path = make_socket_folder(home) / "valkey.sock"
    folder = home / "valkey"
    folder.mkdir(mode=0o700, exist_ok=True)
    settings = _VALKEY_SETTINGS | {"unixsocket": str(path), "dir": str(folder)}
    options = [word for name, value in settings.items() for word in (f"--{name}", value)]
    command = (*binary.command(), *options)
    child = keep(ChildSpec(name="Valkey", command=command, log=home / "valkey.log", lock=lock))
    child.wait_until(lambda: _valkey_answers(path))
    return f"redis+socket://{path}?virtual_host=0"


def _data_folder(home: Path, lock: int, binary: Binary) -> Path:
    """Return the data folder; a missing one is made under another name, so it is never half done."""
    data, unfinished = home / "postgres", home / "postgres.unfinished"
    if data.exists():
        _require_version(data, binary)
        return data
    shutil.rmtree(unfinished, ignore_errors=True)
    _make_folder(unfinished, binary)
    options = ("--username=farm", "--auth=trust", "--encoding=UTF8", "--locale=C")
    command = (*binary.command("initdb"), "-D", str(unfinished), *options)
    Child(ChildSpec(name="initdb", command=command, log=home / "postgres.log", lock=lock)).wait()
    return unfinished.rename(data)


def _make_folder(folder: Path, binary: Binary) -> Path:
    folder.mkdir(mode=0o700)
    if binary.as_nobody:
        os.chown(folder, NOBODY, NOBODY)
    return folder


def _require_version(data: Path, binary: Binary) -> None:
    try:
        made_by = (data / "PG_VERSION").read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ServerDown(
            f"{data} is not a PostgreSQL data folder ({error}); move it away to start empty"
        ) from error
    major = binary.version.partition(".")[0]
    if made_by != major:
        raise ServerDown(
            f"{data} was created by PostgreSQL {made_by}, but {binary.program} is PostgreSQL {major}; "
            "choose another with FARM_SERVERS=wheels or system, or move the folder away to start empty"
        )


def _connect(folder: Path, database: str) -> psycopg.Connection:
    return psycopg.connect(
        host=str(folder), user="farm", dbname=database, connect_timeout=10, autocommit=True
    )


def _postgres_answers(folder: Path) -> bool:
    try:
        _connect(folder, "postgres").close()
    except psycopg.OperationalError:
        return False
    return True


def _create_database(folder: Path) -> None:
    with _connect(folder, "postgres") as connection:
        if connection.execute("SELECT FROM pg_database WHERE datname = 'farm'").fetchone() is None:
            connection.execute("CREATE DATABASE farm")


def _valkey_answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.setblocking(True)
        try:
            connection.connect(str(path))
            connection.sendall(b"PING\r\n")
            return connection.recv(16).startswith(b"+PONG")
        except OSError:
            return False
