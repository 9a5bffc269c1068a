"""Preparation step, whole manifests: cut into pieces, and their blocks in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

from farm.errors import FarmError, ManifestError
from farm.files.lines import Fingerprint, Lines, opened
from farm.manifest import empty
from farm.prepare.blocks import Piece, Preparer
from farm.prepare.options import Known, SubmitOptions, places
from farm.prepare.pool import Answer, Pool
from farm.prepare.rows import Block
from farm.settings import usable_cpus

#: What a child is given at once: long enough to be worth the way, short enough that the others need not wait.
PIECE_LINES, PIECE_BYTES = 500, 512 << 10
#: The process itself prepares the first pieces of a manifest: it takes as long as starting children.
OWN_PIECES = 4
#: More processes than this wait for the one that cuts the file and for the store.
_MOST_PROCESSES = 8


class Prepared:
    """The blocks of one manifest: iterate once, in bounded memory.

    Raises `ManifestError` at the first line that is wrong, and `FarmError` when a child dies.
    """

    def __init__(self, preparing: Preparing, path: Path, number: int) -> None:
        self._preparing, self._path, self._number = preparing, path, number
        self._fingerprint: Fingerprint | None = None
        self._error: ManifestError | None = None

    def __iter__(self) -> Iterator[Block]:
        self._fingerprint = self._error = block = None
        with opened(self._path) as lines:
            for answer in self._preparing.answers(self._pieces(lines)):
                if isinstance(answer, FarmError):
                    raise answer
                if answer is not None:
                    block = answer
                    yield block
            if self._error is not None:
                raise self._error
            if block is None:
                raise empty(self._path)
            self._fingerprint = lines.fingerprint()

    def _pieces(self, lines: Lines) -> Iterator[Piece]:
        """Yield the manifest's pieces; an error of reading is kept until they have been answered."""
        path = str(self._path)
        try:
            for first, text in lines.pieces(most_lines=PIECE_LINES, most_bytes=PIECE_BYTES):
                yield Piece(path=path, manifest=self._number, first=first, text=text)
        except ManifestError as error:
            self._error = error

    @property
    def fingerprint(self) -> Fingerprint:
        """The fingerprint of the file as it was read; there is none before its end was reached."""
        if self._fingerprint is None:
            raise RuntimeError("a manifest has a fingerprint once all its blocks have been prepared")
        return self._fingerprint


class Preparing:
    """Prepares the manifests of one run; children are started by the first one that is long."""

    def __init__(self, options: SubmitOptions, known: Iterable[Known], *, processes: int) -> None:
        self._options, self._processes = options, processes
        self._known = places(known, options)
        self._here = Preparer(options, self._known)
        self._pool: Pool | None = None

    def manifest(self, path: Path, number: int) -> Prepared:
        """Return the blocks of a manifest, to be iterated before those of the next; it has this number."""
        return Prepared(self, path, number)

    def answers(self, pieces: Iterator[Piece]) -> Iterator[Answer]:
        """Yield the answers to pieces of one manifest, in order."""
        if not self._processes:
            yield from map(self._answer, pieces)
            return
        own, next_ = _own(pieces)
        if next_ is None:
            yield from map(self._answer, own)
            return
        try:
            yield from self._with_children(own, chain((next_,), pieces))
        finally:
            if self._pool is not None and not self._pool.is_idle:
                self.close()

    def _with_children(self, own: Iterable[Piece], later: Iterator[Piece]) -> Iterator[Answer]:
        if self._pool is None:
            self._pool = Pool(self._options, self._known, processes=self._processes)
            self._pool.fill(later)
            yield from map(self._answer, own)
            yield from self._pool.answers(later)
        else:
            yield from self._pool.answers(chain(own, later))

    def _answer(self, piece: Piece) -> Answer:
        try:
            return self._here.block(piece)
        except ManifestError as error:
            return error

    def close(self) -> None:
        """End the children."""
        if self._pool is not None:
            self._pool.close()
        self._pool = None


def _own(pieces: Iterator[Piece]) -> tuple[list[Piece], Piece | None]:
    """Return the pieces that the process itself may prepare, and the one that follows, None at the end."""
    own: list[Piece] = []
    for piece in pieces:
        if len(own) == OWN_PIECES or len(piece.text) > PIECE_BYTES:
            return own, piece
        own.append(piece)
    return own, None


@contextmanager
def preparing(
    options: SubmitOptions, known: Iterable[Known], *, processes: int | None = None
) -> Iterator[Preparing]:
    """Prepare manifests of a run; no child is left at the end of the block.

    ``known`` are the environments that may be named. ``processes`` is how many children there may be: 0 for
    none, by default as many as there are CPUs to use. Raises `UsageError` for the run's own environment.
    """
    if processes is None:
        cpus = min(usable_cpus(), _MOST_PROCESSES)
        processes = cpus if cpus > 1 else 0
    made = Preparing(options, known, processes=processes)
    try:
        yield made
    finally:
        made.close()


@contextmanager
def prepared(
    path: Path,
    number: int,
    options: SubmitOptions,
    known: Iterable[Known],
    *,
    processes: int | None = None,
) -> Iterator[Prepared]:
    """Prepare one manifest; see `preparing`."""
    with preparing(options, known, processes=processes) as made:
        yield made.manifest(path, number)
