"""Mending step, suggestions: reads the texts that a message of Lean's suggests. Pure.

Any program can print such a message: each text is only tried, and kept if the proof with it is proved.
"""

from __future__ import annotations

import re
from textwrap import dedent

_BEGIN = re.compile(r"Try (?:this|these):[ \n]", re.ASCII)
#: Recent releases put a mark before each suggestion, two spaces further right than the rest of its lines.
_MARK = re.compile(r"^[ ]*(?:\[\w{1,20}\]|[•·-])[ ]", re.ASCII | re.MULTILINE)
_MOST, _MOST_TEXT = 8, 1 << 14


def suggested(message: str) -> list[str]:
    """Return the texts that a message suggests, at most eight; its words may be anybody's."""
    if len(message) > _MOST_TEXT or not (begin := _BEGIN.match(message)):
        return []
    parts = _MARK.split(message[begin.end() :])
    texts = (_text(each) for each in (parts if len(parts) == 1 else parts[1:])[:_MOST])
    return [each for each in texts if each]


def _text(part: str) -> str:
    """Return a suggestion; its lines after the first keep their depth below each other."""
    first, line, rest = part.strip("\n").partition("\n")
    return f"{first.strip()}{line}{dedent(rest)}".strip()
