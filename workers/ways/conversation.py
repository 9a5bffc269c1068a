"""Resident way, its ears: one side of a conversation with a ``lean --worker`` in a cell, within limits."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from farm.job import Limits
from workers.box.cell import Cell, Usage
from workers.box.once import never
from workers.lsp import Exchange, Frames

#: How a talk ended, besides by a limit, which is named as in `workers.box`.
ANSWERED, DIED, CANCELLED = "answered", "died", "cancelled"

#: Seconds between two questions whether the answer is still wanted, and the least between two looks at usage.
_PATIENCE, _SHORTEST_LOOK = 0.05, 0.01
#: Bytes of one read; a larger buffer would be mapped and given back each time (malloc's M_MMAP_THRESHOLD).
_CHUNK = 1 << 16
#: Of what Lean writes beside its messages, so much is kept.
_STDERR_KEPT = 1 << 16
_CPUS: Final = os.cpu_count() or 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Talk:
    """How something said to Lean went: `ended` is `ANSWERED`, `DIED`, `CANCELLED` or the name of a limit."""

    ended: str
    wall_seconds: float
    cpu_seconds: float
    memory_kib: int
    peak_memory_kib: int
    stderr: str
    stderr_bytes: int


class Conversation:
    """The pipes to a resident Lean; `stdin` is the writing end, and belongs to it from now on."""

    def __init__(self, cell: Cell, stdin: int) -> None:
        self._cell = cell
        self._stdin, self._stdout, self._over = stdin, cell.stdout, cell.over
        self._frames = Frames()
        self._heard = bytearray()
        self._stderr = _Kept()
        self._unsaid = memoryview(b"")
        self._is_waiting = False  # for Lean to read, so that more can be written
        self._poll = select.poll()
        for descriptor in (self._stdout, cell.stderr, self._over):
            self._poll.register(descriptor, select.POLLIN)
        os.set_blocking(stdin, False)

    def close(self) -> None:
        """Say nothing more."""
        os.close(self._stdin)

    def talk(
        self,
        text: bytes,
        exchange: Exchange,
        limits: Limits,
        *,
        cancelled: Callable[[], bool] = never,
    ) -> Talk:
        """Say `text` and listen until `exchange` has its answer, a limit is passed or Lean ends.

        What the process uses counts from when its cell was last looked at. Raises `BrokenProtocol` when what
        comes is no message.
        """
        self._stderr = _Kept()
        self._unsaid = memoryview(text)
        watch = _Watch(self._cell, limits, cancelled)
        self._say()
        longest = limits.output_kib * 1024
        ended = None
        while ended is None:
            left = watch.next_look - time.monotonic()
            if left > 0:
                ended = self._listen(exchange, longest, left)
            else:
                ended = self._understood(exchange, longest) or watch.look()
        return watch.result(ended, self._stderr)

    def _say(self) -> None:
        """Write as much as goes; the rest is written when Lean has read that."""
        try:
            while self._unsaid:
                self._unsaid = self._unsaid[os.write(self._stdin, self._unsaid[:_CHUNK]) :]
        except BlockingIOError:
            pass
        except BrokenPipeError:  # Lean has ended, which is about to be seen
            self._unsaid = memoryview(b"")
        if bool(self._unsaid) is not self._is_waiting:
            self._is_waiting = bool(self._unsaid)
            if self._is_waiting:
                self._poll.register(self._stdin, select.POLLOUT)
            else:
                self._poll.unregister(self._stdin)

    def _listen(self, exchange: Exchange, longest: int, seconds: float) -> str | None:
        """Take in what comes within `seconds`; tell when that ends the talk."""
        over, known = False, len(self._heard)
        for descriptor, _ in self._poll.poll(seconds * 1000):
            if descriptor == self._stdin:
                self._say()
            elif descriptor == self._over:
                over = True
            elif not (data := os.read(descriptor, _CHUNK)):
                self._poll.unregister(descriptor)
            elif descriptor == self._stdout:
                self._heard += data
            else:
                self._stderr.add(data)
        # Lean says a lot before it answers, each message by itself: they are taken apart together.
        much = len(self._heard) + self._stderr.written > _CHUNK
        if over or much or exchange.may_be_over(self._heard, known):
            return self._understood(exchange, longest) or (DIED if over else None)
        return None

    def _understood(self, exchange: Exchange, longest: int) -> str | None:
        """Take in what was heard; tell when that ends the talk."""
        for body in self._frames.feed(bytes(self._heard), longest):
            exchange.take(body)
        self._heard.clear()
        # First: behind a message that was passed over, the last one that was taken is not what Lean found.
        if self._stderr.written > longest or exchange.too_long:
            return "output"
        return ANSWERED if exchange.answered else None


class _Kept:
    """What Lean wrote beside its messages: counted, and kept up to a length."""

    def __init__(self) -> None:
        self.written = 0
        self._kept = bytearray()

    def add(self, data: bytes) -> None:
        self.written += len(data)
        self._kept += data[: _STDERR_KEPT - len(self._kept)]

    def __str__(self) -> str:
        return self._kept.decode(errors="replace")


class _Watch:
    """Keeps the limits of one talk; looks no more often than a limit could be passed."""

    def __init__(self, cell: Cell, limits: Limits, cancelled: Callable[[], bool]) -> None:
        self._cell, self._limits, self._cancelled = cell, limits, cancelled
        self._used_before = cell.seen.cpu_seconds
        self._started = time.monotonic()
        self.next_look = self._started + min(_PATIENCE, limits.wall_seconds, limits.cpu_seconds / _CPUS)

    def look(self) -> str | None:
        """Say what ends the talk, when something does, and when to look again."""
        now = time.monotonic()
        wall_left = self._started + self._limits.wall_seconds - now
        cpu_left = self._cpu_left(self._cell.usage())
        if self._cancelled():
            return CANCELLED
        if wall_left <= 0:
            return "wall"
        if cpu_left <= 0:
            return "cpu"
        self.next_look = now + min(_PATIENCE, wall_left, max(_SHORTEST_LOOK, cpu_left / _CPUS))
        return self._cell.breach()

    def _cpu_left(self, usage: Usage) -> float:
        return self._limits.cpu_seconds - (usage.cpu_seconds - self._used_before)

    def result(self, ended: str, stderr: _Kept) -> Talk:
        """Return the facts once the talk has ended; a limit passed just before the end counts as well."""
        usage = self._cell.usage()
        if ended == DIED:
            ended = self._cell.breach() or ended
        if ended in (ANSWERED, DIED) and self._cpu_left(usage) <= 0:
            ended = "cpu"
        return Talk(
            ended=ended,
            wall_seconds=time.monotonic() - self._started,
            cpu_seconds=usage.cpu_seconds - self._used_before,
            memory_kib=usage.memory_kib,
            peak_memory_kib=usage.peak_memory_kib,
            stderr=str(stderr),
            stderr_bytes=stderr.written,
        )
