"""Replay step, equality: says whether two constants are the same, as Lean or the farm compares them.

Recent releases compare constants themselves. For others the farm compares all parts: names, numbers and marks
here, terms by Lean (``Expr.eqv``, equality up to the names of bound variables).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial

from farm_workers.binding import table
from farm_workers.binding.lean import Lean
from farm_workers.binding.objects import NAME_STRING, TRUE, field, members, tag, text, word
from farm_workers.replay.parts import GROUPS, HEADER, MARKS, NAME, NAMES, RULES, TERM, VALUES

#: The truth value in the result of a function of C, and the bytes of the number in a definition's hints.
_BYTE, _HINTS_BYTES = 0xFF, 4


def equality(lean: Lean) -> Callable[[int, int], bool]:
    """Return the function that compares two constants."""
    if not lean.has(table.SAME_CONSTANT):
        return partial(_same_constant, lean)
    same = lean.function(table.SAME_CONSTANT)
    return lambda one, other: same(one, other) == TRUE


def _same_constant(lean: Lean, one: int, other: int) -> bool:
    kind = tag(one)
    if kind != tag(other) or kind >= len(VALUES):
        return False
    ones, others = field(one, 0), field(other, 0)
    behind = 8 + 8 * len(VALUES[kind])
    marks = (ctypes.string_at(each + behind, MARKS[kind]) for each in (ones, others))
    return _same_parts(lean, VALUES[kind], ones, others) and next(marks) == next(marks)


def _same_parts(lean: Lean, kinds: tuple[int, ...], one: int, other: int) -> bool:
    return all(
        _same(lean, kind, field(one, number), field(other, number)) for number, kind in enumerate(kinds)
    )


def _same(lean: Lean, kind: int, one: int, other: int) -> bool:
    if kind == NAME:
        return _same_name(one, other)
    if kind == TERM:
        return bool(lean.runtime(table.SAME_TERM)(one, other) & _BYTE)
    if kind == HEADER:
        return _same_parts(lean, GROUPS[HEADER], one, other)
    if kind in (NAMES, RULES):
        return _same_list(lean, kind, list(members(one)), list(members(other)))
    return one == other or _same_hints(one, other)


def _same_list(lean: Lean, kind: int, ones: list[int], others: list[int]) -> bool:
    pairs = zip(ones, others, strict=False)
    if kind == NAMES:
        return len(ones) == len(others) and all(_same_name(*pair) for pair in pairs)
    return len(ones) == len(others) and all(_same_parts(lean, GROUPS[RULES], *pair) for pair in pairs)


def _same_hints(one: int, other: int) -> bool:
    """Compare the hints of two definitions, which are a number in a box where they are any."""
    if one & 1 or other & 1 or word(one) >> 32 != word(other) >> 32:
        return False
    return ctypes.string_at(one + 8, _HINTS_BYTES) == ctypes.string_at(other + 8, _HINTS_BYTES)


def _same_name(one: int, other: int) -> bool:
    while not (one & 1 or other & 1):
        if tag(one) != tag(other):
            return False
        last, its = field(one, 1), field(other, 1)
        if (text(last) != text(its)) if tag(one) == NAME_STRING else (last != its):
            return False
        one, other = field(one, 0), field(other, 0)
    return one == other
