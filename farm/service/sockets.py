"""The listening sockets of the service: an address, or a unix socket that only its owner can connect to."""

from __future__ import annotations

import fcntl
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from farm.errors import FarmError, UsageError

#: The number of connections that may wait to be accepted.
BACKLOG = 4096


@contextmanager
def listening(path: Path) -> Iterator[socket.socket]:
    """Yield a listening unix socket that only this user and root can connect to; its file goes at the end.

    The socket file of a service that was killed is replaced. Raises `UsageError` if another service listens
    there, if the path is another kind of file, or if the socket cannot be made. Call it before threads
    start: it changes the process's umask for a moment.
    """
    with socket.socket(socket.AF_UNIX) as listener:
        with _alone(path):
            _make_way(path)
            _bind(listener, path)
        made = path.lstat()
        try:
            yield listener
        finally:
            with suppress(FarmError, OSError), _alone(path):
                if os.path.samestat(path.lstat(), made):
                    path.unlink()


@contextmanager
def listening_at(host: str, port: int) -> Iterator[socket.socket]:
    """Yield a socket that listens at an address; port 0 takes a free port.

    Clients can connect at once and wait until the service has started. Raises `UsageError`.
    """
    with ExitStack() as stack:
        try:
            family, kind, proto, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            listener = stack.enter_context(socket.socket(family, kind, proto))
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(BACKLOG)
        except OSError as error:
            raise UsageError(
                f"cannot listen on {shown_host(host)}:{port}: {error.strerror}; give another --host or --port"
            ) from error
        yield listener


def shown_host(host: str) -> str:
    """Return a host as a URL has it: an IPv6 address in brackets."""
    return f"[{host}]" if ":" in host else host


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Lock a folder, so that no other service adds or removes a socket in it; raises `UsageError`."""
    try:
        # The folder itself is locked: a lock file would stay behind in a folder that is not the farm's.
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise UsageError(
            f"--uds {path}: the folder {path.parent} cannot be used: {error.strerror}; "
            "make it, or name a socket in a folder of yours"
        ) from error
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _bind(listener: socket.socket, path: Path) -> None:
    # The umask, not a later chmod: a client that connected in between would stay connected.
    before = os.umask(0o177)
    try:
        listener.bind(str(path))
    except OSError as error:
        raise UsageError(
            f"--uds {path} cannot be listened on: {error.strerror or error}; "
            "name a socket with a shorter path in a folder of yours"
        ) from error
    finally:
        os.umask(before)
    listener.listen(BACKLOG)


def _make_way(path: Path) -> None:
    """Remove the socket file of a service that was killed; raises `UsageError` for any other file."""
    try:
        found = path.lstat()
    except OSError:
        return  # binding reports any other problem
    if not stat.S_ISSOCK(found.st_mode):
        raise UsageError(f"{path} is not a socket; remove it, or name another path")
    if _is_answered(path):
        raise UsageError(f"another service listens on {path}; stop that one, or name another path")
    path.unlink()


def _is_answered(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as asking:
        asking.setblocking(False)  # a full queue of connections shows that a service listens
        try:
            asking.connect(str(path))
        except ConnectionRefusedError:
            return False
        except OSError:
            return True
    return True
