"""Seal step, image: writes a module for the kernel object by object, in Lean's format of files and memory.

Every object has the reference count 0, as all objects of a file, so Lean never frees one. Names, levels and
terms contain a word that Lean derives (hash, flags): Lean's own constructors compute it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

from farm_workers.audit.olean import FIRST, MalformedOlean, Name, header_of
from farm_workers.audit.terms import APP, CONST, LEVEL_SUCC
from farm_workers.binding import table
from farm_workers.binding.lean import Lean
from farm_workers.binding.objects import NOTHING
from farm_workers.seal.memory import WORDS

_ARRAY, _STRING, _BIG = header_of(246, 0, 1), header_of(249, 0, 1), 250 << 56
_CONS = header_of(1, 2, 24)
_NAME_STRING, _NAME_NUMBER = header_of(1, 2, 32), header_of(2, 2, 32)
#: Functions that write up to nine words, by their number.
_WRITERS = tuple(struct.Struct(f"<{count}Q").pack_into for count in range(10))
_LARGEST_BOXED = (1 << 63) - 1


class ModuleImage:
    """A sequence of objects from an address on; methods append an object and return its address."""

    def __init__(self, lean: Lean, base: int, memory: memoryview) -> None:
        self.base, self.memory = base, memory
        self.words: memoryview[int] = memory.cast("Q")
        self.at, self._most = FIRST >> 3, len(memory) >> 3
        self._string_name = lean.runtime(table.NAME_STRING)
        self._number_name = lean.runtime(table.NAME_NUMBER)
        self._const, self._app = lean.runtime(table.CONST), lean.runtime(table.APP)
        self._succ = lean.runtime(table.LEVEL_SUCC)
        self._strings: dict[str, int] = {}
        self.names: dict[Name, int] = {(): NOTHING}

    def put(self, *words: int) -> int:
        """Put an object that consists of these words."""
        at, count = self.at, len(words)
        if at + count >= self._most:
            raise MalformedOlean("a module that would be larger than the file that it comes from")
        if count < len(_WRITERS):
            _WRITERS[count](self.memory, at << 3, *words)
        else:
            struct.pack_into(f"<{count}Q", self.memory, at << 3, *words)
        self.at = at + count
        return self.base + (at << 3)

    def _room(self, size: int) -> int:
        """Reserve a number of bytes, rounded up to whole words, and return their offset."""
        at = self.at
        if at + (size >> 3) + 1 >= self._most:
            raise MalformedOlean("a module that would be larger than the file that it comes from")
        self.at += size + 7 >> 3
        return at << 3

    def string(self, text: str) -> int:
        """Put a string, once for each text."""
        found = self._strings.get(text)
        if found is None:
            data = text.encode() + b"\0"
            found = self._strings[text] = self.put(_STRING, len(data), len(data), len(text))
            start = self._room(len(data))
            self.memory[start : start + len(data)] = data
        return found

    def nat(self, number: int) -> int:
        """Put a natural number; a small one is no object."""
        if number <= _LARGEST_BOXED:
            return number << 1 | 1
        limbs = number.bit_length() + 63 >> 6
        digits = self.base + (self.at + 3 << 3)
        # An object's size has 16 bits; for a longer number Lean reads the number's own size instead.
        found = self.put(_BIG | (24 + 8 * limbs & 0xFFFF) << 32, limbs << 32 | limbs, digits)
        start = self._room(8 * limbs)
        self.memory[start : start + 8 * limbs] = number.to_bytes(8 * limbs, "little")
        return found

    def name(self, name: Name) -> int:
        """Put a name, once."""
        found = self.names.get(name)
        if found is None:
            prefix, part = self.name(name[:-1]), name[-1]
            if isinstance(part, str):
                header, held, make = _NAME_STRING, self.string(part), self._string_name
            else:
                header, held, make = _NAME_NUMBER, self.nat(part), self._number_name
            word = WORDS[(make(prefix, held) >> 3) + 3]
            found = self.names[name] = self.put(header, prefix, held, word)
        return found

    def array(self, elements: Sequence[int]) -> int:
        """Put an array."""
        return self.put(_ARRAY, len(elements), len(elements), *elements)

    def list(self, elements: Iterable[int]) -> int:
        """Put a list."""
        found = NOTHING
        for element in reversed(list(elements)):
            found = self.put(_CONS, element, found)
        return found

    def successor(self, level: int) -> int:
        """Put the successor of a level."""
        return self.put(LEVEL_SUCC, level, WORDS[(self._succ(level) >> 3) + 2])

    def const(self, name: Name, levels: int = NOTHING) -> int:
        """Put a constant with its levels."""
        held = self.name(name)
        return self.put(CONST, held, levels, WORDS[(self._const(held, levels) >> 3) + 3])

    def app(self, function: int, *arguments: int) -> int:
        """Put a function applied to arguments."""
        for argument in arguments:
            word = WORDS[(self._app(function, argument) >> 3) + 3]
            function = self.put(APP, function, argument, word)
        return function

    def placed(self) -> dict[int, Name]:
        """Return the names by their places in the file."""
        return {address - self.base >> 3: name for name, address in self.names.items()}

    def finish(self, root: int, start: bytes) -> memoryview:
        """Write the file's header before the objects, and return the whole file as a view of the memory."""
        self.memory[: len(start)] = start
        self.words[10], self.words[11] = self.base, root
        return self.memory[: self.at << 3]
