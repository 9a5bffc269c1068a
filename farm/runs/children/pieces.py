"""Children, their input: pieces of a manifest, each some whole lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from farm.manifest.lines import Lines

#: The largest pipe that anybody may have: pipe(7).
PIPE_BYTES = 1 << 20
#: Size of a piece: large enough to be worth the transfer, small enough to wait in a pipe.
PIECE_LINES, PIECE_BYTES = 500, PIPE_BYTES - (1 << 14)


@dataclass(frozen=True, kw_only=True, slots=True)
class ManifestPiece:
    """Whole lines of a manifest: its path and number, the number of the first line, and their bytes."""

    path: str
    manifest: int
    first: int
    text: bytes

    @property
    def last(self) -> int:
        """The number of the last line, which may have no end."""
        return self.first + self.text.count(b"\n") - self.text.endswith(b"\n")


def pieces(lines: Lines, manifest: int) -> Iterator[ManifestPiece]:
    """Yield the pieces of an open manifest, which has this number; raises `ManifestError`."""
    path = str(lines.path)
    for first, text in lines.pieces(most_lines=PIECE_LINES, most_bytes=PIECE_BYTES):
        yield ManifestPiece(path=path, manifest=manifest, first=first, text=text)
