r"""Audit step, names: writes a name as text, and parses it again.

A part of a name that is no identifier is written between ``«`` and ``»``, as Lean does; a numeral is written
as one, so ``a.«1»`` and ``a.1`` are two names. Within the quotes, backslashes, ``»`` and control characters
are written as ``\u`` and four digits, which Lean does not, so that every name has a spelling of its own on
one line.
"""

from __future__ import annotations

import re

from farm_workers.audit.olean import Name

_SPECIAL = re.compile(r"[\\»\x00-\x1f\x7f-\x9f\u2028\u2029]")
_PART = re.compile(r"«([^»]*)»|([^.«»]+)")
_ESCAPE = re.compile(r"\\u([0-9a-f]{4})")
#: The most characters of a name that are shown to a reader.
_LONGEST_SHOWN = 1000


def dotted(name: Name) -> str:
    """Return a name in writing; no two names are written alike."""
    return ".".join(map(_written, name)) or "[anonymous]"


def shown(name: Name) -> str:
    """Return a name for a reader, truncated if it is very long."""
    text = dotted(name)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def _written(part: str | int) -> str:
    if isinstance(part, int):
        return str(part)
    if part and _is_plain(part):
        return part
    return "«" + _SPECIAL.sub(_escape, part) + "»"


def _escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def _is_plain(part: str) -> bool:
    return not part[0].isdigit() and all(c.isalnum() or c in "_'!?" for c in part)


def parsed(text: str) -> Name:
    """Return the name of a written form; raises ValueError for a malformed one."""
    if text == "[anonymous]":
        return ()
    parts: list[str | int] = []
    position = 0
    while True:
        found = _PART.match(text, position)
        if found is None:
            raise ValueError(f"{text!r} is not a name")
        parts.append(_part(*found.groups()))
        position = found.end()
        if position == len(text):
            return tuple(parts)
        if text[position] != ".":
            raise ValueError(f"{text!r} is not a name")
        position += 1


def _part(quoted: str | None, plain: str | None) -> str | int:
    if quoted is not None:
        return _ESCAPE.sub(lambda found: chr(int(found[1], 16)), quoted)
    assert plain is not None  # noqa: S101 - one of the two matched
    return int(plain) if plain.isascii() and plain.isdigit() else plain
