"""The farm's own servers, one process each: keeps it running, ends it in order, never leaves it behind."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from farm.embedded.home import end_of_log, open_log
from farm.errors import ServerDown
from farm.orphans import die_with

#: The first and the longest pause before the restart of a program that died.
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.1, 10.0

_READY_SECONDS = 60.0
_POLL_SECONDS = 0.02

_log = logging.getLogger("farm.supervisor")


@dataclass(frozen=True, kw_only=True, slots=True)
class ChildSpec:
    """A program to run: its command, its log, and the signals that end it.

    ``stop`` asks it to end within ``grace_seconds``; the kernel sends ``orphaned`` when the supervisor dies.
    ``lock`` is the descriptor of a lock to hold while it lives; ``environment`` None is this process's own.
    """

    name: str
    command: tuple[str, ...]
    log: Path
    stop: signal.Signals = signal.SIGTERM
    orphaned: signal.Signals = signal.SIGKILL
    grace_seconds: float = 20.0
    lock: int | None = None
    environment: Mapping[str, str] | None = None


class Child:
    """The process of one program, started at once; when it dies it can be restarted, later each time.

    ``since`` is the first start of its program, in seconds since 1970.
    """

    def __init__(self, program: ChildSpec) -> None:
        self._process: subprocess.Popen[bytes]
        self._due: float | None
        self._failure: str | None
        self._first(program)

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    @property
    def failure(self) -> str | None:
        """Why it keeps ending by itself, None while it runs; a kill is no failure of its own."""
        lasts = self.alive and time.monotonic() - self._begun > LONGEST_PAUSE_SECONDS
        return None if lasts else self._failure

    def wait(self) -> None:
        """Wait for a program that ends by itself; raises `ServerDown` when it failed."""
        if self._process.wait() != 0:
            raise self._failed("failed")

    def wait_until(self, answers: Callable[[], bool]) -> None:
        """Wait until it answers; raises `ServerDown` when it ends instead, or is silent for a minute."""
        deadline = time.monotonic() + _READY_SECONDS
        while not answers():
            if not self.alive:
                raise self._failed("exited at its start")
            if time.monotonic() > deadline:
                raise self._failed("does not answer")
            time.sleep(_POLL_SECONDS)

    def tend(self) -> None:
        """Restart the program when it is dead and its pause is over."""
        if self.alive:
            return
        if self._due is None:
            self._kill_group()
            self._failure = str(self._failed("failed")) if self._process.returncode > 0 else None
            self._due = time.monotonic() + self._next_pause()
            died = f"{self.program.name} died ({self._process.returncode})"
            _log.warning("%s; restarting it in %.1f s", died, self._pause_seconds)
        if time.monotonic() >= self._due:
            self._begin()

    def end(self) -> None:
        """Stop it and wait until it is gone, with force when its grace is over."""
        if self.alive:
            self._process.send_signal(self.program.stop)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(self.program.grace_seconds)
        self._kill_group()
        self._process.wait()

    def replace(self, program: ChildSpec) -> None:
        """End it, in order, and start another program in its place."""
        self.end()
        self._first(program)

    def _first(self, program: ChildSpec) -> None:
        self.program = program
        self.since = time.time()
        self._failure = None
        self._pause_seconds = 0.0
        self._begin()

    def _begin(self) -> None:
        self._begun, self._due = time.monotonic(), None
        output, self._log_start = open_log(self.program.log)
        program, supervisor = self.program, os.getpid()
        with output:
            self._process = subprocess.Popen(
                program.command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd="/",
                env=program.environment,
                start_new_session=True,
                pass_fds=() if program.lock is None else (program.lock,),
                preexec_fn=lambda: die_with(supervisor, program.orphaned),
            )

    def _next_pause(self) -> float:
        lasted = time.monotonic() - self._begun > LONGEST_PAUSE_SECONDS
        longer = FIRST_PAUSE_SECONDS if lasted else max(FIRST_PAUSE_SECONDS, 2 * self._pause_seconds)
        self._pause_seconds = min(longer, LONGEST_PAUSE_SECONDS)
        return self._pause_seconds

    def _failed(self, how: str) -> ServerDown:
        return ServerDown(f"{self.program.name} {how}; {end_of_log(self.program.log, self._log_start)}")

    def _kill_group(self) -> None:
        with suppress(ProcessLookupError, PermissionError):  # macOS refuses for an empty group
            os.killpg(self._process.pid, signal.SIGKILL)
