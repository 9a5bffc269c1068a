"""Children, their parent's side: answers short manifests itself, long ones by processes, in order."""

from __future__ import annotations

import fcntl
import os
import pickle
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, cycle
from typing import IO, Generic, TypeVar, cast

from farm import allotment
from farm.errors import FarmError
from farm.runs.children.pieces import PIECE_BYTES, PIPE_BYTES, ManifestPiece

#: The process itself answers the first pieces of a manifest: it takes as long as starting children.
OWN_PIECES = 4
#: More processes than this would wait for the one that cuts the file and takes the answers.
_MOST_PROCESSES = 8
# A child has one piece at hand and the next one waiting; all together have at most this number of bytes, and
# one piece.
_PIECES_EACH, _MOST_BYTES = 2, 16 << 20

_Answer = TypeVar("_Answer")


@dataclass(kw_only=True, slots=True)
class Pool(Generic[_Answer]):
    """Answers the pieces of one manifest after the other; a long manifest starts the children.

    ``here`` makes the answer of a piece in this process. A child calls ``begin`` and answers with the
    function that it returns; ``errors`` are sent to the parent, others kill the child. ``doing`` completes
    the message "a process that ..." about a dead child, and ``outcome`` adds the state and the remedy.
    ``processes`` is how many children there may be: 0 for none, by default as many as there are CPUs to use.
    For one thread, which closes it and must not end before: to the kernel it is the children's parent.
    """

    here: Callable[[ManifestPiece], _Answer]
    begin: Callable[[], Callable[[ManifestPiece], _Answer]]
    errors: tuple[type[Exception], ...] = (FarmError,)
    doing: str
    outcome: str
    processes: int | None = None
    _children: list[_Child] = field(default_factory=list, init=False)
    # Whose answer is next, and how long its piece is.
    _due: deque[tuple[_Child, int]] = field(default_factory=deque, init=False)

    def close(self) -> None:
        """Kill the children and wait until they are gone."""
        for child in self._children:
            child.kill()
        for child in self._children:
            with suppress(BrokenPipeError), child:
                pass
        self._children.clear()
        self._due.clear()

    def answers(self, pieces: Iterator[ManifestPiece]) -> Iterator[_Answer]:
        """Yield the answers to pieces of one manifest, in order.

        Raises the error that is found in a piece, when it is its turn, and `FarmError` when a child dies.
        """
        processes = _by_cpus() if self.processes is None else self.processes
        if not processes:
            yield from map(self.here, pieces)
            return
        own, next_ = _own(pieces)
        if next_ is None:
            yield from map(self.here, own)
            return
        later = chain((next_,), pieces)
        try:
            if self._children:
                later = chain(own, later)
            else:
                self._start(processes, later)
                yield from map(self.here, own)
            yield from self._theirs(later)
        except _Died as death:
            raise FarmError(f"a process that {self.doing} {death}; {self.outcome}") from death
        finally:
            if self._due:  # the caller stopped early
                self.close()

    def _start(self, processes: int, pieces: Iterator[ManifestPiece]) -> None:
        """Start children, each with a piece that waits in its pipe."""
        for _ in range(processes):
            self._children.append(_Child())
            self._children[-1].send((self.begin, self.errors))
        for child, piece in zip(self._children, pieces, strict=False):
            self._give(child, piece)
            if self._is_full:
                return

    def _theirs(self, pieces: Iterator[ManifestPiece]) -> Iterator[_Answer]:
        """Yield the children's answers. They get pieces by turns: the next answer is always the oldest."""
        for child, piece in zip(cycle(self._children), pieces, strict=False):
            while self._is_full:
                yield self._next()
            self._give(child, piece)
        while self._due:
            yield self._next()

    def _give(self, child: _Child, piece: ManifestPiece) -> None:
        self._due.append((child, len(piece.text)))
        child.send(piece)

    @property
    def _is_full(self) -> bool:
        most = _PIECES_EACH * len(self._children)
        return len(self._due) >= most or sum(size for _, size in self._due) >= _MOST_BYTES

    def _next(self) -> _Answer:
        answer = self._due[0][0].receive()
        self._due.popleft()
        if isinstance(answer, Exception):
            raise answer
        return cast("_Answer", answer)


def _by_cpus() -> int:
    cpus = min(allotment.cores(), _MOST_PROCESSES)
    return cpus if cpus > 1 else 0


def _own(pieces: Iterator[ManifestPiece]) -> tuple[list[ManifestPiece], ManifestPiece | None]:
    """Return the pieces that the process itself may answer, and the one that follows, None at the end."""
    own: list[ManifestPiece] = []
    for piece in pieces:
        if len(own) == OWN_PIECES or len(piece.text) > PIECE_BYTES:
            return own, piece
        own.append(piece)
    return own, None


class _Died(Exception):
    """A child is dead; says how it died."""


class _Child(subprocess.Popen[bytes]):
    """One child. It never waits for its answers to be read, so it always comes to read the next piece."""

    def __init__(self) -> None:
        # -P keeps a folder named farm in the current one from being imported.
        command = (sys.executable, "-P", "-m", "farm.runs.children.answering", str(os.getpid()))
        super().__init__(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        # A piece fits, and most answers do; not on other systems, nor where this user's pipes hold too much.
        with suppress(AttributeError, OSError):
            for pipe in (self.stdin, self.stdout):
                fcntl.fcntl(cast("IO[bytes]", pipe), fcntl.F_SETPIPE_SZ, PIPE_BYTES)

    def send(self, message: object) -> None:
        """Send a message; waits only when it is too long for the pipe, or the child is just starting."""
        pipe = cast("IO[bytes]", self.stdin)
        try:
            pickle.dump(message, pipe, pickle.HIGHEST_PROTOCOL)
            pipe.flush()
        except BrokenPipeError as error:
            raise self._death() from error

    def receive(self) -> object:
        """Return its next message, when that is there."""
        try:
            return pickle.load(cast("IO[bytes]", self.stdout))  # noqa: S301 - from our own child
        except (EOFError, pickle.UnpicklingError) as error:
            raise self._death() from error

    def _death(self) -> _Died:
        status = self.wait()
        if status < 0:
            return _Died(f"was killed ({signal.Signals(-status).name})")
        return _Died(f"ended with status {status}")
