"""Box step: reads processes from ``/proc``, for boxes without a control group and for leftovers."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import signal
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from farm_workers.box import launch

#: Without it (CONFIG_PROC_CHILDREN) no process tree can be watched.
CHILDREN = Path("/proc/thread-self/children")
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """The usage of a process tree at one moment.

    `cpu_seconds` is user and system time from its start, including ended processes; `memory_kib` is its
    memory without mapped and cached files, `peak_memory_kib` the known peak of that; `processes` counts
    threads in a control group.
    """

    cpu_seconds: float
    memory_kib: int
    peak_memory_kib: int
    processes: int


def usage(supervisor: int, *, itself: bool = False) -> Usage:
    """Measure the processes below the supervisor; ended ones are in its own count of children."""
    below = launch.descendants(supervisor)
    tree = [supervisor, *below] if itself else below
    ticks = sum(_ticks(pid, _ALL) for pid in tree) + (0 if itself else _ticks(supervisor, _REAPED))
    memory_kib = sum(map(_private_kib, tree))
    return Usage(
        cpu_seconds=ticks / _TICKS,
        memory_kib=memory_kib,
        peak_memory_kib=memory_kib,
        processes=len(tree),
    )


#: Places of the parent, of utime, stime, cutime and cstime, and of the start time in /proc/PID/stat after the
#: command's name, proc_pid_stat(5).
_PARENT, _START = 1, 19
_ALL = slice(11, 15)
_REAPED = slice(13, 15)


def _stat(pid: int) -> list[bytes]:
    text = Path(f"/proc/{pid}/stat").read_bytes()
    return text.rpartition(b")")[2].split()  # the name, in brackets, may hold any character


#: The tasks that checks, and all else on a machine, may start besides those that run when a check starts.
_MORE_TASKS, _MORE_TASKS_A_CORE = 512, 64


def most_tasks() -> int:
    """Return the number of tasks of one user at which Linux is to refuse a check another one.

    Linux counts the processes and threads of the check's user, in all checks together; this lets none of them
    lack one, and stops a fork bomb long before the machine has no more.
    """
    running = Path("/proc/loadavg").read_text(encoding="ascii").split()[3].partition("/")[2]
    return int(running) + _MORE_TASKS + _MORE_TASKS_A_CORE * (os.cpu_count() or 1)


def parent(pid: int) -> int:
    """Return the process id of a process's parent. Raises OSError if the process is gone."""
    return int(_stat(pid)[_PARENT])


def start_time(pid: int) -> int | None:
    """Return when a process began, in clock ticks after boot; None if it does not exist.

    Process id and start time together identify a process.
    """
    try:
        return int(_stat(pid)[_START])
    except OSError:
        return None


_NUMBERS = itertools.count(1)
_NAME = re.compile(r"farm-(\d+)-(\d+)-(\d+)-\d+")


def own_name() -> str:
    """Return a new name for a folder or group of this process, from which every process can see its owner.

    It consists of the process id, the start time, the pid namespace and a number.
    """
    pid = os.getpid()
    return f"farm-{pid}-{start_time(pid)}-{_namespace()}-{next(_NUMBERS)}"


def is_own_name(name: str) -> bool:
    """Whether `own_name` made this name."""
    return _NAME.fullmatch(name) is not None


def is_left_over(name: str) -> bool:
    """Whether a name belongs to a dead process; one of another pid namespace may be alive."""
    found = _NAME.fullmatch(name)
    if found is None:
        return False
    pid, started, namespace = map(int, found.groups())
    return namespace == _namespace() and start_time(pid) != started


def _namespace() -> int:
    return Path("/proc/self/ns/pid").stat().st_ino


def threads(pids: Iterable[int]) -> Iterator[int]:
    """Yield the threads of these processes that are alive."""
    for pid in pids:
        with contextlib.suppress(OSError):  # it has just ended
            yield from (int(each.name) for each in Path(f"/proc/{pid}/task").iterdir())


def _ticks(pid: int, places: slice) -> int:
    try:
        return sum(map(int, _stat(pid)[places]))
    except OSError:  # it has just ended
        return 0


_PRIVATE = (b"RssAnon:", b"RssShmem:", b"VmSwap:")


def _private_kib(pid: int) -> int:
    """Return a process's own memory in KiB, without mapped files such as compiled Lean modules."""
    try:
        lines = Path(f"/proc/{pid}/status").read_bytes().splitlines()
    except OSError:  # it has just ended
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith(_PRIVATE))


def kill_strays(folder: Path, *, seconds: float) -> None:
    """Kill the strays of a killed supervisor: processes whose working folder or HOME is the box's folder.

    Without their parent nothing else distinguishes them from other processes; one that changes both is
    missed.
    """
    deadline = time.monotonic() + seconds
    while (strays := _strays(folder)) and time.monotonic() < deadline:
        for pid in strays:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.001)


def _strays(folder: Path) -> list[int]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has just ended, or belongs to another user
            at_home = f"HOME={folder}\0".encode() in (process / "environ").read_bytes()
            if at_home or (process / "cwd").readlink().is_relative_to(folder):
                found.append(int(process.name))
    return found
