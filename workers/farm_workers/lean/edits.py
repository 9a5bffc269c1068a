"""Lean step, edits: replaces parts of a text at places that Lean told. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

#: The value of a theorem that is stated and not proved.
SORRY = ":= sorry"


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class Edit:
    """A part of a text, from offset to offset, and the text in its place."""

    start: int
    end: int
    text: str = ""


def edited(text: str, edits: Iterable[Edit]) -> str:
    """Return a text with edits that do not overlap."""
    parts, at = list[str](), 0
    for each in sorted(edits):
        parts += [text[at : each.start], each.text]
        at = each.end
    return "".join([*parts, text[at:]])
