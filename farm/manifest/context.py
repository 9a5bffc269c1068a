"""Manifest step, contexts: what no line may say in its `context`, whichever way it comes. Pure."""

from __future__ import annotations

import re
from typing import NamedTuple

_REFUSED = re.compile(r"[\t\r]")


class ContextFault(NamedTuple):
    """What is wrong with a context, and what to do about it."""

    problem: str
    remedy: str


def fault_of(context: str, header: str) -> ContextFault | None:
    """Return what is wrong with a line's context, beside its header; None when nothing is."""
    if not context:
        return None
    if header:
        return ContextFault(
            "stands beside a header",
            "give one: the context, which begins with its own imports, or the header",
        )
    found = _REFUSED.search(context)
    if found is None:
        return None
    at = found.start()
    line, column = context.count("\n", 0, at) + 1, at - (context.rfind("\n", 0, at) + 1)
    if found[0] == "\t":
        return ContextFault(
            f"contains a tab at line {line}, column {column}, which Lean refuses", "write spaces in its place"
        )
    return ContextFault(
        f"contains a carriage return at line {line}, column {column}", "end its lines with a line feed alone"
    )
