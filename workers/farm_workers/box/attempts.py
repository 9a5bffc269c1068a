"""Box step, inside: tries actions that no check may do to others, and prints the successful ones as JSON.

Run as ``python -I -S attempts.py TARGETS`` with the rights of a check; TARGETS is JSON that names the objects
made by `farm_workers.box.promises` and the numbers of this machine's system calls. No attempt does harm where
it works: the signal is number 0, the files are there for it, and no process is changed.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import socket
import struct
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

_LIBC = ctypes.CDLL(None, use_errno=True)
_NO_SIGNAL = 0
_PTRACE_SEIZE, _RLIMIT_CORE, _IOPRIO_PROCESS = 0x4206, 4, 1
_SECONDS = 5.0

Attempt = Callable[[], object]


def _word(value: object) -> object:
    return ctypes.c_long(value) if isinstance(value, int) else value


def _call(number: int | None, *words: object) -> int:
    """Make a system call; raises OSError where it fails, or where this machine has no such call."""
    if number is None:
        raise OSError
    result: int = _LIBC.syscall(ctypes.c_long(number), *map(_word, words))
    if result < 0:
        raise OSError(ctypes.get_errno(), str(number))
    return result


class _Attempts:
    """The attempts of each promise, given the targets."""

    def __init__(self, targets: dict[str, Any]) -> None:
        self._calls: dict[str, int | None] = targets["calls"]
        self._file, self._folder = targets["file"], targets["folder"]
        self._others: list[int] = [*targets["processes"], *([os.getppid()] if targets["parent"] else [])]
        self._targets = targets

    def by_promise(self) -> dict[str, Iterator[Attempt]]:
        """Return the attempts of each promise; those that change the targets come last."""
        return {
            "reading": self._reading(),
            "processes": self._processes(),
            "signals": self._signals(),
            "networks": self._networks(),
            "objects": self._objects(),
            "writing": self._writing(),
        }

    def _reading(self) -> Iterator[Attempt]:
        """Yield ways to read a file outside and its attributes."""
        for path in (self._file, self._targets["secret"]):
            for flags in (os.O_RDONLY, os.O_ACCMODE):  # the latter opens for neither reading nor writing
                yield partial(os.open, path, flags)
            yield partial(os.link, path, "linked")
            yield partial(os.getxattr, path, "user.farm")
        yield partial(os.listdir, self._folder)
        yield partial(_call, self._calls["inotify_init1"], 0)

    def _writing(self) -> Iterator[Attempt]:
        """Yield ways to change a file or folder outside or its attributes."""
        file, shown, new = self._file, self._targets["shown"], f"{self._folder}/new"
        for path in (file, shown):
            for flags in (os.O_WRONLY, os.O_RDWR, os.O_RDONLY | os.O_TRUNC):
                yield partial(os.open, path, flags)
            yield partial(os.truncate, path, 0)
            yield partial(os.chmod, path, 0o666)
            yield partial(os.utime, path)
            yield partial(os.chown, path, -1, os.getgid())
            yield partial(os.setxattr, path, "user.farm", b"")
        yield partial(os.open, new, os.O_WRONLY | os.O_CREAT, 0o600)
        yield partial(os.mkdir, f"{new}-folder")
        yield partial(os.mkfifo, f"{new}-pipe")
        yield partial(os.symlink, "nowhere", f"{new}-link")
        for shared in ("/tmp", "/dev/shm", "/var/tmp"):  # noqa: S108 - it must not work
            yield partial(_make_and_remove, f"{shared}/farm-attempt-{os.getpid()}")
        yield partial(_lock, shown)
        yield partial(os.rename, file, new)

    def _processes(self) -> Iterator[Attempt]:
        """Yield ways to look into another process, or to change how it runs."""
        calls, room = self._calls, ctypes.create_string_buffer(64)
        for pid in self._others:
            for name in ("environ", "maps", "mem", "cmdline", "status"):
                yield partial(os.open, f"/proc/{pid}/{name}", os.O_RDONLY)
            yield partial(os.readlink, f"/proc/{pid}/cwd")
            yield partial(_call, calls["ptrace"], _PTRACE_SEIZE, pid, 0, 0)
            for name in ("process_vm_readv", "process_vm_writev"):
                yield partial(_of_memory, calls[name], pid, room)
            yield partial(_call, calls["prlimit"], pid, _RLIMIT_CORE, 0, room)
            yield partial(_keep_priority, pid)
            yield partial(os.sched_setaffinity, pid, os.sched_getaffinity(0))
            yield partial(_call, calls["ioprio_set"], _IOPRIO_PROCESS, pid, 0)
            yield partial(_call, calls["kcmp"], os.getpid(), pid, 1, 0, 0)
            yield partial(_call, calls["get_robust_list"], pid, room, room)

    def _signals(self) -> Iterator[Attempt]:
        """Yield ways to send a signal to another process."""
        calls, information = self._calls, ctypes.create_string_buffer(struct.pack("=iii", 0, 0, -1), 128)
        for pid in self._others:
            yield partial(os.kill, pid, _NO_SIGNAL)
            yield partial(_call, calls["tkill"], pid, _NO_SIGNAL)
            yield partial(_call, calls["tgkill"], pid, pid, _NO_SIGNAL)
            yield partial(_call, calls["rt_sigqueueinfo"], pid, _NO_SIGNAL, information)
            yield partial(_by_handle, calls, pid)
            yield partial(_when_written, pid)

    def _networks(self) -> Iterator[Attempt]:
        """Yield ways to reach a socket outside."""
        for family, kind, address in self._targets["sockets"]:
            yield partial(_connect, family, kind, tuple(address) if isinstance(address, list) else address)
        for family in (socket.AF_NETLINK, socket.AF_VSOCK, socket.AF_PACKET, socket.AF_ALG):
            yield partial(socket.socket, family, socket.SOCK_RAW)
        yield socket.socketpair

    def _objects(self) -> Iterator[Attempt]:
        """Yield ways to reach objects that have a number or a name and no path."""
        room = ctypes.create_string_buffer(256)
        memory, semaphores, messages = self._targets["objects"]
        for name, words in (
            ("shmget", (0, 4096, 0o1600)),
            ("shmat", (memory, 0, 0o10000)),
            ("shmctl", (memory, 2, room)),
            ("semget", (0, 1, 0o1600)),
            ("semctl", (semaphores, 0, 12, 0)),
            ("semop", (semaphores, struct.pack("=hhh", 0, 1, 0), 1)),
            ("msgget", (0, 0o1600)),
            ("msgsnd", (messages, struct.pack("=ql", 1, 1), 1, 0o4000)),
            ("msgctl", (messages, 2, room)),
            ("mq_open", (b"farm-attempt", 0o100, 0o600, 0)),
            ("io_uring_setup", (1, ctypes.create_string_buffer(120))),
            ("userfaultfd", (0,)),
            ("userfaultfd", (1,)),  # of its own faults only
            ("add_key", (b"user", b"farm", b"x", 1, -2)),
            ("keyctl", (0, -4, 0)),
            ("perf_event_open", (struct.pack("=II", 1, 112) + bytes(104), 0, -1, -1, 0)),
            ("unshare", (0x10000000,)),
        ):
            yield partial(_call, self._calls[name], *words)


def _of_memory(number: int | None, pid: int, room: ctypes.Array[ctypes.c_char]) -> None:
    """Read or write another process's memory, at a bad address: Linux looks at the rights first."""
    here, there = struct.pack("=QQ", ctypes.addressof(room), 1), struct.pack("=QQ", 1, 1)
    try:
        _call(number, pid, here, 1, there, 1, 0)
    except OSError as error:
        if error.errno != errno.EFAULT:
            raise


def _keep_priority(pid: int) -> None:
    os.setpriority(os.PRIO_PROCESS, pid, os.getpriority(os.PRIO_PROCESS, pid))


def _make_and_remove(path: str) -> None:
    os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))
    os.unlink(path)  # noqa: PTH108


def _lock(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)


def _by_handle(calls: dict[str, int | None], pid: int) -> int:
    handle = _call(calls["pidfd_open"], pid, 0)
    return _call(calls["pidfd_send_signal"], handle, _NO_SIGNAL, 0, 0)


def _when_written(pid: int) -> None:
    """Have the kernel send a signal to a process when a pipe of this process can be read."""
    reading, _ = os.pipe()
    fcntl.fcntl(reading, fcntl.F_SETOWN, pid)


def _connect(family: int, kind: int, address: str | tuple[object, ...]) -> None:
    with socket.socket(family, kind) as made:
        made.settimeout(_SECONDS)
        made.connect(address)


def _works(attempt: Attempt) -> bool:
    with contextlib.suppress(OSError, ValueError):
        attempt()
        return True
    return False


def main(words: list[str]) -> None:
    """Try everything, and print the places of the attempts that worked, by promise."""
    worked = {
        promise: [place for place, attempt in enumerate(attempts) if _works(attempt)]
        for promise, attempts in _Attempts(json.loads(words[0])).by_promise().items()
    }
    print(json.dumps(worked), flush=True)  # noqa: T201 - the parent reads this output


if __name__ == "__main__":
    main(sys.argv[1:])
