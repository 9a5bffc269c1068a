"""Box step: runs one command from start to end within limits, kills its whole tree, and returns facts.

An `Isolation` holds the command: see `farm_workers.box.isolation` for its levels. "The box failed"
(`Execution.box_error`) and "the command failed" are two different facts.
"""

from __future__ import annotations

import contextlib
import os
import select
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from farm.judging.report import Execution
from farm.limits import Limits
from farm_workers.box.cell import Cell
from farm_workers.box.clock import Clock, Starved
from farm_workers.box.copy import as_file
from farm_workers.box.isolation import Isolation
from farm_workers.box.leftovers import AT_ONCE
from farm_workers.box.procfs import Usage
from farm_workers.box.supervisor import BoxFailed, Command
from farm_workers.metrics import events

#: Seconds between two looks at the tree. Sampled figures are read soon, because most checks are short;
#: figures that the kernel keeps are read when a limit could be reached, and often enough for a cancellation.
FIRST_LOOK, SLOWEST_LOOK = 0.01, 0.05
#: Seconds for reading the rest of the pipes after the command's end.
_DRAIN_SECONDS = 3.0
#: The capacity of a pipe; a pipe that is nearly full is read again after this many seconds.
_CHUNK, _FULL_PIPE_SECONDS = 1 << 16, 0.001
_SMALLEST_PIPE = 4096  # the capacity for a user with very many pipes, see pipe(7)
_CPUS = os.cpu_count() or 1


#: Returns whether the check was cancelled.
Cancelled = Callable[[], bool]
#: Returns whether the command need not go on, given all that it has written to stdout.
Suffices = Callable[[bytearray], bool]
#: The box error of a cancelled check.
CANCELLED = "the check was cancelled"


def never() -> bool:
    """Return that the check is not cancelled."""
    return False


def nothing_suffices(_written: bytearray) -> bool:
    """Return that the command is to go on to its end."""
    return False


def run(
    command: Sequence[str],
    *,
    isolation: Isolation,
    stdin: bytes = b"",
    limits: Limits,
    environment: Mapping[str, str],
    visible: Sequence[Path] = (),
    writable: Path | None = None,
    cancelled: Cancelled = never,
) -> Execution:
    """Run `command` to its end or to a limit, and return once nothing of it is alive.

    It works in a fresh folder that is removed at the end; `limits`, `environment`, `visible` and `writable`
    are those of `farm_workers.box.supervisor.Command`. `cancelled` is called about every 50 ms; when it
    returns True, the command is killed and `box_error` says so. Can be called from many threads at once.
    Failures of the box are returned in `Execution.box_error`, not raised.
    """
    held = Command(words=command, limits=limits, environment=environment, visible=visible, writable=writable)
    try:
        with as_file(stdin) as source:
            cell = Cell(held, isolation=isolation, stdin=source)
        with contextlib.closing(cell):
            return watched(cell, limits, isolation, cancelled)
    except (BoxFailed, OSError) as error:
        why = str(error) if isinstance(error, BoxFailed) else f"{type(error).__name__}: {error}"
        return Execution(box_error=why, isolation=isolation.name)


class _Output:
    """The output of a command: stdout and stderr up to the limit, and the count of all bytes."""

    def __init__(self, most_bytes: int) -> None:
        self.room = most_bytes
        self.written = 0
        self.cut = False
        self.kept = {"stdout": bytearray(), "stderr": bytearray()}

    def add(self, name: str, data: bytes) -> None:
        """Add the data read from one pipe."""
        self.written += len(data)
        self.cut = self.cut or len(data) > self.room
        self.kept[name] += data[: self.room]
        self.room -= min(self.room, len(data))


class Watched(Protocol):
    """A process tree that can be watched: a `Cell`, or one check in a cell; one that `is_new` begins now."""

    stdout: int
    stderr: int
    over: int
    is_new: bool

    @property
    def seen(self) -> Usage:
        """The usage at the last look."""

    def breach(self) -> str | None:
        """Return the limit that was hit, ``memory`` or ``processes``, else None."""

    def threads(self) -> Iterable[int]:
        """Return the tree's threads."""

    def kill(self) -> None:
        """Kill the tree."""

    def ended(self) -> Execution:
        """Kill the remaining processes and return how the command ended. Raises BoxFailed."""


def watched(
    held: Watched,
    limits: Limits,
    isolation: Isolation,
    cancelled: Cancelled = never,
    suffices: Suffices = nothing_suffices,
) -> Execution:
    """Watch the tree to its end or to a limit, and return the facts when none of its processes is alive.

    It is also ended when its output on stdout `suffices`.
    """
    watch = _Watch(held, limits, SLOWEST_LOOK if isolation.groups else FIRST_LOOK)
    watch.until_over(cancelled, suffices)
    return replace(watch.facts(held.ended()), isolation=isolation.name)


class _Watch:
    """Watches one command: reads its output, and enforces its limits."""

    def __init__(self, cell: Watched, limits: Limits, first_look: float) -> None:
        self._cell = cell
        self._interval = first_look / 2
        self._limits = limits
        self._output = _Output(limits.output_kib * 1024)
        self._limit: str | None = None
        self._error: str | None = None
        self._killed_at: float | None = None
        self._started = time.monotonic()
        self._clock = Clock(cell.threads, lambda: cell.seen.cpu_seconds, is_new=cell.is_new)
        self._wall_left = limits.wall_seconds
        self._wall_seconds = 0.0

    def until_over(self, cancelled: Cancelled, suffices: Suffices) -> None:
        """Read all output and enforce the limits until the whole tree has ended, or its output suffices."""
        poll = select.poll()  # unlike select it takes any descriptor
        poll.register(self._cell.over, select.POLLIN)
        if suffices is not nothing_suffices:
            poll.register(self._cell.stdout, select.POLLIN)
        next_look, over = self._next_look(self._started), False
        while not over and not self._late():
            seconds = _FULL_PIPE_SECONDS if self._drained() else next_look - time.monotonic()
            if suffices(self._output.kept["stdout"]):
                break
            over = self._is_over(poll, max(0.0, seconds))
            now = time.monotonic()
            if now >= next_look:
                self._look(now, cancelled)
                next_look = self._next_look(now)
        self._wall_seconds = (self._killed_at or time.monotonic()) - self._started
        deadline = time.monotonic() + (_DRAIN_SECONDS if over else 0.0)
        while self._drained() and time.monotonic() < deadline:
            pass  # output written before the end is still in the pipes

    def _is_over(self, poll: select.poll, seconds: float) -> bool:
        """Wait for the end, or for output if that is waited for; return whether it is the end."""
        found = dict(poll.poll(seconds * 1000))
        if found.get(self._cell.stdout, 0) & select.POLLHUP:
            poll.unregister(self._cell.stdout)  # it is closed, which would end each wait
        return self._cell.over in found

    def _next_look(self, now: float) -> float:
        """Return when to look again: when a limit could be reached, or a cancellation must be noticed."""
        cpu_left = (self._limits.cpu_seconds - self._cell.seen.cpu_seconds) / _CPUS
        self._interval = min(2 * self._interval, SLOWEST_LOOK)
        return now + min(self._interval, max(cpu_left, FIRST_LOOK), max(self._wall_left, FIRST_LOOK / 10))

    def _late(self) -> bool:
        """Whether the command was killed but lives: closing the cell then hands it to the background."""
        return self._killed_at is not None and time.monotonic() > self._killed_at + AT_ONCE

    def _drained(self) -> bool:
        """Read the pipes; return whether one was so full that its writer may be blocked."""
        much = False
        for name, pipe in (("stdout", self._cell.stdout), ("stderr", self._cell.stderr)):
            with contextlib.suppress(BlockingIOError):
                data = os.read(pipe, _CHUNK)
                self._output.add(name, data)
                much = much or len(data) >= _SMALLEST_PIPE
        return much

    def _look(self, now: float, cancelled: Cancelled) -> None:
        """Kill the command when it exceeds a limit or the check was cancelled."""
        if self._killed_at is not None:
            return
        cause = None
        try:
            cause = self._limit = self._exceeded()
        except Starved as error:
            cause, self._error = "starved", str(error)
        if cancelled():
            cause, self._error = cause or "cancelled", CANCELLED
        if cause:
            self._killed_at = now
            self._cell.kill()
            events.killed(cause)

    def _exceeded(self) -> str | None:
        if breach := self._cell.breach():
            return breach
        self._wall_left = self._clock.left(self._limits.wall_seconds)
        if self._wall_left <= 0:  # first: a late look on a busy machine sees both
            return "wall"
        return "cpu" if self._cell.seen.cpu_seconds > self._limits.cpu_seconds else None

    def facts(self, ended: Execution) -> Execution:
        """Return how the command ended, with the figures and output collected while it ran."""
        limit = self._limit or ended.limit or self._limit_at_end(ended)
        waited = min(self._clock.waited, self._wall_seconds)
        events.watched(self._wall_seconds, waited)
        return replace(
            ended,
            wall_seconds=self._wall_seconds,
            waited_seconds=waited,
            limit=limit or ("output" if self._output.cut else None),
            stdout=bytes(self._output.kept["stdout"]),
            stderr=bytes(self._output.kept["stderr"]),
            output_bytes=self._output.written,
            output_cut=self._output.cut,
            box_error=self._error or (None if limit else ended.box_error),
        )

    def _limit_at_end(self, ended: Execution) -> str | None:
        """Return the limit that a command had exceeded when it ended before a look."""
        return "cpu" if ended.cpu_seconds > self._limits.cpu_seconds else None
