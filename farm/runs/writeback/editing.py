"""Export step, the work itself: writes verdicts into a piece of a manifest."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from farm.manifest.rewrite import edited
from farm.manifest.splice import changed
from farm.runs.children.pieces import ManifestPiece
from farm.runs.writeback.fields import Marking, fields
from farm.store.records import Judged, LineReader, own_line_reader

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
