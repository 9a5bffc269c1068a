"""Image step, cells: what a fork of an image does with itself before it works on a check or a seal.

The fork of a check goes into its control group, makes the mounts of its cell, and waits at the gate; a keeper
(`farm_workers.images.keeper`) is process 1 of its pid namespace, where there is one. Then it gives up every
capability and every descriptor, and takes on a filter of system calls, before it reads the text.

A seal runs nothing of a submission. It needs no namespaces, only a filter that leaves it to compute.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import mmap
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from farm_workers.box import launch
from farm_workers.box.sockets import socket_of
from farm_workers.images import order
from farm_workers.images.compiled import Compiler
from farm_workers.images.examples import Examples
from farm_workers.images.filters import Filter
from farm_workers.images.frontend import Frontend, NotWritten
from farm_workers.images.goals import write_goals
from farm_workers.images.process import require
from farm_workers.seal import Kernel, Request, seal

# From <linux/sched.h> and <linux/mount.h>.
_NEW_MOUNTS, _NEW_IPC = 0x00020000, 0x08000000
_PRIVATE, _RECURSIVE, _NO_SUID, _NO_DEVICES, _DETACH = 1 << 18, 1 << 14, 2, 4, 2
#: Where a cell's folder is, in memory and its own.
FOLDER = "/tmp"  # noqa: S108 - a mount of the cell's own
#: Seconds that goals may take to be written: so many, and at most this part of what is left of the limits.
#: With less left than the last of these they are not begun.
_GOALS_SECONDS, _GOALS_PART, _LEAST_SECONDS = 2.0, 0.5, 0.05

_LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where an image forks: what its cells have around them.

    `namespaces`: whether it may make any; `workshop` is where a fork makes its folder instead, None where it
    is given one; `user` is whom a check becomes, -1 for nobody else; `parent` is what a fork has for its
    parent while the image lives; `check_calls`, `seal_calls`, `native_calls`, those of a seal that has terms
    evaluated in forks of itself, and `image_calls`, those of an image that reads a context, are filters, None
    on a machine whose calls are not known. `kept` are the image's own descriptors, which its library believes
    to be open; `data_bytes` is what it has reserved.
    """

    namespaces: bool
    workshop: str | None
    user: int
    parent: int
    check_calls: Filter | None
    seal_calls: Filter | None
    native_calls: Filter | None
    image_calls: Filter | None
    kept: frozenset[int]
    data_bytes: int


def check_in(frontend: Frontend, place: Place, files: Sequence[int]) -> int:
    """Do the work of one check in this process, which is to end with the status that is returned."""
    asked = confined(place, files)
    if asked is None:
        return 1
    began = time.monotonic()
    status = _elaborate(frontend, asked, in_own_folder=place.namespaces or place.workshop is not None)
    if asked.get("goals"):
        _add_goals(frontend, asked, began)
    return status


def confined(place: Place, files: Sequence[int]) -> dict[str, Any] | None:
    """Confine this process, the fork of a check, and return what it is asked; None where nobody waits.

    It waits at the gate, then gives up all that the image has: only its own output is open when this returns.
    """
    held = at_the_gate(files, order.CHECK, lambda: [_folder(place, files)])
    if held is None:
        return None
    asked = _given_up(place, files, *held)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them
        signal.signal(number, signal.SIG_DFL)
    limit(asked, place.data_bytes)
    return asked if _enclosed(place, place.check_calls) else None


def confined_image(place: Place, files: Sequence[int]) -> tuple[dict[str, Any], socket.socket] | None:
    """Confine this process as `confined` does, to be an image that runs a stranger's code.

    Return what it is asked and its socket to the worker. It can end what comes of it, and give its forks
    limits: it has none of its own, and the worker watches it.
    """
    held = at_the_gate(files, order.ON_CONTEXT, lambda: [_folder(place, files)])
    if held is None:
        return None
    asked = _given_up(place, files, *held, spared=files[order.IMAGE])
    return (asked, socket_of(files[order.IMAGE])) if _enclosed(place, place.image_calls) else None


def image_on_module(place: Place, files: Sequence[int]) -> tuple[bytes, socket.socket] | None:
    """Make this process an image that reads a module; return the module and its socket to the worker."""
    if at_the_gate(files, order.ON_MODULE, list) is None:
        return None
    launch.prctl(launch.PR_SET_CHILD_SUBREAPER, 1)  # for what is left of its seals
    module = bytes(_mapped(files[order.MODULE]))
    take_descriptors(files, place.kept, files[order.IMAGE])
    return module, socket_of(files[order.IMAGE])


def seal_in(
    frontend: Frontend, compiler: Compiler, kernel: Kernel, place: Place, files: Sequence[int]
) -> int:
    """Do the work of one seal in this process: its answer is one JSON object on its standard output."""
    held = at_the_gate(files, order.SEAL, list)
    return 1 if held is None else _seal(frontend, compiler, kernel, place, files)


def at_the_gate(files: Sequence[int], what: bytes, made: Callable[[], list[int]]) -> list[int] | None:
    """Go where the fork is to be held, and wait until the worker, which gets what was `made`, says go.

    Return what was made; None when that cannot be done, or nobody waits any more.
    """
    with socket_of(files[order.SOCKET]) as worker:
        try:
            _join(files[order.FIRST_DOOR[what] :])
            held = made()
        except OSError as error:
            order.tell(worker.fileno(), error)
            return None
        socket.send_fds(worker, [order.READY], held)
        return held if worker.recv(order.MOST_BYTES) == order.GO else None


def _folder(place: Place, files: Sequence[int]) -> int:
    if place.workshop is not None:
        return os.open(place.workshop, os.O_RDONLY | os.O_DIRECTORY)
    return _furnished(max(place.user, 0)) if place.namespaces else files[order.FOLDER]


def _join(doors: Sequence[int]) -> None:
    """Go into the control group whose doors these are."""
    for door in doors:
        os.write(door, b"0")
        os.close(door)


def clear_away() -> None:
    """Take from this process, and so from its forks, what is mounted of all processes and terminals."""
    for shared in (b"/proc", b"/dev/pts"):
        require(_LIBC.umount2(shared, _DETACH), "umount")


def _furnished(owner: int) -> int:
    """Make the cell's own mounts; return its folder, which belongs to `owner`."""
    require(_LIBC.unshare(_NEW_MOUNTS | _NEW_IPC), "unshare")
    require(_LIBC.mount(None, b"/", None, _PRIVATE | _RECURSIVE, None), "mount")
    options = f"size={launch.FILE_BYTES},nr_inodes=4096,mode=0755,uid={owner},gid={owner}".encode()
    require(_LIBC.mount(b"tmpfs", FOLDER.encode(), b"tmpfs", _NO_SUID | _NO_DEVICES, options), "mount")
    return os.open(FOLDER, os.O_RDONLY | os.O_DIRECTORY)


def _given_up(place: Place, files: Sequence[int], folder: int, *, spared: int = 0) -> dict[str, Any]:
    """Give up all that the image has open, but what is `spared`, and return what is asked."""
    os.fchdir(folder)
    if not place.namespaces:
        os.environ["HOME"] = os.environ["TMPDIR"] = os.getcwd()  # noqa: PTH109
    asked = read(files[order.REQUEST])
    take_descriptors(files, place.kept, *filter(None, [spared]))
    os.setsid()
    return asked


def _enclosed(place: Place, calls: Filter | None) -> bool:
    """Give up all rights, and take on a filter; False where the image has ended."""
    launch.prctl(launch.PR_SET_CHILD_SUBREAPER, 1)  # all that comes of it stays below it while it lives
    launch.become(place.user, reads_all=False)
    launch.prctl(launch.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != place.parent:
        return False
    if calls:
        calls.take()
    return True


def _elaborate(frontend: Frontend, asked: dict[str, Any], *, in_own_folder: bool) -> int:
    try:
        accepted = frontend.elaborate(
            asked["program"],
            asked["module"],
            asked.get("writes", order.ALL),
            asked.get("context", ""),
            added=lambda: _added(frontend, asked),
        )
    except NotWritten as error:
        if not in_own_folder:
            raise
        # Nothing but the program can be in the way in the cell's own folder: what is there will be looked at.
        print(error, file=sys.stderr)  # noqa: T201 - talk
        accepted = True
    if frontend.reached_end():
        _print_mark(asked.get("mark", ""))
    return 0 if accepted else 1


def _added(frontend: Frontend, asked: dict[str, Any]) -> list[tuple[int, int]]:
    """Return what the module is to have besides what Lean keeps."""
    return Examples(frontend, asked["program"]).constants() if asked.get("examples") else []


def _print_mark(mark: str) -> None:
    """Print the mark of a program as a message of Lean's."""
    os.write(1, json.dumps({"severity": "information", "data": mark}).encode() + b"\n")


def _add_goals(frontend: Frontend, asked: dict[str, Any], began: float) -> None:
    """Write the program's goals in what is left of its limits, so that they bring it to none.

    Where no control group counts memory, what a fork shares with its parent counts twice.
    """
    if 2 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10) > asked["memory_bytes"]:
        return
    wall_seconds, cpu_seconds = asked["goals"]
    left = min(wall_seconds - (time.monotonic() - began), cpu_seconds - time.process_time())
    seconds = min(_GOALS_SECONDS, _GOALS_PART * left)
    if seconds >= _LEAST_SECONDS:
        with contextlib.suppress(OSError):  # no room for one more process: then there are no goals
            write_goals(frontend, asked["program"], order.GOALS_NAME, seconds=seconds)


def _seal(frontend: Frontend, compiler: Compiler, kernel: Kernel, place: Place, files: Sequence[int]) -> int:
    asked = read(files[order.REQUEST])
    into = files[order.SEALED] if asked.pop("with_sealed") else None
    request = Request(
        into=into,
        module=_mapped(files[order.MODULE]),
        challenge=_mapped(files[order.CHALLENGE]) if asked.pop("with_challenge") else None,
        **asked.pop("request"),
    )
    if request.challenge is None:
        request = replace(request, imports=frontend.imported)
    take_descriptors(files, place.kept, *filter(None, [into]))
    frontend.begin()
    limit(asked, place.data_bytes)
    calls = place.seal_calls
    if request.native and calls:  # without a filter for what imports compile to, it is not run at all
        kernel, calls = replace(kernel, compiled=compiler.apart(calls)), place.native_calls
        os.setpgid(0, 0)  # the image ends what is left of these forks
    if calls:
        calls.take()
    facts = seal(frontend, kernel, request, asks=lambda: os.write(1, order.KERNEL_ASKED))
    answer = memoryview(json.dumps(facts).encode())
    while answer:
        answer = answer[os.write(1, answer) :]
    return 0


def _mapped(file: int) -> memoryview:
    return memoryview(mmap.mmap(file, 0, access=mmap.ACCESS_READ))


def read(file: int) -> dict[str, Any]:
    """Return a request."""
    size = os.fstat(file).st_size
    found: dict[str, Any] = json.loads(os.pread(file, size, 0))
    return found


def take_descriptors(files: Sequence[int], kept: frozenset[int], *spared: int) -> None:
    """Leave this process its own output and what is spared; the rest is closed, or is /dev/null."""
    nothing = os.open(os.devnull, os.O_RDWR)
    stdout, stderr = (os.dup(files[number]) for number in (order.STDOUT, order.STDERR))
    for descriptor in kept | {0}:
        os.dup2(nothing, descriptor)
    os.dup2(stdout, 1)
    os.dup2(stderr, 2)
    first = 3
    for descriptor in sorted(kept.union(spared) - {0, 1, 2}):
        if first < descriptor:
            os.closerange(first, descriptor)
        first = descriptor + 1
    os.closerange(first, launch.OPEN_FILES)


def limit(asked: dict[str, Any], data_bytes: int) -> None:
    """Set the limits that the kernel keeps: the worker looks first, these are for what it does not see."""
    if asked["cpu_seconds"] >= 0:
        launch.limit(resource.RLIMIT_CPU, asked["cpu_seconds"], asked["cpu_seconds"] + 1)
    launch.limit(resource.RLIMIT_DATA, data_bytes + asked["memory_bytes"] + launch.RESERVED_BYTES)
