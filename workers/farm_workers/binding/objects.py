"""Binding step, objects: reads objects of Lean's runtime in this process, as ``lean.h`` lays them out."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

#: Lean's `[]`, `none`, `false` and 0; and Lean's `true`.
NOTHING = FALSE = 1
TRUE = 3
#: Which constructor of `Lean.Name` ends in a text.
NAME_STRING = 1
#: An empty tree of the standard library: its only constructor without fields is the second.
EMPTY_TREE = 3
CLOSURE_TAG, CLOSURE_BYTES = 245, 24


class LeanError(Exception):
    """An error of Lean, or a fault of its shared library."""


def word(address: int) -> int:
    """Return the word at an address."""
    return ctypes.c_size_t.from_address(address).value


def put(address: int, value: int) -> None:
    """Write a word to an address."""
    ctypes.c_size_t.from_address(address).value = value


def tag(place: int) -> int:
    """Return which constructor made an object."""
    return word(place) >> 56


def number_of(place: int) -> int:
    """Return the number of a value's constructor, which may be one without fields."""
    return place >> 1 if place & 1 else tag(place)


def field(place: int, number: int) -> int:
    """Return a pointer of an object, or the value that a task or a reference holds, its first."""
    return word(place + 8 + 8 * number)


def set_field(place: int, number: int, value: int) -> None:
    """Write a pointer of an object."""
    put(place + 8 + 8 * number, value)


def boxed(number: int) -> int:
    """Return a small natural number, or a constructor without fields, as a word of Lean's."""
    return number << 1 | 1


def elements(place: int) -> list[int]:
    """Return the elements of an array: size, capacity, then these."""
    size = field(place, 0)
    return list((ctypes.c_size_t * size).from_address(place + 24)) if size else []


def members(place: int) -> Iterator[int]:
    """Yield the elements of a list."""
    while place != NOTHING:
        yield field(place, 0)
        place = field(place, 1)


def text(place: int, most: int | None = None) -> str:
    """Return a string, or its first bytes: size with the final zero, capacity, characters, then the bytes."""
    size = field(place, 0) - 1
    return ctypes.string_at(place + 32, size if most is None else min(size, most)).decode(errors="replace")


def dotted(place: int) -> str:
    """Return a name as people read it."""
    parts: list[str] = []
    while place != NOTHING:
        part = field(place, 1)
        parts.append(text(part) if tag(place) == NAME_STRING else str(part >> 1))
        place = field(place, 0)
    return ".".join(reversed(parts))


def shared(place: int) -> int:
    """Count one more reference to an object that is kept while it is given away; return it."""
    if place & 1:
        return place  # a number, or a constructor without fields
    count = ctypes.c_int32.from_address(place)
    if count.value:  # negative where threads share it, 0 where it is never freed
        count.value += 1 if count.value > 0 else -1
    return place
