"""Image step, the image: imports a header, then forks for every order until the worker closes its socket.

It is started as ``python -I -S -c "...; from farm_workers.images.serve import main; main()" WHERE USER
WAY DESCRIPTION LIBRARY OPTION...`` in a box, with one end of a socket as its standard input (see
`farm_workers.images.protocol`). Text and limits of a check are read by its fork and never here: everything in
this process is in every later fork. WHERE is the kind of a fork's place: one of `CELLS`, `SCOPES`, `WALLS`
and `FOLDERS` of `farm_workers.images.protocol`.

A fork may be an image itself, which continues from the header: one that reads a context has the rights and
the cell of a check, and forks for one check after the other in there; one that has a context's module checked
is as trusted as a seal, and forks for seals.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import io
import os
import platform
import resource
import select
import signal
import socket
import stat
import sys
import time
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, NoReturn

from farm_workers.audit.dependencies import BadTable, NotInTable
from farm_workers.audit.olean import MalformedOlean
from farm_workers.binding.description import NotDescribed
from farm_workers.binding.objects import LeanError
from farm_workers.box import launch, seccomp
from farm_workers.box.sockets import socket_of
from farm_workers.images import protocol
from farm_workers.images.child import (
    FOLDER,
    Surroundings,
    check_in,
    clear_away,
    confined_image,
    image_on_module,
    seal_in,
)
from farm_workers.images.compiled import Compiler
from farm_workers.images.elaborating import described, loaded, ways
from farm_workers.images.filters import Filter
from farm_workers.images.frontend import Frontend
from farm_workers.images.goals import Goals
from farm_workers.images.holding import hold_in
from farm_workers.images.huge_pages import gather
from farm_workers.images.pid_namespace import Keeper, Keepers
from farm_workers.images.process import leave
from farm_workers.images.warmup import PROOF, STATEMENT, programs
from farm_workers.replay.replay import KernelRefused
from farm_workers.seal import Kernel, SealRequest, seal, taken_in

#: The open files of Lean's event loop and its tasks, by the kernel's names; no others may be open.
_OWN = ("anon_inode:[eventpoll]", "anon_inode:[eventfd]", "pipe:[", "socket:[", "/dev/null")
#: The number of seals after which Python's interpreter has specialised their hot code.
_SEALS = 10
#: The number of keepers made at first, while this process is small: the most concurrent checks of one image.
_KEEPERS = 4


class CannotFork(Exception):
    """The image has a resource that its forks would share with it."""


#: Does the work of a fork, given the order, the place of the fork, and the files of the order.
Work = Callable[[bytes, Surroundings, Sequence[int]], int]


def main() -> NoReturn:
    """Run as an image of Lean, to the end."""
    where, user, way, description, library, *options = sys.argv[1:]
    # libuv's rings would be memory that is shared with every fork, and writable there.
    os.environ["UV_USE_IO_URING"] = "0"
    worker, keepers = begin(namespaces=where == protocol.CELLS)
    try:
        frontend = loaded(Path(library), options, described(description), ways(way))
        compiler, kernel = _ready(recipe_of(worker).decode("utf-8", "surrogatepass"), frontend)
    except (LeanError, NotDescribed, OSError, AttributeError) as error:
        give_up(worker, error)

    def work(what: bytes, place: Surroundings, files: Sequence[int]) -> int:
        if what == protocol.CHECK:
            return check_in(frontend, place, files)
        if what == protocol.ON_CONTEXT:
            return _read_on(frontend, place, files)
        if what == protocol.SESSION:
            hold_in(frontend, place, files)
        if what == protocol.ON_MODULE:
            return _take_in(frontend, compiler, kernel, place, files)
        return seal_in(frontend, compiler, kernel, place, files)

    serve(worker, keepers, work, user=int(user), where=where)


def _read_on(frontend: Frontend, place: Surroundings, files: Sequence[int]) -> int:
    """Run as an image that has read a context, to the end; its code is as untrusted as a check."""
    given = confined_image(place, files)
    if given is None:
        return 1
    asked, worker = given
    silence(1)
    before = _used_bytes()
    try:
        workshop = Workshop(Path(FOLDER))
        frontend.read_on(asked["context"])
    except (LeanError, OSError, AttributeError) as error:
        give_up(worker, error)
    own = replace(
        place,
        namespaces=False,
        walls=False,
        workshop=str(workshop.folder),
        user=-1,
        parent=os.getpid(),
        check_calls=_filter(seccomp.filter_for(platform.machine(), in_cell=True, image=os.getpid())),
        data_bytes=place.data_bytes + _used_bytes() - before,
    )
    return _go_on(worker, own, lambda _, where, ordered: check_in(frontend, where, ordered), workshop)


def _take_in(
    frontend: Frontend, compiler: Compiler, kernel: Kernel, place: Surroundings, files: Sequence[int]
) -> int:
    """Run as an image whose kernel has a context's module, to the end."""
    given = image_on_module(place, files)
    if given is None:
        return 1
    module, worker, table = given
    silence(1)
    frontend.begin()
    try:
        above = taken_in(frontend.lean, kernel, module, table)
    except (LeanError, KernelRefused, MalformedOlean, BadTable, NotInTable, OSError) as error:
        give_up(worker, error)
    return _go_on(worker, place, lambda _, where, ordered: seal_in(frontend, compiler, above, where, ordered))


def _go_on(worker: socket.socket, place: Surroundings, work: Work, workshop: Workshop | None = None) -> int:
    """Serve as an image that was forked from another one."""
    gc.freeze()
    silence(2)
    worker.send(protocol.READY)
    ForkServer(worker, work, place, None, workshop).serve()
    return 0


def _used_bytes() -> int:
    """Return the peak memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def begin(*, namespaces: bool) -> tuple[socket.socket, Keepers | None]:
    """Prepare this process, while it is small, to be an image.

    Return the socket to the worker, and the keepers if namespaces are allowed.
    """
    launch.prctl(launch.PR_SET_DUMPABLE, 0)
    launch.prctl(launch.PR_SET_NO_NEW_PRIVS, 1)
    launch.drop_bounding_set()
    worker = socket_of(os.dup(0))
    silence(0, 1)
    try:
        keepers = Keepers(_KEEPERS) if namespaces else None
        launch.prctl(launch.PR_SET_CHILD_SUBREAPER, 1)  # adopts orphans if there are no keepers
    except OSError as error:
        give_up(worker, error)
    if keepers:
        os.environ["HOME"] = os.environ["TMPDIR"] = FOLDER  # in every cell
    return worker, keepers


def give_up(worker: socket.socket, error: Exception) -> NoReturn:
    """End this process, and report why it is no image: by its header, or for now by the machine."""
    kind = protocol.FAILED if isinstance(error, OSError) else b""
    worker.send((kind + f"could not create an image: {error}".encode())[: protocol.MOST_BYTES])
    os._exit(1)


def serve(worker: socket.socket, keepers: Keepers | None, work: Work, *, user: int, where: str) -> NoReturn:
    """Fork for every order until the worker closes its socket; each fork does the work and ends.

    `where` is the kind of their places. In namespaces this process has its own mounts, and hides other
    processes and terminals from its forks.
    """
    settle()
    try:
        place = place_of(worker, keepers, user=user, where=where)
        if where == protocol.CELLS:
            clear_away()
    except (CannotFork, OSError) as error:
        give_up(worker, error)
    silence(2)
    worker.send(protocol.READY)
    ForkServer(worker, work, place, keepers).serve()
    os._exit(0)


def settle() -> None:
    """Freeze the present objects, so that forks do not copy their pages."""
    gc.collect()
    gc.freeze()  # collections in forks skip these objects, and so do not copy them
    gc.disable()
    gather()


def recipe_of(worker: socket.socket) -> bytes:
    """Return the header, which the worker sends first."""
    _, (header,), _, _ = socket.recv_fds(worker, protocol.MOST_BYTES, 1)
    with open(header, "rb") as file:  # noqa: PTH123
        return file.read()


def silence(*descriptors: int) -> None:
    """Point these descriptors to /dev/null: the worker does not read them, and forks inherit them."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in descriptors:
        os.dup2(nothing, descriptor)
    os.close(nothing)


def _ready(header: str, frontend: Frontend) -> tuple[Compiler, Kernel]:
    """Have Lean import a header, and warm it up with programs of the farm."""
    frontend.import_header(header)
    _elaborate_some(frontend, header)
    compiler = Compiler(frontend)
    kernel = Kernel(environment=frontend.kernel_environment())
    _seal_once_or_more(frontend, kernel, header)
    return compiler, kernel


def _elaborate_some(frontend: Frontend, header: str) -> None:
    for program in programs(header):
        frontend.elaborate(program, None)
        with contextlib.suppress(LeanError):
            Goals(frontend, program).write(io.StringIO())


def _seal_once_or_more(frontend: Frontend, kernel: Kernel, header: str) -> None:
    """Seal a proof of the farm's a few times, until Python has specialised the code."""
    modules = [_compiled(frontend, header + text) for text in (PROOF, STATEMENT)]
    if None in modules:
        return
    for _ in range(_SEALS):
        seal(frontend.lean, kernel, SealRequest(module=modules[0] or b"", challenge=modules[1]))


def _compiled(frontend: Frontend, program: str) -> bytes | None:
    """Return the module of a program of the farm's, which a fork writes; None if it wrote none."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(LeanError, OSError):
            if frontend.elaborate(program, protocol.MODULE_NAME):
                with open(protocol.MODULE_NAME, "rb") as module, open(writing, "wb") as pipe:  # noqa: PTH123
                    pipe.write(module.read())
        os._exit(0)
    os.close(writing)
    with open(reading, "rb") as pipe:  # noqa: PTH123
        content = pipe.read()
    os.waitpid(pid, 0)
    return content or None


class Workshop:
    """The one writable folder in an image's cell: each fork finds it in its first state."""

    def __init__(self, root: Path) -> None:
        """Note the present files. Raises OSError."""
        self._root = root
        self.folder = root / "farm-fork"
        self._device = root.stat().st_dev
        self._first = {path: path.lstat() for path in self._below(root)}

    def clear(self) -> None:
        """Remove all files of the last fork, and make the folder of the next one. Raises OSError."""
        for path in reversed(list(self._below(self._root, opening=True))):
            if path not in self._first:
                path.rmdir() if stat.S_ISDIR(path.lstat().st_mode) else path.unlink()
        for path, was in self._first.items():
            if was.st_uid == os.geteuid() and stat.S_ISDIR(was.st_mode):
                path.chmod(stat.S_IMODE(was.st_mode))
                os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))
        self.folder.mkdir(mode=0o700)

    def _below(self, folder: Path, *, opening: bool = False) -> Iterator[Path]:
        """Yield the files below a folder, except mounts, folders first, opening them if needed."""
        for path in folder.iterdir():
            found = path.lstat()
            if found.st_dev != self._device:
                continue
            yield path
            if stat.S_ISDIR(found.st_mode):
                if opening and found.st_uid == os.geteuid():
                    path.chmod(0o700)
                yield from self._below(path, opening=opening)


def place_of(worker: socket.socket, keepers: Keepers | None, *, user: int, where: str) -> Surroundings:
    """Return the surroundings of cells. Raises CannotFork if they would share something writable."""
    machine = platform.machine()
    own = {worker.fileno()} | (keepers.descriptors if keepers else frozenset())
    walls, alone = where in (protocol.SCOPES, protocol.WALLS), where == protocol.WALLS
    check_calls = seccomp.filter_for(machine, in_cell=True, shared=walls, alone=alone)
    image_calls = seccomp.filter_for(machine, sockets=False, shared=walls, alone=alone, holder=not alone)
    return Surroundings(
        namespaces=keepers is not None,
        walls=walls,
        user=user,
        parent=0 if keepers else os.getpid(),
        check_calls=_filter(check_calls),
        seal_calls=_filter(seccomp.only_computing(machine)),
        native_calls=_filter(seccomp.only_computing(machine, forks=True)),
        image_calls=_filter(image_calls),
        workshop=None,
        kept=_librarys_descriptors(own),
        data_bytes=_data_bytes(),
        limits=launch.limits_now(),
    )


def _filter(calls: bytes | None) -> Filter | None:
    return Filter(calls, platform.machine()) if calls else None


def _librarys_descriptors(own: Set[int]) -> frozenset[int]:
    """Return the open descriptors besides our `own`; raises CannotFork for one that forks must not share."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:  # noqa: PTH123
        for line in maps:
            if line.split(maxsplit=2)[1].startswith("rw-s"):
                raise CannotFork(f"writable shared memory: {line.strip()}")
    found = set()
    for number in set(map(int, os.listdir("/proc/self/fd"))) - own:  # noqa: PTH208
        with contextlib.suppress(FileNotFoundError):  # the listing's own
            what = os.readlink(f"/proc/self/fd/{number}")  # noqa: PTH115
            if number > 2 and not what.startswith(_OWN):
                raise CannotFork(f"an unknown descriptor: {what}")
            found.add(number)
    return frozenset(found)


def _data_bytes() -> int:
    with open("/proc/self/status", encoding="utf-8") as file:  # noqa: PTH123
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmData:"))


class _Fork(NamedTuple):
    """A living fork: its process, the socket of its order, and its keeper if it has one."""

    pid: int
    asker: int
    what: bytes
    keeper: Keeper | None


class ForkServer:
    """Forks for every order, and reports the end of each fork."""

    def __init__(
        self,
        worker: socket.socket,
        work: Work,
        place: Surroundings,
        keepers: Keepers | None,
        workshop: Workshop | None = None,
    ) -> None:
        self._worker, self._work, self._workshop = worker, work, workshop
        self._place, self._keepers = place, keepers
        self._forks: dict[int, _Fork] = {}
        self._clearing: dict[int, Keeper] = {}
        self._poll = select.poll()
        self._poll.register(worker, select.POLLIN)

    def serve(self) -> None:
        """Serve until the worker closes its socket."""
        while True:
            ready = [descriptor for descriptor, _ in self._poll.poll()]
            # Orders come last, so that they find the keepers that have become free.
            for descriptor in sorted(ready, key=lambda each: each == self._worker.fileno()):
                if descriptor in self._forks:
                    self._ended(descriptor)
                elif descriptor in self._clearing:
                    self._cleared(descriptor)
                elif not self._order():
                    return

    def _order(self) -> bool:
        """Take an order; False once the socket is closed, or if somebody lowered this process's limits."""
        what, files, flags, _ = socket.recv_fds(self._worker, protocol.MOST_BYTES, protocol.MOST_FILES)
        if not what:
            return False
        try:
            launch.require_limits(self._place.limits)
        except OSError:
            return False  # its successor begins with the worker's limits
        try:
            _require_all(flags)
            self._fork(what, files)
        except OSError as error:  # too many processes, or no memory: others are being served
            for asker in files[: protocol.REQUEST]:
                protocol.tell(asker, error)
                os.close(asker)
        for file in files[protocol.REQUEST :]:
            os.close(file)
        return True

    def _fork(self, what: bytes, files: Sequence[int]) -> None:
        if self._workshop:
            if self._forks:
                raise BlockingIOError("it forks for one at a time")
            self._workshop.clear()
        keeper = self._keepers.take() if self._keepers and what in protocol.IN_CELLS else None
        try:
            pid = keeper.fork() if keeper else os.fork()
            if pid == 0:
                leave(lambda: self._work(what, self._place, files))
            handle = _handle(pid)
        except OSError:
            if keeper:
                keeper.close()
            raise
        self._forks[handle] = _Fork(pid, files[protocol.SOCKET], what, keeper)
        self._poll.register(handle, select.POLLIN)

    def _ended(self, handle: int) -> None:
        """Reap a fork, have its remaining processes killed, and report its end."""
        self._poll.unregister(handle)
        os.close(handle)
        fork = self._forks.pop(handle)
        if fork.what == protocol.SEAL:
            _kill_group(fork.pid)
        _, status, used = os.wait4(fork.pid, 0)
        if fork.what == protocol.SEAL:
            _reap_group(fork.pid)
        said = f"{status} {int(used.ru_utime * 1e6)} {int(used.ru_stime * 1e6)}".encode()
        try:
            if fork.keeper:
                self._clearing[fork.keeper.fileno()] = fork.keeper
                self._poll.register(fork.keeper, select.POLLIN)
                fork.keeper.clear(said, fork.asker)
            else:
                if fork.what in (protocol.CHECK, protocol.SESSION):
                    self._sweep()
                os.write(fork.asker, said)
        except OSError as error:  # the keeper has ended, or the worker is gone
            protocol.tell(fork.asker, error)
        finally:
            os.close(fork.asker)

    def _cleared(self, descriptor: int) -> None:
        assert self._keepers is not None  # noqa: S101 - it was one of them
        self._poll.unregister(descriptor)
        self._keepers.give_back(self._clearing.pop(descriptor))

    def _sweep(self) -> None:
        """Kill the descendants of ended forks, which this process has adopted."""
        if self._workshop:
            kill_all()
            return
        while True:
            below = launch.descendants(os.getpid())
            ours = {fork.pid for fork in self._forks.values()}
            strays = set(below) - ours - {each for pid in ours for each in launch.descendants(pid)}
            if not strays:
                return
            for number in (signal.SIGSTOP, signal.SIGKILL):  # a stopped process forks no more
                for pid in strays:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, number)
            for pid in strays:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
            time.sleep(0.001)


def _require_all(flags: int) -> None:
    """Raise OSError if files of an order are missing, which may be the doors of its control group.

    Linux drops the files for which the receiver has no descriptor left.
    """
    if flags & socket.MSG_CTRUNC:
        raise OSError(errno.EMFILE, "not all files of an order were received")


def _kill_group(leader: int) -> None:
    """Kill the processes of a group whose leader has ended and keeps its number, for it is not reaped."""
    with contextlib.suppress(ProcessLookupError):  # it was never a leader
        os.killpg(leader, signal.SIGKILL)


def _reap_group(leader: int) -> None:
    """Wait for the ends of all that a group's leader left to this process."""
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-leader, 0)


def kill_all() -> None:
    """Kill all processes of this namespace besides this one and process 1."""
    while True:
        try:
            os.kill(-1, signal.SIGKILL)
        except ProcessLookupError:
            return
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.001)  # killed processes take a moment to die


def _handle(pid: int) -> int:
    """Return a descriptor of a child; a child without one is killed. Raises OSError."""
    try:
        return os.pidfd_open(pid)
    except OSError:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise
