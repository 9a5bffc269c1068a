"""Box step: tells whether this machine may have refused a check a process, a thread or memory.

Linux tells a refusal to the program alone, which may report it in any words, or try another tactic. So the
box does not read what the program says. It bounds how many tasks can have run at once, reads the counters of
the control groups around this process, and asks for memory itself. A bound that is too high costs a repeated
check; one that was too low would reject a proof for what others did.
"""

from __future__ import annotations

import contextlib
import functools
import mmap
import time
from dataclasses import dataclass
from pathlib import Path

from farm_workers.box import launch
from farm_workers.box.hierarchy import groups_around
from farm_workers.box.procfs import most_tasks

#: A count of this age, in seconds, serves for the beginning of a check.
_RECENT = 0.25
#: Counts are taken a little before or after the events that they bound.
_SLACK = 64
#: More than any number of tasks: it could not be counted.
_UNKNOWN = 1 << 62
#: Linux refuses more tasks than these on the whole machine.
_MACHINES = (Path("/proc/sys/kernel/pid_max"), Path("/proc/sys/kernel/threads-max"))
_PIECE = 1 << 30
_BEGUN = b"\nprocesses "


@dataclass(frozen=True, kw_only=True, slots=True)
class Count:
    """The tasks of this machine at a moment, and since its start; and what control groups have refused."""

    at: float
    running: int
    begun: int
    refused: int

    @classmethod
    def now(cls) -> Count:
        """Count now. Raises OSError."""
        running = Path("/proc/loadavg").read_bytes().split()[3].partition(b"/")[2]
        begun = Path("/proc/stat").read_bytes().partition(_BEGUN)[2].split(maxsplit=1)[0]
        refused = sum(map(_refused, _counters()))
        return cls(at=time.monotonic(), running=int(running), begun=int(begun), refused=refused)


class _Latest:
    """The latest count of this process, None if it could not be taken."""

    count: Count | None = None


def _counted() -> Count | None:
    """Count now; return None where that fails, as without a descriptor."""
    try:
        _Latest.count = Count.now()
    except OSError:
        _Latest.count = None
    return _Latest.count


class Tasks:
    """Watches whether a check may lack a process or a thread, from its beginning to `lacked`.

    Without a control group, Linux refuses the user of checks more tasks than `most`, in all checks together.
    """

    def __init__(self, *, is_grouped: bool) -> None:
        """Begin. Raises OSError."""
        self.most = -1 if is_grouped else most_tasks()
        latest = _Latest.count
        if latest is None or time.monotonic() - latest.at > _RECENT:
            latest = _counted()
        self._first = self._last = latest
        self._highest = 0 if latest else _UNKNOWN

    def look(self) -> None:
        """Note how many tasks can have run at once since the last look."""
        before, self._last = self._last, _counted()
        if before is None or self._last is None:
            self._highest = _UNKNOWN
        else:
            self._highest = max(self._highest, before.running + self._last.begun - before.begun)

    def lacked(self) -> str | None:
        """Return what the machine may have refused the check, None if it refused nothing. Raises OSError."""
        self.look()
        most = min(int(path.read_bytes()) for path in _MACHINES)
        if self.most >= 0:
            most = min(most, self.most)
        if self._highest > most - _SLACK:
            return "other processes may have taken all that this user or machine can start"
        if self._first and self._last and self._last.refused > self._first.refused:
            return "a control group around the worker refused to start processes"
        return None


def lacks_memory(memory_mib: int) -> str | None:
    """Return why this machine would refuse memory to a check within its limit, None if it would not."""
    with contextlib.ExitStack() as held:
        try:
            for _ in range(0, (memory_mib << 20) + launch.RESERVED_BYTES, _PIECE):
                held.enter_context(mmap.mmap(-1, _PIECE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
        except OSError:
            return "this machine refuses memory below the limit of the check"
    return None


@functools.cache
def _counters() -> tuple[Path, ...]:
    """Return the files that count refusals by the control groups around this process."""
    found = []
    for folder in groups_around("pids"):
        names = [folder / name for name in ("pids.events.local", "pids.events")]
        found += [each for each in names if each.exists()][:1]
    return tuple(found)


def _refused(counter: Path) -> int:
    try:
        words = counter.read_bytes().split()
    except OSError:  # this process was moved, and its first group removed
        return 0
    return int(dict(zip(words[::2], words[1::2], strict=True)).get(b"max", 0))
