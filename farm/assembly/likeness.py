"""Assembly step, likeness: compares two candidate programs of one answer, to drop a duplicate. Pure."""

from __future__ import annotations

from collections.abc import Callable

from farm.lean_text.scanner import words

#: The longest differing parts of two programs, in characters, that are compared as tokens.
_LONGEST_COMPARED = 1 << 14


def is_same(one: str, other: str, above: int) -> bool:
    """Return whether two programs that end in the same proof have the same tokens before it.

    Both begin with the same `above` characters.
    """
    start = _shared_start(one, other, above)
    end = min(_shared_end(one, other), len(one) - start, len(other) - start)
    mine, others = one[start : len(one) - end], other[start : len(other) - end]
    if max(len(mine), len(others)) > _LONGEST_COMPARED:
        return False
    return mine.split() == others.split() or words(mine) == words(others)


def _shared_start(one: str, other: str, least: int) -> int:
    """Return the start of the first line in which two texts differ, `least` or more."""
    most = _most(lambda length: one.startswith(other[least:length], least), least, min(len(one), len(other)))
    return max(least, one.rfind("\n", 0, most) + 1)


def _shared_end(one: str, other: str) -> int:
    """Return the length of the common end of two texts, from its first whole line on."""
    end = _most(lambda length: one.endswith(other[len(other) - length :]), 0, min(len(one), len(other)))
    line = one.find("\n", len(one) - end)
    return 0 if line < 0 else len(one) - line


def _most(holds: Callable[[int], bool], least: int, most: int) -> int:
    """Return the greatest number from `least` to `most` for which a monotone condition holds."""
    while least < most:
        half = (least + most + 1) // 2
        if holds(half):
            least = half
        else:
            most = half - 1
    return least
