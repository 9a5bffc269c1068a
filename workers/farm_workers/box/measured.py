"""Box step: reads the usage of a process tree and compares it with its limits."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable

from farm.judging.report import Execution
from farm.limits import Limits
from farm_workers.box import procfs
from farm_workers.box.cgroup import Group
from farm_workers.box.leftovers import AT_ONCE
from farm_workers.box.procfs import Usage
from farm_workers.box.refused import Tasks
from farm_workers.metrics import events

#: The error of a process tree that the kernel killed below its own limit of memory.
OUT_OF_MEMORY = (
    "the kernel killed it out of memory, below its own limit: a control group around the worker, or the "
    "machine, has too little; give it more memory, or lower FARM_CONCURRENCY or FARM_IMAGES_MIB"
)


class Measured:
    """A process tree whose usage is read and compared with its limits of memory and processes.

    `seen` is the usage at the last look. Subclasses set `_group` if they have a control group; else their
    `_sampled` measures the tree of their `_processes`.
    """

    is_new = True
    _group: Group | None

    def __init__(self, limits: Limits, *, is_grouped: bool) -> None:
        """Begin to measure a tree, which `is_grouped` if it has a control group. Raises OSError."""
        self._limits = limits
        self._tasks = Tasks(is_grouped=is_grouped)
        self.seen = Usage(cpu_seconds=0.0, memory_kib=0, peak_memory_kib=0, processes=0)
        self._breach: str | None = None
        self._killed_at: float | None = None

    def _to_be_gone(self) -> float:
        """Return the seconds that the slot still waits for the tree to die, counted from the first call."""
        now = time.monotonic()
        self._killed_at = now if self._killed_at is None else self._killed_at
        return max(0.0, self._killed_at + AT_ONCE - now)

    def _sampled(self) -> Usage:
        raise NotImplementedError

    def _processes(self) -> Iterable[int]:
        raise NotImplementedError

    def threads(self) -> Iterable[int]:
        """Return the threads of the tree."""
        return self._group.threads() if self._group else procfs.threads(self._processes())

    def usage(self) -> Usage:
        """Return the tree's current usage: a few file reads in a control group, else a walk through /proc."""
        now = self._group.usage() if self._group else self._sampled()
        if not self._group:
            self._tasks.look()
        self.seen = Usage(
            cpu_seconds=max(now.cpu_seconds, self.seen.cpu_seconds),
            memory_kib=now.memory_kib,
            peak_memory_kib=max(now.peak_memory_kib, self.seen.peak_memory_kib),
            processes=now.processes,
        )
        return self.seen

    def breach(self) -> str | None:
        """Return ``memory`` or ``processes`` once that limit was hit, else None."""
        if self._breach is None:
            self._breach = self._exceeded()
        return self._breach

    @property
    def is_starved(self) -> bool:
        """Whether the kernel killed one of the processes out of memory below the tree's own limit."""
        return self._group is not None and self._group.starved()

    def _exceeded(self) -> str | None:
        if self._group and self._group.oom_killed():
            return "memory"
        now = self.usage()
        if now.memory_kib > self._limits.memory_mib * 1024:
            return "memory"
        hit = self._group.process_limit_hit() if self._group else now.processes > self._limits.processes
        return "processes" if hit else None

    def _late_facts(self) -> Execution:
        """Return how a tree ended that was killed and does not die in time."""
        return self._facts(None, 0.0, f"killed processes were not gone within {AT_ONCE:g} s")

    def _facts(self, status: int | None, cpu_seconds: float, error: str | None) -> Execution:
        """Return how the tree ended, once all of it has: its wait status, or the box's error."""
        last, group = self.seen, self._group
        now = group.usage() if group else last
        limit = self._breach
        if self.is_starved:
            events.killed("out_of_memory")
            error = error or OUT_OF_MEMORY
        if group:
            limit = "memory" if group.oom_killed() else "processes" if group.process_limit_hit() else None
        return Execution(
            exit_status=None if status is None or not os.WIFEXITED(status) else os.WEXITSTATUS(status),
            signal=None if status is None or not os.WIFSIGNALED(status) else os.WTERMSIG(status),
            cpu_seconds=max(now.cpu_seconds, last.cpu_seconds, cpu_seconds),
            peak_memory_kib=max(now.peak_memory_kib, last.peak_memory_kib),
            limit=limit,
            box_error=error,
            lacked=self._lacked(is_well=status == 0),
        )

    def _lacked(self, *, is_well: bool) -> str | None:
        """Return what the machine may have refused the tree, None if it refused nothing. Raises OSError."""
        if self._group and self._group.refused_from_above():
            return "a control group above that of the check refused to start processes"
        return None if self._group and is_well else self._tasks.lacked()
