"""Session step, lines: reads the answers of untrusted processes, within limits of time and length."""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import time
from collections.abc import Callable, Sequence

from farm_workers.box.clock import LOOK_SECONDS

#: The most bytes of the answer to one tactic; the farm writes none that is longer.
_MOST_BYTES = 4 << 20
#: The most bytes of a program's messages that are read.
_MOST_OUTPUT = 1 << 20
_CHUNK = 1 << 16


class Output:
    """Empties the pipes of a process, so that it never waits; keeps the first megabyte of its stdout."""

    def __init__(self, pipes: Sequence[int]) -> None:
        self._said, self._first = bytearray(), pipes[0]
        self.open = set(pipes)

    def read(self, pipe: int) -> bool:
        """Read once; return whether there may be more."""
        with contextlib.suppress(BlockingIOError):
            read = os.read(pipe, _CHUNK)
            if pipe == self._first:
                self._said += read[: _MOST_OUTPUT - len(self._said)]
            if not read:
                self.open.discard(pipe)
            return bool(read)
        return False

    def rest(self) -> bytes:
        """Return the kept output, after reading at most a megabyte more."""
        for _ in range(_MOST_OUTPUT // _CHUNK):
            if not self.read(self._first):
                break
        return bytes(self._said)


class Lines:
    """Reads lines of JSON from a socket, each within its time, and some output meanwhile."""

    def __init__(self, given: socket.socket, output: Output | None = None) -> None:
        self._socket, self._read, self._output = given, bytearray(), output
        given.setblocking(False)

    def next(self, left: Callable[[], float]) -> dict[str, object] | None:
        """Return the next line, None at the end; `left` returns its remaining seconds.

        Raises TimeoutError, ValueError for no JSON, and whatever `left` raises.
        """
        while (end := self._read.find(b"\n")) < 0:
            if len(self._read) > _MOST_BYTES:
                raise ValueError("a line that is too long")
            self._wait(left)
            try:
                read = self._socket.recv(_CHUNK)
            except ConnectionResetError:
                return None
            if not read:
                return None
            self._read += read
        line = bytes(self._read[:end])
        del self._read[: end + 1]
        try:
            found = json.loads(line)
        except RecursionError:
            raise ValueError("a line that is nested too deeply") from None
        if not isinstance(found, dict):
            raise ValueError("a line that is no object")  # noqa: TRY004 - data, not a type of ours
        return found

    def _wait(self, left: Callable[[], float]) -> None:
        """Wait until there is something to read. Raises TimeoutError."""
        while (seconds := min(left(), LOOK_SECONDS)) > 0:
            if self._output is None or not self._output.open:
                if is_readable(self._socket, seconds):
                    return
                continue
            poll = select.poll()
            for file in (self._socket.fileno(), *self._output.open):
                poll.register(file, select.POLLIN)
            found = dict(poll.poll(1000 * seconds))
            if found.pop(self._socket.fileno(), None):
                return
            for pipe in found:
                self._output.read(pipe)
        raise TimeoutError

    def discard(self, deadline: float) -> None:
        """Discard all until the end. Raises TimeoutError and OSError."""
        self._read.clear()
        while (left := deadline - time.monotonic()) > 0 and is_readable(self._socket, left):
            try:
                if not self._socket.recv(_CHUNK):
                    return
            except ConnectionResetError:
                return
        raise TimeoutError


def is_readable(file: socket.socket | int, seconds: float) -> bool:
    """Return whether there is something to read within some seconds; of any descriptor, unlike `select`."""
    poll = select.poll()
    poll.register(file, select.POLLIN)
    return bool(poll.poll(1000 * seconds))
