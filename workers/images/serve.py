"""Image step, the image: imports a header, then forks for every order until nobody can order any more.

It is called as ``python -I -S -c "...; from workers.images.serve import main; main()" NAMESPACES USER LIBRARY
OPTION...`` in a box, with one end of a socket as its standard input (see `workers.images.order`). Text and
limits of a check are read by its fork and never here: what is in this process is in every later fork.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import platform
import signal
import socket
import sys
from pathlib import Path
from typing import NoReturn

from workers.box import launch, seccomp
from workers.images import order
from workers.images.frontend import Frontend
from workers.images.keeper import NEW_PIDS, Place, keep, seal_in
from workers.images.warm import PROOF, STATEMENT, programs
from workers.replay.lean import LeanError
from workers.seal import Request, seal

#: What Lean's event loop and its tasks have open, by what the kernel calls it; all else must not be there.
_OWN = ("anon_inode:[eventpoll]", "anon_inode:[eventfd]", "pipe:[", "socket:[", "/dev/null")
#: How often it takes until Python's interpreter has specialized what a seal does most.
_SEALS = 10
_LIBC = ctypes.CDLL(None, use_errno=True)


class CannotFork(Exception):
    """The image has something that its forks would share with it."""


def main() -> NoReturn:
    """Be an image, to the end."""
    namespaces, user, library, *options = sys.argv[1:]
    launch.prctl(launch.PR_SET_DUMPABLE, 0)
    # libuv's rings would be memory that is shared with every fork, and writable there.
    os.environ["UV_USE_IO_URING"] = "0"
    with socket.socket(fileno=os.dup(0)) as worker:
        _silence(0, 1)
        try:
            frontend, kernel = _ready(worker, Path(library), options)
            place = _place(worker, namespaces=namespaces == "1", user=int(user))
        except (LeanError, CannotFork, OSError, AttributeError) as error:
            worker.send(f"no image can be made: {error}".encode()[: order.MOST_BYTES])
            os._exit(1)
        _silence(2)
        worker.send(order.READY)
        _serve(worker, frontend, kernel, place)
    os._exit(0)


def _silence(*descriptors: int) -> None:
    """Lead these descriptors nowhere: the worker does not read what is said there, and forks inherit them."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in descriptors:
        os.dup2(nothing, descriptor)
    os.close(nothing)


def _ready(worker: socket.socket, library: Path, options: list[str]) -> tuple[Frontend, int]:
    """Return Lean with the header imported and a few programs behind it, and what its kernel has of that."""
    frontend = Frontend(library, options)
    _, files, _, _ = socket.recv_fds(worker, order.MOST_BYTES, 1)
    with open(files[0], encoding="utf-8", newline="") as file:  # noqa: PTH123
        header = file.read()
    frontend.import_header(header)
    kernel = frontend.kernel_environment()
    for program in programs(header):
        frontend.elaborate(program, None)
    _seal_once_or_more(frontend, kernel, header)
    gc.collect()
    gc.freeze()  # what is there stays: no fork looks through it, and copies it by that
    gc.disable()
    return frontend, kernel


def _seal_once_or_more(frontend: Frontend, kernel: int, header: str) -> None:
    """Seal a proof of ours a few times: Python is quick at what it has done before."""
    modules = [_compiled(frontend, header + text) for text in (PROOF, STATEMENT)]
    if None in modules:
        return
    for _ in range(_SEALS):
        seal(frontend, kernel, Request(module=modules[0] or b"", challenge=modules[1]))


def _compiled(frontend: Frontend, program: str) -> bytes | None:
    """Return the module of a program of ours, which a fork writes; None where it is none."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(LeanError, OSError):
            if frontend.elaborate(program, order.MODULE_NAME):
                with open(order.MODULE_NAME, "rb") as module, open(writing, "wb") as pipe:  # noqa: PTH123
                    pipe.write(module.read())
        os._exit(0)
    os.close(writing)
    with open(reading, "rb") as pipe:  # noqa: PTH123
        content = pipe.read()
    os.waitpid(pid, 0)
    return content or None


def _place(worker: socket.socket, *, namespaces: bool, user: int) -> Place:
    """Return what cells have around them. Raises CannotFork where they would share something writable."""
    machine = platform.machine()
    return Place(
        namespaces=namespaces,
        user=user,
        check_calls=seccomp.filter_for(machine, sockets=False, killing=False),
        seal_calls=seccomp.only_computing(machine),
        kept=_own_descriptors() - {worker.fileno()},
        data_bytes=_data_bytes(),
    )


def _own_descriptors() -> frozenset[int]:
    """Return the open descriptors of this process; raises CannotFork for what its forks must not share."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:  # noqa: PTH123
        for line in maps:
            if line.split(maxsplit=2)[1].startswith("rw-s"):
                raise CannotFork(f"memory that is shared and writable: {line.strip()}")
    found = set()
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208
        with contextlib.suppress(FileNotFoundError):  # the listing's own
            what = os.readlink(f"/proc/self/fd/{name}")  # noqa: PTH115
            if int(name) > 2 and not what.startswith(_OWN):
                raise CannotFork(f"a descriptor of {what}")
            found.add(int(name))
    return frozenset(found)


def _data_bytes() -> int:
    with open("/proc/self/status", encoding="utf-8") as file:  # noqa: PTH123
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmData:"))


def _serve(worker: socket.socket, frontend: Frontend, kernel: int, place: Place) -> None:
    """Fork for every order."""
    signal.signal(
        signal.SIGCHLD, signal.SIG_IGN
    )  # the kernel reaps what a cell leaves at its end: its keeper
    home = os.open("/proc/self/ns/pid", os.O_RDONLY) if place.namespaces else None
    while True:
        what, files, _, _ = socket.recv_fds(worker, order.MOST_BYTES, order.MOST_FILES)
        if not what:
            return
        apart = home if what == order.CHECK else None
        if _forked(apart, files[order.SOCKET]) == 0:
            worker.close()
            if what == order.CHECK:
                keep(frontend, place, files)
            seal_in(frontend, kernel, place, files)
        if apart is not None:
            _require(_LIBC.setns(apart, NEW_PIDS), "setns")
        for file in files:
            os.close(file)


def _forked(home: int | None, asker: int) -> int | None:
    """Fork, from the pid namespace `home` into a new one where there is any; the asker is told why not."""
    try:
        if home is not None:
            _require(_LIBC.unshare(NEW_PIDS), "unshare")
        return os.fork()
    except OSError as error:  # too many processes, or no memory: others are being served
        order.tell(asker, error)
        return None


def _require(outcome: int, what: str) -> None:
    if outcome != 0:
        raise OSError(ctypes.get_errno(), what)
