"""Audit step, the file: Lean's ``.olean`` format, one region of Lean objects behind a header.

Sources: ``src/library/module.cpp`` (struct ``olean_header``), ``src/runtime/compact.cpp`` and
``src/include/lean/lean.h`` of Lean 4, and files that Lean 4.35.0 wrote on Linux x86-64.

The file is read as little-endian words of 8 bytes; *place* is the index of an object's first word. That word
is the object's header: reference count (0 in a file), size in bytes (constructors; 1 for arrays and strings),
number of pointers, tag. A pointer is an address, an odd one is a boxed number. Lean writes an object after
all objects that it points to, and a pointer that does not point backwards is refused here: so reading meets
no cycle, ends, and stays within the file.
"""

from __future__ import annotations

import mmap
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: Bytes before the first object: header, base address, address of the root.
FIRST = 96
#: The default limit of visited objects.
BUDGET = 5_000_000
#: The most parts of a name and the most bytes of one part: Lean has no such bound, names that it writes keep
#: far within it, and beyond it names cost more than they are worth.
DEEPEST_NAME, LONGEST_PART = 256, 1 << 16
#: The words of a string or an array before its data.
_STRING_WORDS, _ARRAY_WORDS, _BIG_WORDS = 4, 3, 3
#: Up to here numbers are boxed; a big natural is larger.
_LARGEST_BOXED = (1 << 63) - 1


class MalformedOlean(Exception):
    """The file is not in Lean's format: says which object is wrong and at which byte."""

    def __init__(self, what: str, offset: int | None = None) -> None:
        super().__init__(what if offset is None else f"{what} at byte {offset}")
        self.what = what
        self.offset = offset


def header_of(tag: int, pointers: int, size: int) -> int:
    """Return the header word of a constructor object: its tag, its pointers, its size in bytes."""
    return tag << 56 | pointers << 48 | size << 32


_ARRAY = header_of(246, 0, 1)
_STRING = header_of(249, 0, 1)
_CONS = header_of(1, 2, 24)
_NAME_STRING = header_of(1, 2, 32)
_NAME_NUMBER = header_of(2, 2, 32)

#: A name from its root; numbers are numerals of the name, text is text however it looks.
Name = tuple[str | int, ...]


class Olean:
    """One file, as objects.

    Methods take the place of an object that holds a pointer and the number of that pointer, and return a
    *ref*: a place, or ``~n`` for the boxed number n. They raise `MalformedOlean` and nothing else.
    """

    def __init__(
        self, data: memoryview | bytes, budget: int = BUDGET, names: dict[int, Name] | None = None
    ) -> None:
        """Read a file; `names` are the known ones, by their places."""
        self.data = memoryview(data).cast("B") if len(data) else memoryview(b"")
        self.left = budget
        if len(self.data) < FIRST or bytes(self.data[:5]) != b"olean":
            raise MalformedOlean("no header", 0)
        self._header()
        self.words: memoryview[int] = self.data[: len(self.data) & ~7].cast("Q")
        self.base, address = self.words[10], self.words[11]
        if self.base & 7:
            raise MalformedOlean("base address is not aligned", 80)
        if address & 1:
            raise MalformedOlean("root is not an object", 88)
        #: Everything else lies before the root, for Lean writes it last.
        self.root = self.ref(address, len(self.words))
        self._strings: dict[int, str] = {}
        self._names: dict[int, Name] = {**(names or {}), ~0: ()}

    def _header(self) -> None:
        version, self.flags = self.data[5], self.data[6]
        if version != 2:
            raise MalformedOlean(f"format version {version} is not supported, only version 2", 5)
        if self.flags & ~1:
            raise MalformedOlean(f"flags {self.flags} are not known", 6)
        self.lean_version = self._padded(7, 33)
        self.git_hash = self._padded(40, 40)

    def start(self) -> bytes:
        """Return the header rebuilt from its parsed fields: format, flags, version, commit."""
        version, commit = self.lean_version.encode(), self.git_hash.encode()
        return b"olean" + bytes((2, self.flags)) + version.ljust(33, b"\0") + commit.ljust(40, b"\0")

    def _padded(self, start: int, size: int) -> str:
        text, _, padding = bytes(self.data[start : start + size]).partition(b"\0")
        if padding.strip(b"\0") or not text.isascii():
            raise MalformedOlean("text of the header is not padded ASCII", start)
        return text.decode("ascii")

    def spend(self, objects: int) -> None:
        """Count objects as visited; the budget is the most that may be."""
        self.left -= objects
        if self.left < 0:
            raise MalformedOlean("more objects than the audit visits")

    def ref(self, pointer: int, holder: int) -> int:
        """Return the ref of a pointer that was found in the object at a place."""
        if pointer & 1:
            return ~(pointer >> 1)
        offset = pointer - self.base
        if offset & 7 or not FIRST <= offset < holder << 3:
            raise MalformedOlean("pointer that does not point backwards", holder << 3)
        return offset >> 3

    def child(self, place: int, number: int) -> int:
        """Return the ref in a pointer of an object whose shape was checked."""
        return self.ref(self.words[place + 1 + number], place)

    def object(self, place: int, number: int) -> int:
        """Return the place that a pointer refers to, which must not be a boxed number."""
        found = self.child(place, number)
        if found < 0:
            raise MalformedOlean("number where an object is due", place << 3)
        return found

    def shaped(self, place: int, header: int) -> bool:
        """Return whether an object of a shape is at a place, and lies within the file."""
        return self.words[place] == header and self._fits(place, (header >> 32 & 0xFFFF) >> 3)

    def _fits(self, place: int, words: int) -> bool:
        return place + words <= len(self.words)

    def expect(self, place: int, header: int, what: str) -> None:
        """Raise unless there is an object of a shape at a place."""
        if place < 0 or not self.shaped(place, header):
            raise self.wrong(place, what)

    def wrong(self, ref: int, what: str) -> MalformedOlean:
        """Return the error for an unexpected object at a ref."""
        return MalformedOlean(f"no {what}", ref << 3 if ref >= 0 else None)

    def array(self, ref: int, what: str) -> range:
        """Return the words that an array's elements stand in."""
        if ref < 0 or self.words[ref] != _ARRAY or not self._fits(ref, _ARRAY_WORDS):
            raise self.wrong(ref, f"array of {what}")
        size, capacity = self.words[ref + 1], self.words[ref + 2]
        if size != capacity or not self._fits(ref, _ARRAY_WORDS + size):
            raise MalformedOlean(f"array of {what} with a wrong size", ref << 3)
        return range(ref + _ARRAY_WORDS, ref + _ARRAY_WORDS + size)

    def elements(self, ref: int, what: str) -> Iterator[int]:
        """Yield the refs in an array."""
        places = self.array(ref, what)
        self.spend(len(places))
        for word in places:
            yield self.ref(self.words[word], ref)

    def list(self, ref: int, what: str) -> list[int]:
        """Return the refs in a list."""
        found = []
        while ref != ~0:
            self.expect(ref, _CONS, f"list of {what}")
            self.spend(1)
            found.append(self.child(ref, 0))
            ref = self.child(ref, 1)
        return found

    def string(self, ref: int) -> str:
        """Return a string: bytes with the final zero, capacity, characters, UTF-8."""
        found = self._strings.get(ref)
        if found is None:
            found = self._strings[ref] = self._string(ref)
        return found

    def _string(self, ref: int) -> str:
        self.spend(1)
        if ref < 0 or self.words[ref] != _STRING or not self._fits(ref, _STRING_WORDS):
            raise self.wrong(ref, "string")
        size, capacity, length = self.words[ref + 1 : ref + _STRING_WORDS]
        start = (ref + _STRING_WORDS) << 3
        if not 0 < size == capacity or size > len(self.data) - start or self.data[start + size - 1]:
            raise MalformedOlean("string with a wrong size", ref << 3)
        self.spend(size >> 10)
        try:
            text = str(self.data[start : start + size - 1], "utf-8")
        except UnicodeDecodeError:
            raise MalformedOlean("string that is not UTF-8", ref << 3) from None
        if len(text) != length:
            raise MalformedOlean("string with a wrong number of characters", ref << 3)
        return text

    def nat(self, ref: int) -> int:
        """Return a natural number, boxed or big."""
        return ~ref if ref < 0 else self._big(ref)

    def _big(self, place: int) -> int:
        """Return a big natural: GMP's ``_mp_alloc``, ``_mp_size``, ``_mp_d``, and the limbs right behind."""
        self.spend(1)
        words = self.words
        if words[place] & 0xFFFF0000FFFFFFFF != 250 << 56 or not self.flags or not self._fits(place, 3):
            raise self.wrong(place, "natural number")
        limbs = words[place + 1] >> 32
        if words[place + 1] & 0xFFFFFFFF != limbs or not 0 < limbs < 1 << 31:
            raise MalformedOlean("big number with a wrong size", place << 3)
        start = place + _BIG_WORDS
        if words[place + 2] != self.base + (start << 3) or not self._fits(start, limbs):
            raise MalformedOlean("big number whose digits are elsewhere", place << 3)
        self.spend(limbs >> 7)
        value = int.from_bytes(self.data[start << 3 : (start + limbs) << 3], "little")
        if not words[start + limbs - 1] or value <= _LARGEST_BOXED:
            raise MalformedOlean("big number that is not in its shortest form", place << 3)
        return value

    def number(self, ref: int) -> int:
        """Return a small natural number, such as how many parameters there are."""
        if ref >= 0:
            raise self.wrong(ref, "small number")
        return ~ref

    def name(self, ref: int) -> Name:
        """Return a name; its stored hash is not looked at."""
        names = self._names
        found = names.get(ref)
        if found is not None:
            return found
        chain = []
        while ref not in names:
            chain.append(ref)
            if ref < 0 or len(chain) > DEEPEST_NAME:
                raise self.wrong(ref, f"name of at most {DEEPEST_NAME} parts")
            ref = self._prefix(ref)
        found = names[ref]
        self.spend(len(chain))
        if len(chain) + len(found) > DEEPEST_NAME:
            raise self.wrong(chain[0], f"name of at most {DEEPEST_NAME} parts")
        for place in reversed(chain):
            found = names[place] = (*found, self._part(place))
        return found

    def _prefix(self, place: int) -> int:
        if not self.shaped(place, _NAME_STRING) and not self.shaped(place, _NAME_NUMBER):
            raise self.wrong(place, "name")
        return self.child(place, 0)

    def _part(self, place: int) -> str | int:
        part: str | int
        if self.words[place] == _NAME_NUMBER:
            part = self.nat(self.child(place, 1))
            long = part.bit_length() > 64
        else:
            part = self.string(self.child(place, 1))
            long = len(part) > LONGEST_PART
        if long:
            raise MalformedOlean("name with a part that is too long", place << 3)
        return part

    def flag(self, place: int, pointers: int, number: int) -> bool:
        """Return a truth value of the scalars behind the pointers of an object."""
        value = self.scalar(place, pointers, number)
        if value > 1:
            raise MalformedOlean("truth value that is neither", place << 3)
        return bool(value)

    def scalar(self, place: int, pointers: int, number: int) -> int:
        """Return one of the first eight bytes behind the pointers of an object."""
        return self.words[place + 1 + pointers] >> 8 * number & 0xFF


@contextmanager
def opened(source: Path | bytes, budget: int = BUDGET) -> Iterator[Olean]:
    """Open a file, or the bytes of one.

    The objects must not be used after the end of the block. The file is mapped, so no process may shorten it
    inside the block. Raises `MalformedOlean`, and OSError for a file that is missing or cannot be read.
    """
    if sys.byteorder != "little":
        raise NotImplementedError("only machines that are little-endian can read these files")
    if isinstance(source, bytes):
        yield Olean(source, budget)
        return
    with memoryview(_mapped(source)) as view:
        yield Olean(view, budget)


def _mapped(source: Path) -> mmap.mmap:
    if source.exists() and not source.is_file():
        raise MalformedOlean("not a plain file")
    with source.open("rb") as file:
        try:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError as error:  # an empty file; an OSError is the machine's
            raise MalformedOlean(f"the file cannot be mapped: {error}") from error
