"""Verdict step, places: translates a position in a program into one in a manifest line's fields.

Several lines can share the verdict on one program, and the fields that the program comes from differ from
line to line. So a stored sentence names a position in the program, and an answer about a line names the
position in that line's field.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """A position in a program, line from 1 and column from 0; a sentence names it at offset `start`."""

    line: int
    column: int
    start: int


#: Returns the field, line and column that a line and column of a program come from, None without a source.
Locate = Callable[[int, int], tuple[str, int, int] | None]


def at_line(line: int, column: int) -> str:
    """Return the phrase that names a position in a program, "" for line 0."""
    return "" if line == 0 else f" at line {line}, column {column}"


def moved(detail: str, place: Place | None, locate: Locate) -> str:
    """Return a verdict's sentence with its position in a field, and the program's in parentheses.

    A sentence without a position is unchanged, and so is one whose position is the same in the field.
    """
    if place is None:
        return detail
    before, behind = detail[: place.start], detail[place.start + len(at_line(place.line, place.column)) :]
    in_program = f"line {place.line}, column {place.column} of the program"
    found = locate(place.line, place.column)
    if found is None:
        return f"{before} at {in_program}{behind}"
    field, line, column = found
    if (line, column) == (place.line, place.column) and field == "predicted_proof":
        return detail
    return f"{before} at line {line}, column {column} of the {origin(field)} ({in_program}){behind}"


def beside(line: int, column: int, locate: Locate) -> str:
    """Return a short phrase for a position: in its field and, if it differs there, in the program."""
    found = locate(line, column)
    if found is None:
        return f"program {line}:{column}" if line else "no place"
    field, own_line, own_column = found
    own = f"{origin(field)} {own_line}:{own_column}"
    return own if (own_line, own_column) == (line, column) else f"{own} (program {line}:{column})"


def origin(field: str) -> str:
    """Return the name that answers use for a field: both fields of a model's text are its answer."""
    return {"generation": "answer", "predicted_proof": "answer"}.get(field, field)
