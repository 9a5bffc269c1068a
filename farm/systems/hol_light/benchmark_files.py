"""Datasets step, files of HOL Light: reads the term between the backquotes."""

from __future__ import annotations

from collections.abc import Mapping

from farm.assembly.faults import Unstated


def term(text: str, _name: str) -> tuple[str, Mapping[str, object]]:
    """Return the one term of a file with its backquotes, and no further fields; raises Unstated.

    The text around it is not needed, and is no valid OCaml if a name has dashes.
    """
    parts = text.split("`")
    if len(parts) != 3:
        raise Unstated(f"holds {len(parts) // 2} terms between backquotes instead of one")
    inside = parts[1].strip()
    if not inside:
        raise Unstated("its term is empty")
    return f"`{inside}`", {}
