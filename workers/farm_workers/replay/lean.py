"""Replay step, Lean: calls Lean's compiled functions, and reads its objects, through ctypes."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator

#: The versions of Lean whose functions and objects are known to be as they are taken here.
TRIED = frozenset({(4, 35)})
#: Lean's `[]`, `none`, `#[]` as a list, `false` and 0; and Lean's `true`.
NOTHING = FALSE = 1
TRUE = 3
_NAME_STRING = 1


class LeanError(Exception):
    """An error of Lean, or a fault of its shared library."""


#: A function of Lean: words in, a word out.
Call = Callable[..., int]


class Lean:
    """Lean's shared library in this process; only once, and without a way back."""

    def __init__(self, library: str, sysroot: str = "/dev/null") -> None:
        """Load Lean; `sysroot` is its installation, whose modules are found besides those of LEAN_PATH."""
        self._library = ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
        self._functions: dict[tuple[str, int], Call] = {}
        self.call("lean_initialize")
        # Other versions take other arguments: nothing more is called before it is known to be a tried one.
        version = self.constant("l_Lean_version_major") >> 1, self.constant("l_Lean_version_minor") >> 1
        if version not in TRIED:
            raise LeanError(f"Lean {version[0]}.{version[1]} is not a version that the replay supports")
        self.result(self.call("initialize_Lean_Replay", 1))
        self.call("lean_io_mark_end_initialization")
        self.result(self.call("l_Lean_initSearchPath___boxed", self.string(sysroot), NOTHING))

    def call(self, name: str, *words: int) -> int:
        """Call a function."""
        return self.function(name, len(words))(*words)

    def function(self, name: str, arguments: int) -> Call:
        """Return a function whose arguments, this many, and result are words."""
        known = self._functions.get((name, arguments))
        if known is None:
            found = self._library[name]
            found.restype, found.argtypes = ctypes.c_size_t, [ctypes.c_size_t] * arguments
            known = self._functions[name, arguments] = found
        return known

    def constant(self, name: str) -> int:
        """Return the word that a constant of the library has for its value."""
        return ctypes.c_size_t.in_dll(self._library, name).value

    def result(self, outcome: int) -> int:
        """Return the value of an action; raises LeanError with the action's error message."""
        if tag(outcome) == 0:
            return field(outcome, 0)
        raise LeanError(text(self.call("lean_io_error_to_string", field(outcome, 0))))

    def string(self, content: str) -> int:
        """Make a string."""
        held = ctypes.create_string_buffer(os.fsencode(content))
        return self.call("lean_mk_string", ctypes.addressof(held))


def word(address: int) -> int:
    """Return the word at an address."""
    return ctypes.c_size_t.from_address(address).value


def tag(place: int) -> int:
    """Return which constructor made an object."""
    return word(place) >> 56


def field(place: int, number: int) -> int:
    """Return a field of an object; behind the pointers come the scalars, as words of eight bytes."""
    return word(place + 8 + 8 * number)


def elements(place: int) -> list[int]:
    """Return the elements of an array: size, capacity, then these."""
    size = field(place, 0)
    return list((ctypes.c_size_t * size).from_address(place + 24)) if size else []


def members(place: int) -> Iterator[int]:
    """Yield the elements of a list."""
    while place != NOTHING:
        yield field(place, 0)
        place = field(place, 1)


def text(place: int) -> str:
    """Return a string: size with the final zero, capacity, characters, then the bytes."""
    return ctypes.string_at(place + 32, field(place, 0) - 1).decode(errors="replace")


def dotted(place: int) -> str:
    """Return a name as people read it."""
    parts: list[str] = []
    while place != NOTHING:
        part = field(place, 1)
        parts.append(text(part) if tag(place) == _NAME_STRING else str(part >> 1))
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
