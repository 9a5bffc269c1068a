"""Box step: one interface to control groups of version 1 and 2: limits, usage, and a complete kill."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import re
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from farm.limits import Limits
from farm_workers.box.procfs import Usage

#: Seconds for killed processes to die.
GRACE = 5.0
#: The file that lists the processes of a group, and takes new ones.
PROCESSES = "cgroup.procs"
_CELL = "cell-"
#: A full group may be this far below its limit: each core charges some pages ahead.
_CHARGED_AHEAD_BYTES = 4 << 20
#: Memory that the kernel may still count for a group whose processes have ended: it returns some late.
_MOST_LEFT_KIB = 8192
#: Errors of the kernel for a group that is removed or being removed.
_GONE = (errno.ENOENT, errno.ENODEV)
#: In memory.stat, of which only these lines are parsed: all forty would take too long after each check.
_FILE_LINES = re.compile(rb"^(?:in)?active_file (\d+)$", re.MULTILINE)


class Group:
    """The control group of one cell. Files stay open, because they are read again and again."""

    #: The file by which a process joins, and those of the present and the peak memory.
    door: str
    memory: str
    peak: str
    #: The file that lists the threads.
    thread_list: str

    def __init__(self, folders: Mapping[str, Path]) -> None:
        """Use the group with these folders, by controller; several may be the same."""
        self._folders = folders
        self._open: dict[tuple[str, str, int], int] = {}
        self._kernel_has_peak = self._kernel_counts_processes = True
        self._spent_before, self._killed_before, self._refused_before, self._full_before = 0.0, 0, 0, 0
        self._most_processes = 0

    def make(self, limits: Limits) -> None:
        """Make the group, with these limits of memory and processes."""
        with contextlib.ExitStack() as undo:
            undo.callback(self.close)
            for folder in _once(self._folders.values()):
                folder.mkdir()
            self._limit(limits.memory_mib << 20)
            self._limit_processes(limits.processes)
            undo.pop_all()

    def renew(self, limits: Limits) -> None:
        """Give an empty group other limits, and count its figures from now on.

        Pages that the group has in cache already do not count towards the new limit. Raises OSError if it can
        no longer tell whether this limit of processes is reached.
        """
        self._limit((limits.memory_mib << 20) + self._file_bytes())
        self._limit_processes(limits.processes)
        if self._kernel_counts_processes and self._had_most_processes():
            raise OSError(errno.EBUSY, "it had as many processes before")
        self._reset_peak()
        self._spent_before = self._cpu_seconds()
        self._killed_before, self._refused_before = self._killed(), self._refused()
        self._full_before = self._full()

    def allow(self, more_bytes: int) -> None:
        """Limit the memory to what the group uses now, with the page cache, and `more_bytes`."""
        self._limit(int(self._read("memory", self.memory)) + more_bytes)

    def doors(self) -> list[int]:
        """Return file descriptors that the group keeps; a process that writes 0 to each joins it."""
        controllers = {folder: controller for controller, folder in self._folders.items()}
        return [self._descriptor(each, self.door, os.O_WRONLY) for each in controllers.values()]

    def usage(self) -> Usage:
        """Return the group's usage; memory without the page cache, which the kernel can reclaim.

        The kernel's peak includes that cache, so the peak returned is at most too large by the cache that was
        reclaimed since.
        """
        memory, files = int(self._read("memory", self.memory)), self._file_bytes()
        return Usage(
            cpu_seconds=self._cpu_seconds() - self._spent_before,
            memory_kib=(memory - files) // 1024,
            peak_memory_kib=(max(memory, self._known_peak_bytes()) - files) // 1024,
            processes=int(self._read("pids", "pids.current")),
        )

    def oom_killed(self) -> bool:
        """Whether the kernel killed a process because the group had reached its memory limit."""
        return self._killed() > self._killed_before and self._full() > self._full_before

    def starved(self) -> bool:
        """Whether the kernel killed a process in the group below its limit."""
        return self._killed() > self._killed_before and self._full() <= self._full_before

    def process_limit_hit(self) -> bool:
        """Whether a process or thread was refused because of the group's own limit."""
        return self._refused() > self._refused_before and self._had_most_processes()

    def refused_from_above(self) -> bool:
        """Whether a process or thread was refused because of the limit of a group above."""
        return self._refused() > self._refused_before and not self._had_most_processes()

    def _limit_processes(self, most: int) -> None:
        self._most_processes = most
        self._write("pids", "pids.max", most)

    def _had_most_processes(self) -> bool:
        """Return whether the group has ever been at its limit of processes; an old kernel does not tell.

        With version 1 and before Linux 6.11, a refusal by a group above counts in this one, too.
        """
        if self._kernel_counts_processes:
            try:
                return int(self._read("pids", "pids.peak")) >= self._most_processes
            except FileNotFoundError:  # pids.peak is there since Linux 6.1
                self._kernel_counts_processes = False
        return True

    def _refused(self) -> int:
        return self._keyed("pids", "pids.events").get("max", 0)

    def _killed(self) -> int:
        """Return how often the kernel killed a process in the group out of memory."""
        raise NotImplementedError

    def _full(self) -> int:
        """Return how often the group was at its memory limit with no memory to reclaim."""
        raise NotImplementedError

    def _known_peak_bytes(self) -> int:
        if self._kernel_has_peak:
            try:
                return int(self._read("memory", self.peak))
            except FileNotFoundError:  # memory.peak is there since Linux 5.19
                self._kernel_has_peak = False
        return 0

    def _reset_peak(self) -> None:
        """Restart the peak of memory; a kernel that cannot do so gives no peak from now on."""
        try:
            self._forget_peak()
        except OSError:  # memory.peak can be reset since Linux 6.12
            self._kernel_has_peak = False

    def kill(self) -> None:
        """Kill all processes in the group; they may take a moment to die."""
        raise NotImplementedError

    def pids(self) -> list[int]:
        """Return the processes in the group."""
        return pids_in(self._folders["pids"])

    def threads(self) -> list[int]:
        """Return the threads in the group that this process can see."""
        # It is opened each time: version 1 gives the same list again to each reader of an open file.
        with contextlib.suppress(OSError):  # the group is gone
            listed = (self._folders["pids"] / self.thread_list).read_bytes().split()
            return [pid for pid in map(int, listed) if pid]
        return []

    def _is_empty(self) -> bool:
        """Whether the group has no process; this count is always fresh, and cheaper than their list."""
        try:
            return int(self._read("pids", "pids.current")) == 0
        except OSError as error:
            if error.errno in _GONE:
                return True
            raise

    def end(self, seconds: float = GRACE) -> None:
        """Kill all processes; return when none remains. Raises OSError if one remains after `seconds`."""
        deadline = time.monotonic() + seconds
        while not self._is_empty():
            if time.monotonic() > deadline:
                raise OSError(errno.EBUSY, "processes that cannot be killed", str(self._folders["pids"]))
            self.kill()
            time.sleep(0.001)

    def close(self) -> None:
        """Kill the remaining processes and remove the group. Raises OSError if one cannot be killed."""
        try:
            self.end()
        finally:
            for descriptor in self._open.values():
                os.close(descriptor)
            self._open.clear()
        for folder in _once(self._folders.values()):
            _remove(folder, seconds=GRACE)

    def _limit(self, most_bytes: int) -> None:
        raise NotImplementedError

    def _forget_peak(self) -> None:
        raise NotImplementedError

    def _cpu_seconds(self) -> float:
        raise NotImplementedError

    def _file_bytes(self) -> int:
        """Return the page cache; memory of tmpfs and shared memory is not in these figures."""
        return sum(map(int, _FILE_LINES.findall(self._read("memory", "memory.stat"))))

    def _descriptor(self, controller: str, name: str, flags: int = os.O_RDONLY) -> int:
        key = controller, name, flags
        if key not in self._open:
            self._open[key] = os.open(self._folders[controller] / name, flags | os.O_CLOEXEC)
        return self._open[key]

    def _read(self, controller: str, name: str) -> bytes:
        return os.pread(self._descriptor(controller, name), 1 << 16, 0)

    def _keyed(self, controller: str, name: str) -> dict[str, int]:
        words = self._read(controller, name).decode().split()
        return dict(zip(words[::2], map(int, words[1::2]), strict=True))

    def _write(self, controller: str, name: str, value: object) -> None:
        os.pwrite(self._descriptor(controller, name, os.O_WRONLY), str(value).encode(), 0)


class Group1(Group):
    """A group of version 1: one folder in the hierarchy of each controller."""

    #: The file for threads: to move a single thread, the kernel need not stop all processes.
    door = thread_list = "tasks"
    memory, peak = "memory.usage_in_bytes", "memory.max_usage_in_bytes"

    def _killed(self) -> int:
        return self._keyed("memory", "memory.oom_control").get("oom_kill", 0)

    def _full(self) -> int:
        """Return 1 if the peak is at the limit: the kernel has no other count of that (Linux 6.18)."""
        limit = int(self._read("memory", "memory.limit_in_bytes"))
        return int(int(self._read("memory", self.peak)) > limit - _CHARGED_AHEAD_BYTES)

    def kill(self) -> None:
        """Freeze all processes of the group, kill them, and thaw them so that they die."""
        state = self._folders["freezer"] / "freezer.state"
        write(state, "FROZEN")
        try:
            _wait(lambda: state.read_text() == "FROZEN\n", seconds=0.02)
            _kill_each(self.pids())
        finally:
            write(state, "THAWED")

    def _limit(self, most_bytes: int) -> None:
        """Limit memory, and memory with swap, to the same: the second must never be below the first."""
        names = ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"]
        if not (self._folders["memory"] / names[1]).exists():
            self._write("memory", "memory.swappiness", 0)
            names = names[:1]
        elif int(self._read("memory", names[0])) < most_bytes:
            names.reverse()
        for name in names:
            self._write("memory", name, most_bytes)

    def _forget_peak(self) -> None:
        self._write("memory", self.peak, 0)

    def _cpu_seconds(self) -> float:
        return int(self._read("cpuacct", "cpuacct.usage")) / 1e9


class Group2(Group):
    """A group of version 2: one folder."""

    door, memory, peak = PROCESSES, "memory.current", "memory.peak"
    thread_list = "cgroup.threads"

    def _killed(self) -> int:
        return self._keyed("memory", "memory.events")["oom_kill"]

    def _full(self) -> int:
        return self._keyed("memory", "memory.events")["oom"]

    def kill(self) -> None:
        """Kill all processes of the group at once."""
        folder = self._folders["pids"]
        with contextlib.suppress(FileNotFoundError):  # cgroup.kill is there since Linux 5.14
            write(folder / "cgroup.kill", 1)
            return
        write(folder / "cgroup.freeze", 1)
        try:
            _wait(lambda: "frozen 1" in (folder / "cgroup.events").read_text(), seconds=0.02)
            _kill_each(self.pids())
        finally:
            write(folder / "cgroup.freeze", 0)

    def _limit(self, most_bytes: int) -> None:
        self._write("memory", "memory.max", most_bytes)
        self._write("memory", "memory.oom.group", 1)
        with contextlib.suppress(FileNotFoundError):  # this kernel does not account for swap
            self._write("memory", "memory.swap.max", 0)

    def _forget_peak(self) -> None:
        descriptor = os.open(self._folders["memory"] / self.peak, os.O_RDWR | os.O_CLOEXEC)
        key = "memory", self.peak, os.O_RDONLY
        if before := self._open.get(key):
            os.close(before)
        self._open[key] = descriptor  # a peak is reset for this descriptor alone
        os.write(descriptor, b"0")

    def _cpu_seconds(self) -> float:
        return self._keyed("pids", "cpu.stat")["usage_usec"] / 1e6


@dataclass(frozen=True, kw_only=True, slots=True)
class Groups:
    """The place of a process's cell groups: a folder of its own for each controller."""

    version: int
    folders: Mapping[str, Path]
    here: Path | None
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _spare: deque[Group] = field(default_factory=deque)

    def make(self, limits: Limits) -> Group:
        """Make a group with these limits of memory and processes. Raises OSError."""
        group = self._group(f"{_CELL}{next(self._numbers)}")
        group.make(limits)
        return group

    def lend(self, limits: Limits) -> Group:
        """Return a group with these limits, a returned one if there is any. Raises OSError."""
        try:
            group = self._spare.pop()
        except IndexError:
            return self.make(limits)
        try:
            group.renew(limits)
        except OSError:  # memory that is still counted exceeds the new limits
            group.close()
            return self.make(limits)
        return group

    def give_back(self, group: Group) -> None:
        """Take back a lent group, and kill its remaining processes. Raises OSError."""
        with contextlib.ExitStack() as undo:
            undo.callback(group.close)
            group.end()
            undo.pop_all()
        if group.usage().memory_kib > _MOST_LEFT_KIB:
            group.close()
        else:
            self._spare.append(group)

    def _group(self, name: str) -> Group:
        kind = Group1 if self.version == 1 else Group2
        return kind({controller: folder / name for controller, folder in self.folders.items()})

    def warm(self) -> None:
        """Move this process to its own group, which makes the next joins of a version 2 group fast.

        Before the kernel moves a process, it waits until every core has passed through the scheduler; for
        some milliseconds after that it need not wait again. So an idle process calls this in advance.
        """
        if self.here:
            with contextlib.suppress(OSError):  # no right to move there: joins stay slow
                write(self.here / PROCESSES, os.getpid())

    def clear(self) -> None:
        """Kill all cells and remove their groups, then the process's own, as far as possible."""
        folders = _once(self.folders.values())
        for name in {each.name for folder in folders for each in folder.glob(f"{_CELL}*")}:
            with contextlib.suppress(OSError):
                self._group(name).close()
        for folder in folders:
            with contextlib.suppress(OSError):
                folder.rmdir()


# Files and folders.


def _once(folders: Iterable[Path]) -> list[Path]:
    return list(dict.fromkeys(folders))


def write(file: Path, value: object) -> None:
    """Write a word to a file of a control group, in one call as the kernel requires. Raises OSError."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, str(value).encode())
    finally:
        os.close(descriptor)


def pids_in(folder: Path) -> list[int]:
    """Return the processes in a group, none when it is gone; 0 is one of a foreign pid namespace."""
    try:
        return list(map(int, (folder / PROCESSES).read_bytes().split()))
    except OSError as error:
        if error.errno in _GONE:
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
