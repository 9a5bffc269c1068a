"""Lean step, stopping: finds the first error in Lean's output that decides, so that the rest need not run.

Only what rejects a program for certain counts: an error of Lean's, at a place in the program, that reports
neither a sorry nor one of Lean's own limits. A program can print a message itself: it rejects itself then.
"""

from __future__ import annotations

from collections.abc import Callable

from farm.judging.messages import is_heartbeat, is_memory_limit, is_sorry
from farm.judging.report import Message
from farm_workers.lean.messages import messages_in

#: Returns whether an error decides a check, given the error.
Decides = Callable[[Message], bool]


class FirstError:
    """Called with all that Lean has written so far: whether an error in it decides."""

    def __init__(self, program: str, decides: Decides) -> None:
        self._last_line, self._decides = program.count("\n") + 1, decides
        self._read = 0
        self.found: Message | None = None

    def __call__(self, written: bytearray) -> bool:
        """Read the lines that are new and whole."""
        while self.found is None and (end := written.find(b"\n", self._read)) >= 0:
            line, self._read = bytes(written[self._read : end]), end + 1
            self.found = next(filter(self._counts, messages_in(line)), None)
        return self.found is not None

    def _counts(self, message: Message) -> bool:
        if message.severity != "error" or not 0 < message.line <= self._last_line:
            return False
        if is_sorry(message) or is_heartbeat(message) or is_memory_limit(message):
            return False
        return self._decides(message)
