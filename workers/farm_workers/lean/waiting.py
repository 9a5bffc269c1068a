"""Prepared way, one process: a stock Lean that has imported a header and waits for its one program."""

from __future__ import annotations

import contextlib
import fcntl
import math
import os
import select
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import replace

from farm.judging.report import Execution
from farm.limits import Limits
from farm_workers.box import once as box
from farm_workers.box.cell import Cell
from farm_workers.box.isolation import Isolation
from farm_workers.box.procfs import Usage
from farm_workers.box.supervisor import BoxFailed, Command
from farm_workers.environments.lean_environment import LeanEnvironment, environment_variables
from farm_workers.lean.lsp import HEADER, PROGRAM, Answer, opening, program
from farm_workers.lean.messages import wait_command
from farm_workers.lean.way import FIRST_LOAD, Doubtful

#: A waiting process has no time limits: no check pays for the wait.
_WAITING = replace(FIRST_LOAD, wall_seconds=math.inf, cpu_seconds=math.inf)
#: The bytes of requests that a process takes at once; a longer program goes to a fresh Lean.
_PIPE_BYTES = 1 << 20
#: Lean repeats its messages with each command that it has elaborated.
_OUTPUT_TIMES = 8
#: How often the thread that waits for an import looks whether the process is still needed.
_LOOK_SECONDS = 0.1
_CHUNK = 1 << 16


class NoImport(Doubtful):
    """Lean cannot import a header: no further process is prepared for it."""


class WaitingLean:
    """One Lean in a box; thread-safe. It lives until it is closed, and dies with this process.

    `import_seconds` and `memory_kib` are the time until it was ready, and its private memory then. `told` is
    called with it once it is ready or has failed; `error` then has the reason.
    """

    def __init__(
        self,
        environment: LeanEnvironment,
        header: str,
        isolation: Isolation,
        told: Callable[[WaitingLean], None],
    ) -> None:
        """Begin to import the header, in a thread of its own: the box lives as long as its thread."""
        self.environment, self.header, self._isolation, self._told = environment, header, isolation, told
        self.error: Exception | None = None
        self.is_ready = False
        self.import_seconds, self.memory_kib = 0.0, 0
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._live, name="prepared-lean", daemon=True)
        self._thread.start()

    @property
    def lives(self) -> bool:
        """Whether it is ready and its process has not ended."""
        return self.is_ready and not _is_readable(self._cell.over)

    @property
    def is_closing(self) -> bool:
        """Whether it is to end."""
        return self._closing.is_set()

    @property
    def has_ended(self) -> bool:
        """Whether all of its processes have ended."""
        return not self._thread.is_alive()

    def end(self) -> None:
        """Begin to end its process."""
        self._closing.set()

    def close(self) -> None:
        """End its process."""
        self.end()
        self._thread.join()

    def check(self, text: str, limits: Limits, cancelled: box.Cancelled) -> tuple[Execution, Answer]:
        """Give it its program, within limits that count from now; return when all its processes have ended.

        Raises Doubtful and BoxFailed.
        """
        held = _FromNow(self._cell, limits)
        try:
            self._say(program(text))
            answer = Answer(PROGRAM)
            more = replace(limits, output_kib=_OUTPUT_TIMES * limits.output_kib)
            return box.watched(held, more, self._isolation, cancelled, answer.ends), answer
        finally:
            self._cell.close()

    def _live(self) -> None:
        try:
            with contextlib.ExitStack() as files:
                self._begin(files)
                self._import()
                self.is_ready = True
                self._told(self)
                self._closing.wait()
        except (Doubtful, BoxFailed, OSError) as error:
            self.error = error
            self._told(self)

    def _begin(self, files: contextlib.ExitStack) -> None:
        theirs, self._stdin = os.pipe()
        files.callback(os.close, self._stdin)
        os.set_blocking(self._stdin, False)
        with contextlib.suppress(OSError):  # this user has too many pipes: long programs go to a fresh Lean
            fcntl.fcntl(self._stdin, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        command = Command(
            words=wait_command(self.environment),
            limits=_WAITING,
            environment=environment_variables(self.environment),
            visible=self.environment.folders,
        )
        try:
            self._cell = Cell(command, isolation=self._isolation, stdin=theirs)
        finally:
            os.close(theirs)
        files.callback(self._cell.close)

    def _import(self) -> None:
        begun = time.monotonic()
        self._say(opening(self.header))
        answer, written = Answer(HEADER), bytearray()
        while not answer.ends(written):
            written += self._heard(begun + FIRST_LOAD.wall_seconds)
        if not answer.is_complete or b'"error"' in answer.as_printed(self.header):
            raise NoImport("Lean cannot import the header in this way")
        self.import_seconds = time.monotonic() - begun
        self.memory_kib = self._cell.usage().memory_kib

    def _heard(self, deadline: float) -> bytes:
        """Return the next bytes of Lean's output. Raises Doubtful when Lean ends, or is needed no more."""
        stdout, over = self._cell.stdout, self._cell.over
        while not _is_readable(stdout, _LOOK_SECONDS):
            if _is_readable(over):
                raise Doubtful("a Lean ended while it imported a header")
            if self._closing.is_set() or time.monotonic() > deadline:
                raise Doubtful("a prepared Lean was not ready in time")
        if not (data := os.read(stdout, _CHUNK)):
            raise Doubtful("a Lean ended while it imported a header")
        return data

    def _say(self, words: bytes) -> None:
        try:
            if os.write(self._stdin, words) == len(words):
                return
        except (BlockingIOError, BrokenPipeError) as error:
            raise Doubtful("a prepared Lean takes no more words") from error
        raise Doubtful("the program is too long for a prepared Lean")


def _is_readable(descriptor: int, seconds: float = 0.0) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


class _FromNow:
    """A cell whose usage and limits count from now on, without the import."""

    is_new = False

    def __init__(self, cell: Cell, limits: Limits) -> None:
        self._cell, self._before = cell, cell.usage()
        self.stdout, self.stderr, self.over = cell.stdout, cell.stderr, cell.over
        try:
            cell.allow(limits.memory_mib)
        except OSError as error:
            raise Doubtful("a prepared Lean cannot be limited") from error

    @property
    def seen(self) -> Usage:
        """The usage at the last look, without that of the import."""
        return replace(self._cell.seen, cpu_seconds=self._cell.seen.cpu_seconds - self._before.cpu_seconds)

    def breach(self) -> str | None:
        """Return the limit that was hit."""
        return self._cell.breach()

    def threads(self) -> Iterable[int]:
        """Return the threads of its processes."""
        return self._cell.threads()

    def kill(self) -> None:
        """Kill the process."""
        self._cell.kill()

    def ended(self) -> Execution:
        """Kill the process and return how it ended, without the usage of the import."""
        facts, before = self._cell.ended(), self._before
        return replace(
            facts,
            cpu_seconds=max(0.0, facts.cpu_seconds - before.cpu_seconds),
            peak_memory_kib=max(0, facts.peak_memory_kib - before.memory_kib),
        )
