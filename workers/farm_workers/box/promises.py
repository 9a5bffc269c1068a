"""Box step: tries to break the promises of a level of isolation before the level is trusted.

A probe (`farm_workers.box.attempts`) runs with the rights of a check. It has targets: files and a folder that
their permissions leave open to it, a second check of the same user, the worker, sockets and objects of the
kernel. Each success is a promise that this machine does not keep.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import platform
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from farm.limits import Limits
from farm_workers.box import attempts, bubblewrap, seccomp
from farm_workers.box.supervisor import BoxFailed, BoxResult, BoxSupervisor, Command

#: The actions of a probe that succeeds, in words for people, by the promise.
BROKEN: Mapping[str, str] = MappingProxyType(
    {
        "reading": "read files outside its folder",
        "writing": "change files outside its folder",
        "processes": "look into other processes, or change how they run",
        "signals": "send signals to other processes",
        "networks": "reach sockets",
        "objects": "use shared memory, keys or other objects of the kernel",
    }
)
_LIMITS = Limits(wall_seconds=60.0, cpu_seconds=60.0, memory_mib=128, processes=8)
_MOST_SAID = 1 << 16
#: Calls that the probe makes and that no filter refuses by their numbers alone, on x86-64 and arm64.
_MORE_CALLS = {
    "pidfd_send_signal": (424, 424),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "prlimit": (302, 261),
}
_REFUSED = {**seccomp.REFUSED, **seccomp.REFUSED_WHERE_SHARED}
#: System V objects: the function that makes one and its arguments, the function that removes it and its last
#: arguments (IPC_PRIVATE, IPC_CREAT and IPC_RMID of <linux/ipc.h>).
_OBJECTS = (
    ("shmget", (0, 4096, 0o1666), "shmctl", (0, None)),
    ("semget", (0, 1, 0o1666), "semctl", (0, 0)),
    ("msgget", (0, 0o1666), "msgctl", (0, None)),
)
_LIBC = ctypes.CDLL(None, use_errno=True)

#: Starts a command with the rights of a check, given its input and the stack that ends it.
Start = Callable[[Command, int, contextlib.ExitStack], BoxSupervisor]


def broken(starts: Start, folder: Path, user: int | None) -> tuple[str, ...]:
    """Return the promises that are not kept, as keys of `BROKEN`. Raises BoxFailed and OSError.

    `starts` starts a command with the rights of a check; `folder` is one for the targets; `user` is the user
    of checks, None if that is this process's.
    """
    with contextlib.ExitStack() as files:
        waits, ends = os.pipe()
        files.callback(os.close, waits)
        files.callback(os.close, ends)
        other = starts(Command(words=["cat"], limits=_LIMITS), waits, files)
        other.go()
        given = files.enter_context(targets(folder, user))
        given |= {"processes": [other.command_pid, other.pid, os.getpid()], "parent": True}
        probe = Path(attempts.__file__)
        words = [bubblewrap.python(), "-I", "-S", str(probe), json.dumps(given)]
        command = Command(words=words, limits=_LIMITS, visible=[probe, Path(given["shown"])])
        nothing = files.enter_context(open(os.devnull, "rb"))  # noqa: PTH123
        tried = starts(command, nothing.fileno(), files)
        tried.go()
        worked = _answer(tried, tried.result(_LIMITS.wall_seconds))
    return tuple(name for name in BROKEN if worked[name])


def _answer(probe: BoxSupervisor, result: BoxResult | None) -> dict[str, list[int]]:
    if result is None or result.status != 0:
        said = b""
        with contextlib.suppress(BlockingIOError):
            said = os.read(probe.stderr, _MOST_SAID)
        raise BoxFailed(f"the probe of its promises failed: {(result and result.error) or said.decode()}")
    answer: dict[str, list[int]] = json.loads(os.read(probe.stdout, _MOST_SAID))
    return answer


@contextlib.contextmanager
def targets(folder: Path, user: int | None) -> Iterator[dict[str, Any]]:
    """Give the targets of a probe as values of JSON; they end with the block."""
    folder.chmod(0o777)
    paths = {name: folder / name for name in ("file", "secret", "shown")}
    for path in paths.values():
        path.write_text("farm")
        with contextlib.suppress(OSError):  # a file system without them
            os.setxattr(path, "user.farm", b"farm")
        path.chmod(0o666)
        if user is not None and path != paths["secret"]:
            os.chown(path, user, user)
    with contextlib.ExitStack() as files:
        yield {
            **{name: str(path) for name, path in paths.items()},
            "folder": str(folder),
            "sockets": list(_sockets(folder, files)),
            "objects": [files.enter_context(_object(*words)) for words in _OBJECTS],
            "calls": _calls(),
        }


def _sockets(folder: Path, files: contextlib.ExitStack) -> Iterator[tuple[int, int, object]]:
    """Yield the family, kind and address of sockets that can be reached from outside of a box."""
    path = f"{folder}/socket"
    stream, datagram = socket.SOCK_STREAM, socket.SOCK_DGRAM
    for family, kind, address in (
        (socket.AF_INET, stream, ("127.0.0.1", 0)),
        (socket.AF_INET, datagram, ("127.0.0.1", 0)),
        (socket.AF_INET6, stream, ("::1", 0)),
        (socket.AF_UNIX, stream, path),
        (socket.AF_UNIX, stream, f"\0{path}"),
        (socket.AF_UNIX, datagram, f"{path}-datagrams"),
    ):
        with contextlib.suppress(OSError):  # this machine has no such sockets
            made = files.enter_context(socket.socket(family, kind))
            made.bind(address)
            if kind == stream:
                made.listen()
            if isinstance(address, str) and not address.startswith("\0"):
                Path(address).chmod(0o666)
            yield int(family), int(kind), made.getsockname() if family != socket.AF_UNIX else address


@contextlib.contextmanager
def _object(make: str, words: Sequence[int], remove: str, rest: Sequence[int | None]) -> Iterator[int]:
    """Give the number of a System V object that all users may use; -1 where this machine has none."""
    number: int = getattr(_LIBC, make)(*words)
    try:
        yield number
    finally:
        if number >= 0:
            getattr(_LIBC, remove)(number, *rest)


def _calls() -> dict[str, int | None]:
    """Return the numbers of system calls on this machine, by name; none for an unknown machine."""
    others = {**seccomp.REFUSED_IN_CELLS, **_MORE_CALLS}
    here = seccomp.MACHINES.get(platform.machine())
    if here is None:
        return dict.fromkeys([*_REFUSED, *others])
    known = {name: refused[here.place] for name, refused in _REFUSED.items()}
    return {**known, **{name: numbers[here.place - 1] for name, numbers in others.items()}}
