"""Verdict step, places: writes positions of a program into sentences, and moves them to a person's own text.

A verdict is of a program, and several lines can share it; what the program was made of differs from line to
line. So a stored sentence has the program's position, and whoever tells it of a line moves that.
"""

from __future__ import annotations

import re
from collections.abc import Callable

#: The sentences of `farm.judging.verdict` that have a position; only the policy quotes a text before it.
_PLACED = re.compile(
    r"((?:Error|A declaration|Lean's own (?:memory|heartbeat) limit stopped the program"
    r"|The program contains (?:a NUL character|the lone surrogate U\+[0-9A-F]{4})"
    r"|The policy does not allow .*)) at line ([0-9]{1,10}), column ([0-9]{1,10})(?=[:. ])"
)

#: Returns the field, line and column that a line and column of a program come from; None for none of them.
Locate = Callable[[int, int], tuple[str, int, int] | None]


def at_line(line: int, column: int) -> str:
    """Return the words for a position in a program, "" where there is no position."""
    return "" if line == 0 else f" at line {line}, column {column}"


def moved(detail: str, locate: Locate) -> str:
    """Return a verdict's sentence with its position in a field, and the program's beside it.

    It stays as it is where it has no position, or where both are the same.
    """
    found = _PLACED.match(detail)
    if found is None:
        return detail
    words, line, column = found[1], int(found[2]), int(found[3])
    place = locate(line, column)
    in_program = f"line {line}, column {column} of the program"
    if place is None:
        return f"{words} at {in_program}{detail[found.end() :]}"
    field, own_line, own_column = place
    if (own_line, own_column) == (line, column) and field == "predicted_proof":
        return detail
    own = f"line {own_line}, column {own_column} of the {_SAID.get(field, field)}"
    return f"{words} at {own} ({in_program}){detail[found.end() :]}"


#: How sentences name a field; the others by their own names.
_SAID = {"generation": "answer", "predicted_proof": "answer"}
