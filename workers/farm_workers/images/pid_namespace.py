"""Image step, keepers: process 1 of a pid namespace, in which an image forks one check after the other.

A process 1 ignores signals that it has no handler for, so a check must not be one. It adopts the orphans of a
check, and when it ends, the kernel kills all processes of its namespace. The first keepers are forked from an
image that has not yet loaded Lean, and are small; no keeper ever reads a submission.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import time

from farm_workers.box import launch
from farm_workers.box.sockets import socket_pair
from farm_workers.images import protocol
from farm_workers.images.process import leave, require

#: CLONE_NEWPID of <linux/sched.h>.
_NEW_PIDS = 0x20000000
_CLEAR = b"clear"
_LIBC = ctypes.CDLL(None, use_errno=True)


class Keeper:
    """A keeper and its namespace, seen from the image. `fileno` becomes readable when it is free again."""

    def __init__(self, spaces: int, home: int) -> None:
        """Fork a keeper; `spaces` is the open folder of this process's namespaces, `home` that of its pids.

        Raises OSError.
        """
        self._home = home
        with contextlib.ExitStack() as undo:
            self._socket, theirs = socket_pair()
            undo.enter_context(self._socket)
            with theirs:
                require(_LIBC.unshare(_NEW_PIDS), "unshare")
                undo.callback(self._return)
                self._pid = os.fork()
                if self._pid == 0:
                    leave(lambda: _keep(theirs))
            self._namespace = _opened("pid_for_children", spaces)
            self._return()
            undo.pop_all()

    def fileno(self) -> int:
        """Return the descriptor of the socket to it."""
        return self._socket.fileno()

    @property
    def descriptors(self) -> frozenset[int]:
        """The image's descriptors for this keeper."""
        return frozenset((self._socket.fileno(), self._namespace))

    def fork(self) -> int:
        """Fork into its namespace, like `os.fork`. Raises OSError."""
        require(_LIBC.setns(self._namespace, _NEW_PIDS), "setns")
        try:
            pid = os.fork()
        except OSError:
            self._return()
            raise
        if pid:
            self._return()
        return pid

    def _return(self) -> None:
        require(_LIBC.setns(self._home, _NEW_PIDS), "setns")

    def clear(self, said: bytes, asker: int) -> None:
        """Have it kill its namespace's other processes, then send `said` to `asker`. Raises OSError."""
        socket.send_fds(self._socket, [said], [asker])

    def is_clear(self) -> bool:
        """Return whether it is free again, once its socket is readable; else it has ended."""
        try:
            return self._socket.recv(protocol.MOST_BYTES) == _CLEAR
        except ConnectionResetError:
            return False

    def close(self) -> None:
        """End it, and all processes in its namespace, without waiting."""
        self._socket.close()
        os.close(self._namespace)
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, os.WNOHANG)


class Keepers:
    """The keepers of an image: one for each concurrent check, `first` of them from the start."""

    def __init__(self, first: int) -> None:
        """Fork the first of them. Raises OSError."""
        # These stay open: there is no /proc in an image that serves.
        self._spaces = _opened("/proc/self/ns")
        self._home = _opened("pid", self._spaces)
        self._free: list[Keeper] = []
        for _ in range(first):
            self._free.append(Keeper(self._spaces, self._home))

    @property
    def descriptors(self) -> frozenset[int]:
        """The image's descriptors for the free keepers."""
        return frozenset((self._spaces, self._home)).union(*(each.descriptors for each in self._free))

    def take(self) -> Keeper:
        """Return a free keeper, or a new one. Raises OSError."""
        return self._free.pop() if self._free else Keeper(self._spaces, self._home)

    def give_back(self, keeper: Keeper) -> None:
        """Take one back once its socket is readable: it is free again, or has ended."""
        if keeper.is_clear():
            self._free.append(keeper)
        else:
            keeper.close()


def _keep(image: socket.socket) -> int:
    """Run as a keeper to the end of the image; return its exit status."""
    launch.prctl(launch.PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps ended processes
    os.closerange(0, image.fileno())
    os.closerange(image.fileno() + 1, launch.OPEN_FILES)
    while True:
        said, files, _, _ = socket.recv_fds(image, protocol.MOST_BYTES, 1)
        if not files:
            return 0
        _clear()
        image.send(_CLEAR)  # first, so that it is free before the worker can order the next check
        with contextlib.suppress(OSError):  # the worker is gone
            os.write(files[0], said)
        os.close(files[0])


def _opened(path: str, folder: int | None = None) -> int:
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)


def _clear() -> None:
    """Kill all other processes of this namespace, and return when they are gone."""
    while True:
        try:
            os.kill(-1, signal.SIGKILL)
        except ProcessLookupError:
            return
        time.sleep(0.001)  # killed processes take a moment to die
