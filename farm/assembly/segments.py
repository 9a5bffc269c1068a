"""Assembly step, segments: maps positions of a program to the manifest fields it was copied from."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from farm.lean_text.positions import Positions


class Segment(NamedTuple):
    """A piece of a program that was copied verbatim from a manifest field.

    ``program[start:start + length] == field[origin_start:origin_start + length]``, in code points; `origin`
    is the field's name: ``header``, ``context``, ``formal_statement``, ``generation``, ``predicted_proof`` or
    ``hole``, for the program of one.
    """

    start: int
    length: int
    origin: str
    origin_start: int


#: Returns the line, from 1, and column, from 0, at which the segment of this index begins in its field.
Starts = Callable[[int], tuple[int, int]]


class Location(NamedTuple):
    """A place in a manifest field: line from 1, column from 0 in code points, as Lean counts."""

    origin: str
    line: int
    column: int


class Draft:
    """An unfinished program: pieces copied from the fields, and the few words that join them."""

    __slots__ = ("_parts", "_segments", "_sources", "length")

    def __init__(self, sources: Mapping[str, str]) -> None:
        self._sources = sources
        self._parts: list[str] = []
        self._segments: list[Segment] = []
        self.length = 0

    def copy(self, origin: str, start: int, end: int) -> None:
        """Add ``field[start:end]``; a piece that begins at the end of the last one extends its segment."""
        length = end - start
        if length <= 0:
            return
        self._parts.append(self._sources[origin][start:end])
        at = self.length
        if self._segments:
            last = self._segments[-1]
            joins = last.origin == origin and last.start + last.length == at
            if joins and last.origin_start + last.length == start:
                at, start, length = last.start, last.origin_start, last.length + length
                self._segments.pop()
        self._segments.append(Segment(start=at, length=length, origin=origin, origin_start=start))
        self.length = at + length

    def write(self, text: str) -> None:
        """Add text of the farm's own; it must not be empty."""
        self._parts.append(text)
        self.length += len(text)

    def ends_line(self) -> bool:
        """Return whether the next piece would begin a line."""
        return not self._parts or self._parts[-1].endswith("\n")

    @property
    def text(self) -> str:
        """The program so far."""
        return "".join(self._parts)

    def finish(self) -> tuple[str, tuple[Segment, ...]]:
        """Return the program's text and its segments in order."""
        return "".join(self._parts), tuple(self._segments)


class LineMap:
    """Translates positions that Lean reports in a program into positions in the manifest fields."""

    def __init__(self, segments: Sequence[Segment], program_text: str, starts: Starts) -> None:
        """Take the program's segments, and `starts`, which returns the position of each in its field."""
        self._segments, self._starts, self._text = segments, starts, program_text

    @cached_property
    def _program(self) -> Positions:
        return Positions(self._text)

    def locate(self, line: int | None, column: int | None) -> Location | None:
        """Return the place of a position in its field.

        None for text of the farm's own, and for a position outside the program. The position right after a
        segment belongs to it, because Lean reports missing text there.
        """
        offset = self._program.offset(line, column)
        if offset is None or line is None or column is None:
            return None
        found = bisect_right(self._segments, offset, key=lambda segment: segment.start) - 1
        if found < 0:
            return None
        segment = self._segments[found]
        if offset - segment.start > segment.length:
            return None
        begun_line, begun_column = self._program.position(segment.start)
        field_line, field_column = self._starts(found)
        if line > begun_line:  # a segment has the line breaks of its field
            return Location(segment.origin, field_line + line - begun_line, column)
        return Location(segment.origin, field_line, field_column + column - begun_column)

    def line_without(self, origins: Collection[str]) -> int:
        """Return the line on which the first piece of a field other than these begins, 1 without any."""
        for segment in self._segments:
            if segment.origin not in origins:
                return self._program.position(segment.start)[0]
        return 1


def starts_in(segments: Sequence[Segment], fields: Mapping[str, str]) -> Starts:
    """Return the function that gives the line and column at which a segment begins in its field."""
    known: dict[str, Positions] = {}

    def start(number: int) -> tuple[int, int]:
        segment = segments[number]
        if segment.origin not in known:
            known[segment.origin] = Positions(fields[segment.origin])
        return known[segment.origin].position(segment.origin_start)

    return start
