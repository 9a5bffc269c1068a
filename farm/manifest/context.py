"""Manifest step, contexts: finds the texts that no `context` of a line may contain. Pure."""

from __future__ import annotations

import re
from typing import NamedTuple

_REFUSED = re.compile(r"[\t\r]")


class ContextFault(NamedTuple):
    """A fault of a context, and its remedy."""

    problem: str
    remedy: str


def fault_of(context: str, header: str) -> ContextFault | None:
    """Return the fault of a line's context, beside its header; None if it has none."""
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
