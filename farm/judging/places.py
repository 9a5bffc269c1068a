"""Verdict step, places: where in a program a sentence points, and where that is in the line's fields.

A verdict is of a program, and several lines can share it; the fields that the program was made of differ
from line to line. So a stored sentence names the program's position, and an answer about a line the line's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """A position of a program, line from 1 and column from 0, that a sentence names from `start` on."""

    line: int
    column: int
    start: int


#: Returns the field, line and column that a line and column of a program come from; None for none of them.
Locate = Callable[[int, int], tuple[str, int, int] | None]


def at_line(line: int, column: int) -> str:
    """Return the words for a position in a program, "" where there is no position."""
    return "" if line == 0 else f" at line {line}, column {column}"


def moved(detail: str, place: Place | None, locate: Locate) -> str:
    """Return a verdict's sentence with its position in a field, and the program's beside it.

    It stays as it is where it has no position, or where both are the same.
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
    """Return a position of a program in short, in its field and, unless that is the same, in the program."""
    found = locate(line, column)
    if found is None:
        return f"program {line}:{column}" if line else "no place"
    field, own_line, own_column = found
    own = f"{origin(field)} {own_line}:{own_column}"
    return own if (own_line, own_column) == (line, column) else f"{own} (program {line}:{column})"


def origin(field: str) -> str:
    """Return the name of a field in answers: what a model wrote is its answer, whole or not."""
    return {"generation": "answer", "predicted_proof": "answer"}.get(field, field)
