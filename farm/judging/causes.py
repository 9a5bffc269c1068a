"""Verdict step, causes: chooses the error that is named first, since it may have caused the others. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from farm.judging.error_kinds import ErrorKind, error_kind
from farm.judging.messages import cause
from farm.judging.report import Message

#: The kinds of errors by which Lean says that it cannot read a text on from a place.
_UNREADABLE = frozenset({ErrorKind.SYNTAX, ErrorKind.UNKNOWN_TACTIC})


def named(found: Sequence[Message]) -> Message:
    """Return the error that a sentence names, from errors in the order of their positions.

    That is the cause that `farm.judging.messages.cause` finds, unless Lean could not read the text directly
    behind it: Lean then elaborates a part of a term or proof, whose errors follow from that.
    """
    chosen = cause(found)
    if error_kind(chosen) in _UNREADABLE:
        return chosen
    behind = next((each for each in found if _is_behind(each, chosen)), chosen)
    return behind if error_kind(behind) in _UNREADABLE else chosen


def counted(found: Sequence[Message]) -> str:
    """Return how many errors there are besides the named one, in parentheses; "" if there are none."""
    return f" (and {len(found) - 1} more)" if len(found) > 1 else ""


def _is_behind(error: Message, chosen: Message) -> bool:
    """Return whether an error begins where the range of another one ends, or on the next line."""
    if chosen.end_line is None or chosen.end_column is None:
        return False
    end = chosen.end_line, chosen.end_column
    return end <= (error.line, error.column) and error.line <= chosen.end_line + 1
