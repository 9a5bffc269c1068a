"""Makes programs that have Lean print the types of names, and reads the types in Lean's messages. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from farm.client.results import Message, Result

_PART = r"(?:«[^«»\n\r]+»|[^\W\d][\w'!?]*)"
_NAME = re.compile(rf"{_PART}(?:\.{_PART})*")
_LONGEST_NAME = 500
#: A longer type is cut: it would take the room of the others.
_LONGEST_TYPE = 2000


def is_name(text: str) -> bool:
    """Return whether a text is one name of Lean's and nothing else, so that it can stand in a program."""
    return len(text) <= _LONGEST_NAME and _NAME.fullmatch(text) is not None


def program(header: str, commands: Sequence[str]) -> str:
    """Return a program with one command on each line after its header."""
    return "\n".join([header.rstrip("\n"), *commands, ""])


def answers(header: str, count: int, result: Result) -> list[str | None]:
    """Return Lean's answer to each command of a `program`, None for one with an error or no answer."""
    first = _lines(header) + 1
    found: list[str | None] = [None] * count
    for each in result.messages:
        place = _line(each) - first
        if 0 <= place < count and each.severity == "information":
            found[place] = each.text if len(each.text) <= _LONGEST_TYPE else each.text[:_LONGEST_TYPE] + "…"
    return found


def header_fault(header: str, result: Result) -> str:
    """Return the detail of a result if Lean reports an error in the header of its `program`, or else ""."""
    errors = (each for each in result.messages if each.severity == "error")
    return result.detail if any(_line(each) <= _lines(header) for each in errors) else ""


def _lines(header: str) -> int:
    return header.rstrip("\n").count("\n") + 1


def _line(message: Message) -> int:
    place = message.program.line if message.program else message.line
    return place or 0
