"""The farm's own servers, their folder: its layout, lock, sockets and logs.

A supervisor that serves a home holds the flock on ``lock``, and so do its PostgreSQL and its Valkey, by
inheritance: a free lock means that none of them is alive, whatever files remain.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from farm.errors import ServerDown

_LOG_BYTES = 10 * 1024 * 1024

# Linux keeps 108 bytes for the path of a unix socket, the last of them a NUL: unix(7). macOS keeps 104.
_SOCKET_PATH_BYTES = 103
_LONGEST_SOCKET = "/postgres/.s.PGSQL.5432"
_TMP = Path("/tmp")  # noqa: S108 - a folder in it is used only if no other user can have made it


def make_home(home: Path) -> None:
    """Make the home when it is not there and note that it is used now; raises `ServerDown` when it cannot."""
    with _usable():
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        last_used(home).touch(mode=0o600)


@contextmanager
def _usable() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ServerDown(
            f"{error.filename}: {error.strerror}; set FARM_HOME to a folder that you can write"
        ) from error


def last_used(home: Path) -> Path:
    """Return the path of the file whose time of change says when a command last used the servers."""
    return home / "last-used"


def lock(home: Path) -> int | None:
    """Return the descriptor of the home's lock, now ours, or None while a supervisor or a server holds it."""
    with _usable():
        descriptor = os.open(home / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def control_socket(home: Path) -> Path:
    """Return the path of the socket on which the home's supervisor listens."""
    return socket_folder(home) / "control.sock"


def socket_folder(home: Path) -> Path:
    """Return the folder of the home's sockets: inside it, or under /tmp when its path cannot be a socket's.

    That is when it is too long, or has characters that mean something else in URLs or in PostgreSQL's lists.
    """
    home = home.resolve()
    inside = home / "run"
    short = len(os.fsencode(inside)) + len(_LONGEST_SOCKET) <= _SOCKET_PATH_BYTES
    if short and re.fullmatch(r"[A-Za-z0-9._/-]+", str(inside)):
        return inside
    digest = hashlib.sha256(os.fsencode(home)).hexdigest()[:16]
    return _TMP / f"farm-{home.stat().st_uid}-{digest}"


def make_socket_folder(home: Path) -> Path:
    """Make the folder of the home's sockets and return it; raises `ServerDown` when it is another user's."""
    folder = socket_folder(home)
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    ours = found.st_uid in (os.geteuid(), home.stat().st_uid) and not found.st_mode & 0o022
    if not ours or not stat.S_ISDIR(found.st_mode):
        raise ServerDown(
            f"{folder} was not created by the farm; remove it, or set FARM_HOME to a shorter path"
        )
    return folder


def open_log(log: Path) -> tuple[BinaryIO, int]:
    """Open a log to append to and return it and its length; one over 10 MB is put aside as ``.old`` first."""
    with suppress(FileNotFoundError):
        if log.stat().st_size > _LOG_BYTES:
            log.replace(log.with_name(log.name + ".old"))
    output = os.fdopen(os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600), "ab")
    return output, output.seek(0, os.SEEK_END)


def end_of_log(log: Path, start: int, *, lines: int = 12) -> str:
    """Return the last lines that were written to a log after byte ``start``, under its name."""
    written = log.read_bytes()[start:].decode(errors="replace").rstrip() if log.exists() else ""
    return "\n  ".join([f"the end of {log}:", *written.splitlines()[-lines:]])
