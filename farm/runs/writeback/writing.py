"""Export step, whole manifests: cuts them into pieces, and yields their text with verdicts in order."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from farm.errors import FarmError
from farm.manifest.lines import Lines
from farm.manifest.rewrite import edited
from farm.manifest.splice import changed
from farm.runs.children.pieces import ManifestPiece, pieces
from farm.runs.children.pool import Pool
from farm.runs.writeback.fields import Marking, fields
from farm.store.postgres import Engine, autocommitting, driver_arguments
from farm.store.records import Judged, LineReader, ReadError, line_reader, own_line_reader


class Writing:
    """Writes one run's verdicts into its manifests, one after the other; made by `writing`.

    `lines` is how many of the newest manifest's lines have got one.
    """

    def __init__(self, pool: Pool[Written]) -> None:
        self._pool = pool
        self.lines = 0

    def manifest(self, number: int) -> Callable[[Lines], Iterator[bytes]]:
        """Return a function that yields this manifest's text with its verdicts, in bounded memory.

        It raises `ManifestError`, `ServerDown`, and `FarmError` when a child dies.
        """
        self.lines = 0
        return lambda lines: self._texts(lines, number)

    def _texts(self, lines: Lines, number: int) -> Iterator[bytes]:
        for answer in self._pool.answers(pieces(lines, number)):
            written: Written | None = answer
            while written is not None:
                self.lines += written.lines
                yield written.text
                written = None if written.rest is None else self._pool.here(written.rest)


@contextmanager
def writing(engine: Engine, marking: Marking, *, processes: int | None = None) -> Iterator[Writing]:
    """Write a run's verdicts; no child outlives the block.

    ``processes`` are those of `Pool`. Raises `ServerDown`.
    """
    # Autocommit: no transaction stays open between the reads of two pieces.
    with autocommitting(engine) as connection:
        pool = Pool(
            here=partial(write, marking, line_reader(lambda: connection)),
            begin=partial(connecting, marking, driver_arguments(engine)),
            errors=(FarmError, ReadError),
            doing="writes verdicts into manifest lines",
            outcome="the manifest is as it was: export again, with more memory free if it was short",
            processes=processes,
        )
        with closing(pool):
            yield Writing(pool)


# So much text of one piece is in memory at most, and one line more: each may bring a mebibyte of messages.
_MOST_BYTES = 4 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Written:
    """The text of a piece with its verdicts, and the number of its lines with a verdict.

    `rest` is the part of the piece that is still to be written, None for nothing.
    """

    text: bytes
    lines: int
    rest: ManifestPiece | None


def connecting(marking: Marking, address: Mapping[str, Any]) -> Callable[[ManifestPiece], Written]:
    """Return a function that writes verdicts into pieces; it connects at the first piece."""
    return partial(write, marking, own_line_reader(address))


def write(marking: Marking, read: LineReader, piece: ManifestPiece) -> Written:
    """Return a piece with its verdicts; raises `ManifestError` and the errors of the driver."""
    source = io.BytesIO(piece.text)
    rows = read(marking.run_id, piece.manifest, piece.first, piece.last)
    texts: list[bytes] = []
    size = 0
    with closing(rows):
        editor = _Editor(marking, rows)
        for text in edited(piece.path, enumerate(source, piece.first), editor.edit):
            texts.append(text)
            size += len(text)
            if size >= _MOST_BYTES:
                break
    left = source.read()
    rest = replace(piece, first=piece.first + len(texts), text=left) if left else None
    return Written(text=b"".join(texts), lines=editor.lines, rest=rest)


class _Editor:
    """Walks lines and their stored verdicts side by side; both come in the order of lines."""

    def __init__(self, marking: Marking, rows: Iterator[Judged]) -> None:
        self._marking, self._rows = marking, rows
        self._next = next(rows, None)
        self.lines = 0

    def edit(self, number: int, line: str) -> str:
        """Return a manifest line with its verdict, or as it was when it has none."""
        job = self._next
        if job is None or job.line != number:
            return line
        self._next = next(self._rows, None)
        verdict = job.verdict
        if verdict is None:
            return line
        self.lines += 1
        marking = self._marking

        def change(entry: Mapping[str, object]) -> Mapping[str, object]:
            return fields(job, verdict, entry, marking)

        return changed(line, change)
