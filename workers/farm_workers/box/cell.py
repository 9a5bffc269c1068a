"""Box step: holds one process tree: starts, measures and ends it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import replace

from farm.judging.report import Execution
from farm_workers.box import launch, procfs
from farm_workers.box.isolation import Isolation
from farm_workers.box.leftovers import AT_ONCE, clear_away
from farm_workers.box.measured import Measured
from farm_workers.box.procfs import Usage
from farm_workers.box.supervisor import BoxFailed, Command


class Cell(Measured):
    """A command and its descendants, held in a box.

    The caller watches wall time, processor time and `breach`. `stdout` and `stderr` are read ends of pipes,
    non-blocking; `over` becomes readable when the command and all its descendants have ended; `seen` is the
    usage at the last look. The command dies with the *thread* that made the cell (parent-death signal), and
    in any case at `close`.
    """

    def __init__(self, command: Command, *, isolation: Isolation, stdin: int) -> None:
        """Start it with file descriptor `stdin` as its input, which stays the caller's. Raises BoxFailed."""
        try:
            super().__init__(command.limits, is_grouped=isolation.groups is not None)
        except OSError as error:
            raise BoxFailed(f"{type(error).__name__}: {error}") from error
        self._ended: Execution | None = None
        self._files = contextlib.ExitStack()
        with contextlib.ExitStack() as undo:
            undo.callback(self._files.close)
            try:
                self._held = isolation.start(command, stdin=stdin, files=self._files)
            except OSError as error:
                raise BoxFailed(f"{type(error).__name__}: {error}") from error
            undo.pop_all()
        self._group, self._supervisor = self._held.group, self._held.supervisor
        self.stdout, self.stderr = self._supervisor.stdout, self._supervisor.stderr
        self.over = self._supervisor.over
        self._supervisor.go()

    def _sampled(self) -> Usage:
        return procfs.usage(self._supervisor.pid)

    def _processes(self) -> Iterable[int]:
        return launch.descendants(self._supervisor.pid)

    def allow(self, more_mib: int) -> None:
        """Limit the memory to what the cell uses now and `more_mib`. Raises OSError."""
        kib = self.usage().memory_kib
        self._limits = replace(self._limits, memory_mib=(kib >> 10) + more_mib)
        if self._group:
            self._group.allow(more_mib << 20)

    def kill(self) -> None:
        """Kill everything in the cell; may be called again."""
        if self._ended is None:
            self._to_be_gone()
            with contextlib.suppress(OSError):  # the supervisor does it too, and closing makes sure
                if self._group:
                    self._group.kill()
            self._supervisor.end()

    def ended(self) -> Execution:
        """Kill the remaining processes, and return the facts once no process, group or folder remains.

        Processes that do not die at once are cleared away in the background. Raises BoxFailed when something
        cannot be killed or removed.
        """
        if self._ended is None:
            try:
                with self._files:
                    self._ended = self._end()
            except OSError as error:
                raise BoxFailed(f"the box could not be removed: {error}") from error
        return self._ended

    def close(self) -> None:
        """End it, as `ended` does."""
        self.ended()

    def _end(self) -> Execution:
        result = self._supervisor.result(0)
        if result is None:
            self.kill()
            result = self._supervisor.result(self._to_be_gone())
        if result is None:
            return self._late()
        self._supervisor.kill_hard()
        if self._group:
            try:
                self._group.end(AT_ONCE)
            except OSError:
                return self._late()
        elif result.status is None and self._held.folder:
            procfs.kill_strays(self._held.folder, seconds=AT_ONCE)
        return self._facts(result.status, result.cpu_seconds, result.error)

    def _late(self) -> Execution:
        """Leave processes that do not die to the background, and return the facts so far."""
        clear_away(self._files.pop_all(), "A box")
        return self._late_facts()
