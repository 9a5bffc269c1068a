"""Box step: measures the time that a process tree ran or could have run, without its waits for a core.

Linux counts for each thread how long it ran and how long it was ready to run without a core; a thread that
sleeps or is stopped counts for neither (``/proc/PID/schedstat``). A tree waits while one of its threads is
ready and none of them runs. That time is bounded from below: the time in which one of its threads at least
was ready or ran, less the processor time of all. Threads of one tree that keep each other from a core thus
wait for no neighbour.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from farm.limits import guard_seconds

#: Seconds between two looks at the threads of a tree.
LOOK_SECONDS = 0.05
#: The threads that a look reads. The waits of further ones do not count.
_MOST_THREADS = 256
#: A tree may wait this many times longer than equal shares of all cores would let it.
_UNFAIR = 2.0


class Starved(Exception):
    """A process tree waited too long for a core to be judged: the machine's failure."""


@dataclass(kw_only=True, slots=True)
class _Thread:
    """A thread: its nanoseconds ready or running, and the seconds known of its tree by then and before.

    `known` is the time in which the tree was ready or ran, as far as it ends with this thread. `before` is
    that of the whole tree, one look before this thread's time changed: time that the thread adds later is
    none of it, because Linux adds a wait when it ends.
    """

    counted: int
    known: float = 0.0
    before: float = 0.0


_BEGINNING = _Thread(counted=0)


class Clock:
    """The clock of a process tree: it stands while the tree waits for a core.

    `elapsed` is the wall time since it was made, and `waited` the part of it in which the tree waited, both
    in seconds and as of the last look.
    """

    def __init__(
        self,
        threads: Callable[[], Iterable[int]],
        cpu_seconds: Callable[[], float],
        *,
        is_new: bool = False,
    ) -> None:
        """Begin. `threads` returns the tree's threads, `cpu_seconds` its processor time, at each look.

        A tree that `is_new` begins now: then its waits count before the first look, too.
        """
        self._threads, self._cpu_seconds = threads, cpu_seconds
        self._began = time.monotonic()
        self.elapsed = self.waited = 0.0
        self._is_new, self._looked_at = is_new, 0.0 if is_new else None
        self._since = self._cpu_before = self._ready = self._most = 0.0
        self._seen: dict[int, _Thread] = {}

    @property
    def seconds(self) -> float:
        """The time that the tree ran or could have run."""
        return self.elapsed - self.waited

    def left(self, limit: float) -> float:
        """Return the remaining seconds of a limit. Raises Starved for a tree that waited too long."""
        self.elapsed = time.monotonic() - self._began
        if self.elapsed - (self._looked_at or 0.0) >= LOOK_SECONDS:
            self._look()
        if self.seconds < limit and self.elapsed >= guard_seconds(limit):
            raise Starved(
                f"the check waited {self.waited:.0f} s of {self.elapsed:.0f} s for a processor core; other "
                "programs take the cores of this machine: move them, or lower FARM_CONCURRENCY"
            )
        return limit - self.seconds

    def _look(self) -> None:
        """Read the threads; the first look only notes where they stand."""
        cpu_seconds = self._cpu_seconds()
        if self._looked_at is None:
            self._since, self._cpu_before = self.elapsed, cpu_seconds
        watched = self.elapsed - self._since
        active = self._note_threads(watched)
        if self._looked_at is not None:
            spent = cpu_seconds - self._cpu_before
            self._most += _fair_waits(active) * (self.elapsed - self._looked_at)
            self.waited = max(0.0, min(self._ready - spent, spent * self._most / watched))
        self._looked_at = self.elapsed

    def _note_threads(self, watched: float) -> int:
        """Note how long each thread was ready or ran; return how many did either since the last look."""
        now, before, active = dict(_counts(self._threads())), self._ready, 0
        for thread, counted in now.items():
            last = self._seen.get(thread, _BEGINNING if self._is_new else None)
            if last is not None and last.counted == counted:
                continue
            known = 0.0
            if last is not None and last.counted < counted:  # else another thread has its number now
                known = min(watched, max(last.known, last.before) + (counted - last.counted) / 1e9)
            self._seen[thread] = _Thread(counted=counted, known=known, before=before)
            self._ready = max(self._ready, known)
            active += 1
        self._is_new = False
        for gone in self._seen.keys() - now.keys():
            del self._seen[gone]
        return active


def _counts(threads: Iterable[int]) -> Iterable[tuple[int, int]]:
    """Yield each thread with its nanoseconds of running and of being ready, as far as it can be read."""
    for thread in islice(threads, _MOST_THREADS):
        try:
            ran, ready, _ = Path(f"/proc/{thread}/schedstat").read_bytes().split()
        except (OSError, ValueError):  # it has just ended, or this kernel does not count
            continue
        yield thread, int(ran) + int(ready)


def _fair_waits(active: int) -> float:
    """Return how long a tree with this number of active threads may wait for each second that it runs.

    A process that yields, naps or lowers its own priority is ready without running much: no neighbour's
    doing.
    """
    running = int(Path("/proc/loadavg").read_bytes().split()[3].partition(b"/")[0])
    return _UNFAIR * (max(0, running - active) + 1) / len(os.sched_getaffinity(0))
