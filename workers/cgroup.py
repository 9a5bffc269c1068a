"""Box step: control groups of version 1 or 2, one interface: limits, figures, a kill that misses nothing.

Each process of the farm has a group of its own, named after itself, below the group that it was given
(``FARM_CGROUP``) or is in; each cell has a group in that. Files and their meaning:
https://docs.kernel.org/admin-guide/cgroup-v2.html and https://docs.kernel.org/admin-guide/cgroup-v1/.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import re
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from farm.job import Limits
from workers import launch, procfs
from workers.procfs import Usage

#: Seconds that killed processes have to be gone.
GRACE = 5.0
_PROCESSES = "cgroup.procs"
_MIB = 1 << 20


class NoGroups(Exception):
    """No control groups can be made here; the message says why, and what to do about it."""


class Group:
    """The control group of one cell. Files stay open, for they are read again and again.

    Methods raise OSError when the kernel refuses; that is the box's failure.
    """

    #: The file by which a process joins.
    door: str

    def __init__(self, folders: Mapping[str, Path]) -> None:
        """Speak of the group with these folders, by controller; several can be one and the same."""
        self._folders = folders
        self._open: dict[str, int] = {}
        self._most_bytes = 0
        self._peak_kib = 0
        self._kernel_has_peak = True

    def make(self, limits: Limits) -> None:
        """Make the group, with these limits of memory and processes."""
        with contextlib.ExitStack() as undo:
            undo.callback(self.close)
            for folder in _once(self._folders.values()):
                folder.mkdir()
            self._most_bytes = limits.memory_mib * _MIB
            self._limit(self._most_bytes)
            self._write("pids", "pids.max", limits.processes)
            undo.pop_all()

    @contextlib.contextmanager
    def doors(self) -> Iterator[list[int]]:
        """Give file descriptors; a process that writes 0 to each puts itself into the group."""
        with contextlib.ExitStack() as files:
            doors = []
            for folder in _once(self._folders.values()):
                doors.append(os.open(folder / self.door, os.O_WRONLY | os.O_CLOEXEC))
                files.callback(os.close, doors[-1])
            yield doors

    def usage(self) -> Usage:
        """Return what the group uses now; memory without the cache of files, which can be taken back."""
        memory_kib = (self._memory_bytes() - self._file_bytes()) // 1024
        self._peak_kib = max(self._peak_kib, memory_kib)
        return Usage(
            cpu_seconds=self._cpu_seconds(),
            memory_kib=memory_kib,
            processes=int(self._read("pids", "pids.current")),
        )

    def oom_killed(self) -> bool:
        """Whether the kernel killed something in the group for want of memory."""
        raise NotImplementedError

    def process_limit_hit(self) -> bool:
        """Whether a process or thread was refused because there were as many as allowed."""
        return self._keyed("pids", "pids.events").get("max", 0) > 0

    def allow(self, memory_mib: int) -> None:
        """Set a new limit of memory. What the group has in cache already is not held against it."""
        self._most_bytes = memory_mib * _MIB
        self._limit(self._most_bytes + self._file_bytes())

    def peak_memory_kib(self) -> int:
        """Return the most memory that was used: what was seen, or what the kernel says less cached files.

        The kernel's peak counts those. It is at most too large by what of the cache was given up since.
        """
        self.usage()
        if not self._kernel_has_peak:
            return self._peak_kib
        try:
            peak = (self._peak_bytes() - self._file_bytes()) // 1024
        except FileNotFoundError:  # memory.peak is there since Linux 5.19
            self._kernel_has_peak = False
            return self._peak_kib
        return max(self._peak_kib, peak)

    def reset_peak(self) -> None:
        """Let the peak of memory count from now on; from here what is seen of it, where the kernel cannot."""
        self._peak_kib = 0
        try:
            self._forget_peak()
        except OSError:  # memory.peak can be reset since Linux 6.12
            self._kernel_has_peak = False

    def kill(self) -> None:
        """Kill all that is in the group; it may take a moment to be gone."""
        raise NotImplementedError

    def pids(self) -> list[int]:
        """Return the processes in the group; 0 is one that lives in a foreign pid namespace."""
        return _pids(self._folders["pids"])

    def end(self) -> None:
        """Kill what is left, and return when nothing is. Raises OSError when something does not die."""
        deadline = time.monotonic() + GRACE
        while self.pids():
            if time.monotonic() > deadline:
                raise OSError(errno.EBUSY, "processes that cannot be killed", str(self._folders["pids"]))
            self.kill()
            time.sleep(0.001)

    def close(self) -> None:
        """Kill what is left and remove the group. Raises OSError when it cannot be killed."""
        for descriptor in self._open.values():
            os.close(descriptor)
        self._open.clear()
        self.end()
        for folder in _once(self._folders.values()):
            _remove(folder, seconds=GRACE)

    def _limit(self, most_bytes: int) -> None:
        raise NotImplementedError

    def _memory_bytes(self) -> int:
        raise NotImplementedError

    def _peak_bytes(self) -> int:
        raise NotImplementedError

    def _forget_peak(self) -> None:
        raise NotImplementedError

    def _cpu_seconds(self) -> float:
        raise NotImplementedError

    def _file_bytes(self) -> int:
        """Return the cache of files; memory of tmpfs and shared memory is not in these figures."""
        found = self._keyed("memory", "memory.stat")
        return found["inactive_file"] + found["active_file"]

    def _descriptor(self, controller: str, name: str, flags: int = os.O_RDONLY) -> int:
        if name not in self._open:
            self._open[name] = os.open(self._folders[controller] / name, flags | os.O_CLOEXEC)
        return self._open[name]

    def _read(self, controller: str, name: str) -> bytes:
        return os.pread(self._descriptor(controller, name), 1 << 16, 0)

    def _keyed(self, controller: str, name: str) -> dict[str, int]:
        words = self._read(controller, name).decode().split()
        return dict(zip(words[::2], map(int, words[1::2]), strict=True))

    def _write(self, controller: str, name: str, value: object) -> None:
        _write(self._folders[controller] / name, value)


class Group1(Group):
    """A group of version 1: one folder in the hierarchy of each controller."""

    #: Threads join here. It is one that joins, and the kernel then need not hold up all processes for it:
    #: that takes until each core has passed through the scheduler, 6 ms on a busy machine (Linux 6.18).
    door = "tasks"

    def oom_killed(self) -> bool:
        """Whether the kernel killed something in the group for want of memory."""
        return self._keyed("memory", "memory.oom_control").get("oom_kill", 0) > 0

    def kill(self) -> None:
        """Stop all processes of the group at once, kill them, and let them go on to their end."""
        state = self._folders["freezer"] / "freezer.state"
        _write(state, "FROZEN")
        try:
            _wait(lambda: state.read_text() == "FROZEN\n", seconds=0.02)
            _kill_each(self.pids())
        finally:
            _write(state, "THAWED")

    def _limit(self, most_bytes: int) -> None:
        """Limit memory, and memory with swap alike: either must never be below the first."""
        names = ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"]
        if not (self._folders["memory"] / names[1]).exists():
            self._write("memory", "memory.swappiness", 0)
            names = names[:1]
        elif int(self._read("memory", names[0])) < most_bytes:
            names.reverse()
        for name in names:
            self._write("memory", name, most_bytes)

    def _memory_bytes(self) -> int:
        return int(self._read("memory", "memory.usage_in_bytes"))

    def _peak_bytes(self) -> int:
        return int(self._read("memory", "memory.max_usage_in_bytes"))

    def _forget_peak(self) -> None:
        self._write("memory", "memory.max_usage_in_bytes", 0)

    def _cpu_seconds(self) -> float:
        return int(self._read("cpuacct", "cpuacct.usage")) / 1e9


class Group2(Group):
    """A group of version 2: one folder."""

    door = _PROCESSES

    def oom_killed(self) -> bool:
        """Whether the kernel killed something in the group for want of memory."""
        return self._keyed("memory", "memory.events")["oom_kill"] > 0

    def kill(self) -> None:
        """Kill all processes of the group at once."""
        folder = self._folders["pids"]
        with contextlib.suppress(FileNotFoundError):  # cgroup.kill is there since Linux 5.14
            _write(folder / "cgroup.kill", 1)
            return
        _write(folder / "cgroup.freeze", 1)
        try:
            _wait(lambda: "frozen 1" in (folder / "cgroup.events").read_text(), seconds=0.02)
            _kill_each(self.pids())
        finally:
            _write(folder / "cgroup.freeze", 0)

    def _limit(self, most_bytes: int) -> None:
        self._write("memory", "memory.max", most_bytes)
        self._write("memory", "memory.oom.group", 1)
        with contextlib.suppress(FileNotFoundError):  # a kernel that does not account for swap
            self._write("memory", "memory.swap.max", 0)

    def _memory_bytes(self) -> int:
        return int(self._read("memory", "memory.current"))

    def _peak_bytes(self) -> int:
        return int(self._read("memory", "memory.peak"))

    def _forget_peak(self) -> None:
        descriptor = os.open(self._folders["memory"] / "memory.peak", os.O_RDWR | os.O_CLOEXEC)
        if before := self._open.get("memory.peak"):
            os.close(before)
        self._open["memory.peak"] = descriptor  # what is forgotten is forgotten in this descriptor alone
        os.write(descriptor, b"0")

    def _cpu_seconds(self) -> float:
        return self._keyed("pids", "cpu.stat")["usage_usec"] / 1e6


@dataclass(frozen=True, kw_only=True, slots=True)
class Groups:
    """Where this process makes the groups of its cells: its own folder for each controller."""

    version: int
    folders: Mapping[str, Path]
    _here: Path | None
    _numbers: Iterator[int]
    _undo: contextlib.ExitStack

    def make(self, limits: Limits) -> Group:
        """Make a group with these limits of memory and processes. Raises OSError."""
        name = f"{_CELL}{next(self._numbers)}"
        kind = Group1 if self.version == 1 else Group2
        group = kind({controller: folder / name for controller, folder in self.folders.items()})
        group.make(limits)
        return group

    def warm(self) -> None:
        """Do in advance, while there is nothing else to do, what makes it slow to join a group of version 2.

        Before a process is moved the kernel holds up all others, and waits for that until each core has
        passed through the scheduler; for some milliseconds thereafter it need not wait. So this moves the
        process that calls it to where it is.
        """
        if self._here:
            with contextlib.suppress(OSError):  # it is not ours to move in: then joining takes its time
                _write(self._here / _PROCESSES, os.getpid())

    def close(self) -> None:
        """Remove this process's own group, and put things back as they were."""
        self._undo.close()


def found(given: Path | None, own_name: str) -> Groups:
    """Find where groups can be made, and make this process's own one there, called `own_name`.

    `given` is a folder of a cgroup file system, or a group's name as ``/proc/PID/cgroup`` writes it; without
    it the group is taken that this process is in. Version 2 is taken where it can limit memory and processes.
    What processes that are gone have left is removed. Raises NoGroups.
    """
    reasons = []
    for find in (_found2, _found1):
        try:
            return find(given, own_name)
        except NoGroups as why:
            reasons.append(str(why))
        except OSError as error:
            reasons.append(f"{error.filename or 'a control group'}: {error.strerror}")
    raise NoGroups("; ".join(reasons))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Mount:
    """A mounted hierarchy: its folder, which group that folder is, and the controllers (version 1)."""

    folder: Path
    root: str
    version: int
    controllers: frozenset[str]


def _mounts() -> list[_Mount]:
    """Read the mounted hierarchies, proc_pid_mountinfo(5)."""
    mounts = []
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        front, _, back = line.partition(" - ")
        kind, _, options = back.split(" ", 2)
        if kind in ("cgroup", "cgroup2"):
            root, folder = (_unescaped(word) for word in front.split(" ")[3:5])
            controllers = frozenset(options.split(","))
            version = 2 if kind == "cgroup2" else 1
            mounts.append(_Mount(folder=Path(folder), root=root, version=version, controllers=controllers))
    return mounts


def _unescaped(word: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), word)


def _own_path(controller: str) -> str:
    """Return the group this process is in, cgroups(7); the empty controller is that of version 2."""
    for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            return path
    raise NoGroups(f"this process is in no control group of {controller or 'version 2'}")


def _place(mount: _Mount, path: str) -> Path:
    """Return the folder of a group under a mount."""
    inside = Path(path)
    if inside.is_relative_to(mount.folder):
        return inside
    if not inside.is_relative_to(mount.root):
        raise NoGroups(f"the control group {path} cannot be seen at {mount.folder}")
    return mount.folder / inside.relative_to(mount.root)


# Version 1.

_CONTROLLERS = ("memory", "pids", "cpuacct", "freezer")


def _found1(given: Path | None, own_name: str) -> Groups:
    mounts = _mounts()
    bases: dict[str, Path] = {}
    for controller in _CONTROLLERS:
        mount = next((m for m in mounts if m.version == 1 and controller in m.controllers), None)
        if mount is None:
            raise NoGroups(f"version 1 has no controller {controller} mounted")
        bases[controller] = _place(mount, _own_path(controller) if given is None else str(given))
        if not bases[controller].is_dir():
            raise NoGroups(f"there is no control group {bases[controller]}: make it, or name another one")
    _remove_dead(bases, Group1)
    folders = {controller: base / own_name for controller, base in bases.items()}
    undo = contextlib.ExitStack()
    with contextlib.ExitStack() as failed:
        failed.callback(undo.close)
        for folder in _once(folders.values()):
            folder.mkdir()
            undo.callback(_remove, folder)
        failed.pop_all()
    return Groups(version=1, folders=folders, _here=None, _numbers=itertools.count(1), _undo=undo)


# Version 2.

_NEEDED = ("memory", "pids")
#: The leaf in a process's own group in which the process itself is, where the kernel wants it in a leaf.
_SELF = "self"
_REMEDY = (
    "start the farm in a group of its own (systemd-run --user --scope -p Delegate=yes farm worker), "
    "or name a delegated group in FARM_CGROUP"
)


def _found2(given: Path | None, own_name: str) -> Groups:
    mount = next((m for m in _mounts() if m.version == 2), None)
    if mount is None:
        raise NoGroups("version 2 is not mounted")
    base = _place(mount, _own_path("") if given is None else str(given))
    if base.name == _SELF and procfs.is_own_name(base.parent.name):
        base = base.parent.parent  # a process of the farm before this one went there
    offered = (base / "cgroup.controllers").read_text(encoding="ascii").split()
    if lacking := [name for name in _NEEDED if name not in offered]:
        raise NoGroups(f"version 2 has no controller {' and '.join(lacking)} at {base}")
    _remove_dead(dict.fromkeys(_NEEDED, base), Group2)
    undo = contextlib.ExitStack()
    with contextlib.ExitStack() as failed:
        failed.callback(undo.close)
        _make_own2(base, base / own_name, undo)
        failed.pop_all()
    folders = dict.fromkeys(_NEEDED, base / own_name)
    here = _place(mount, _own_path(""))
    return Groups(version=2, folders=folders, _here=here, _numbers=itertools.count(1), _undo=undo)


def _make_own2(base: Path, own: Path, undo: contextlib.ExitStack) -> None:
    """Make the own group, and let memory and processes be limited in it.

    A group, unless it is the root of all, cannot both hold processes and share out controllers: those of this
    process are moved to a leaf where there are no others.
    """
    own.mkdir()
    undo.callback(_remove_if_possible, own)
    missing = _not_shared(base)
    if missing and (base / "cgroup.type").exists() and (pids := _pids(base)):
        if strangers := set(pids) - {os.getpid(), *launch.descendants(os.getpid())}:
            raise NoGroups(f"{base} holds other processes ({len(strangers)}) than the farm's: {_REMEDY}")
        (own / _SELF).mkdir()
        undo.callback(_leave, own / _SELF, base)
        _move(base, own / _SELF)
    if missing:
        _write(base / _SHARED, " ".join(f"+{name}" for name in missing))
        undo.callback(_unshare, base, missing, own)
    _write(own / _SHARED, " ".join(f"+{name}" for name in _NEEDED))


_SHARED = "cgroup.subtree_control"


def _not_shared(base: Path) -> list[str]:
    shared = (base / _SHARED).read_text(encoding="ascii").split()
    return [name for name in _NEEDED if name not in shared]


def _move(source: Path, target: Path) -> None:
    while pids := _pids(source):  # again, for they may be starting others
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                _write(target / _PROCESSES, pid)


def _leave(leaf: Path, base: Path) -> None:
    """Go back from the leaf, unless others still need things to be as they are."""
    if not _not_shared(base):
        return
    _move(leaf, base)
    leaf.rmdir()


def _unshare(base: Path, names: list[str], own: Path) -> None:
    """Take back what `_make_own2` shared out at `base`, unless another process makes use of it by now."""
    others = [each for each in base.glob("farm-*") if each != own]
    if others:
        return
    for folder in (own, base):
        with contextlib.suppress(OSError):  # then it stays as it is, which hurts nobody
            _write(folder / _SHARED, " ".join(f"-{name}" for name in names))


# Files and folders.


def _once(folders: Iterable[Path]) -> list[Path]:
    return list(dict.fromkeys(folders))


def _write(file: Path, value: object) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, str(value).encode())
    finally:
        os.close(descriptor)


def _pids(folder: Path) -> list[int]:
    try:
        return [int(word) for word in (folder / _PROCESSES).read_text(encoding="ascii").split()]
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENODEV):  # it is gone, or is just going
            return []
        raise


def _kill_each(pids: Iterable[int]) -> None:
    for pid in pids:
        if pid:  # 0 lives in a foreign pid namespace; to kill(2) it is this process and its relatives
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _wait(condition: Callable[[], bool], *, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.0005)


def _remove(folder: Path, *, seconds: float = 0.0) -> None:
    """Remove a group; one whose last process has just ended can be busy for a moment."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            folder.rmdir()
        except FileNotFoundError:
            return
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.001)
        else:
            return


def _remove_if_possible(folder: Path) -> None:
    with contextlib.suppress(OSError):
        _remove(folder)


_CELL = "cell-"


def _remove_dead(bases: Mapping[str, Path], kind: type[Group]) -> None:
    """Remove what processes that are gone left at `bases`; what cannot be removed stays for the next."""
    names = {each.name for base in _once(bases.values()) for each in base.glob("farm-*")}
    for name in filter(procfs.is_left_over, names):
        folders = {controller: base / name for controller, base in bases.items()}
        cells = {each.name for folder in _once(folders.values()) for each in folder.glob(f"{_CELL}*")}
        for cell in cells:
            with contextlib.suppress(OSError):
                kind({controller: folder / cell for controller, folder in folders.items()}).close()
        for folder in _once(folders.values()):
            _remove_if_possible(folder / _SELF)
            _remove_if_possible(folder)
