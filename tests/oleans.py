"""Compiled modules made by hand, for what Lean itself would never write."""

from __future__ import annotations

import struct
from collections.abc import Sequence

BASE = 0x7F00_0000_0000
Name = tuple[str | int, ...]

HEADER = b"olean\x02\x01" + b"4.35.0".ljust(33, b"\0") + b"eb6cafb7".ljust(40, b"\0")
AXIOM, DEFINITION, THEOREM, OPAQUE, QUOTIENT, INDUCTIVE, CONSTRUCTOR, RECURSOR = range(8)
NOTHING = 1


def box(number: int) -> int:
    """Return the pointer that is a number."""
    return number << 1 | 1


class Writer:
    """Puts objects behind each other; every method returns a pointer."""

    def __init__(self) -> None:
        self.data = bytearray(96)
        self._names: dict[Name, int] = {(): box(0)}
        self._constants: list[tuple[int, int]] = []

    @property
    def next(self) -> int:
        """The pointer that the next object will have."""
        return BASE + len(self.data)

    def put(self, data: bytes) -> int:
        pointer = self.next
        self.data += data + bytes(-len(data) % 8)
        return pointer

    def make(self, tag: int, *pointers: int, scalars: bytes = b"") -> int:
        scalars += bytes(-len(scalars) % 8)
        size = 8 + 8 * len(pointers) + len(scalars)
        head = struct.pack("<iHBB", 0, size, len(pointers), tag)
        return self.put(head + struct.pack(f"<{len(pointers)}Q", *pointers) + scalars)

    def array(self, pointers: Sequence[int], size: int | None = None, capacity: int | None = None) -> int:
        count = len(pointers)
        sizes = count if size is None else size, count if capacity is None else capacity
        return self.put(struct.pack(f"<iHBBQQ{count}Q", 0, 1, 0, 246, *sizes, *pointers))

    def string(self, text: str | bytes, length: int | None = None, size: int | None = None) -> int:
        data = (text.encode() if isinstance(text, str) else text) + b"\0"
        sizes = len(data) if size is None else size
        length = len(text) if length is None else length
        return self.put(struct.pack("<iHBBQQQ", 0, 1, 0, 249, sizes, sizes, length) + data)

    def big(self, number: int, limbs: int | None = None, digits: int | None = None) -> int:
        count = (number.bit_length() + 63) // 64 if limbs is None else limbs
        data = number.to_bytes((number.bit_length() + 63) // 64 * 8, "little")
        at = self.next + 24 if digits is None else digits
        return self.put(struct.pack("<iHBBiiQ", 0, 24 + len(data), 0, 250, count, count, at) + data)

    def list(self, pointers: Sequence[int]) -> int:
        found = box(0)
        for pointer in reversed(pointers):
            found = self.make(1, pointer, found)
        return found

    def name(self, text: str) -> int:
        return self.named(tuple(text.split(".")))

    def named(self, name: Name) -> int:
        for size in range(1, len(name) + 1):
            if name[:size] not in self._names:
                part = name[size - 1]
                number = isinstance(part, int)
                pointer = box(part) if isinstance(part, int) else self.string(part)
                self._names[name[:size]] = self.make(
                    2 if number else 1, self._names[name[: size - 1]], pointer, scalars=bytes(8)
                )
        return self._names[name]

    # Expressions

    def prop(self) -> int:
        return self.make(3, box(0), scalars=bytes(8))

    def const(self, text: str, levels: Sequence[int] = ()) -> int:
        return self.make(4, self.name(text), self.list(levels), scalars=bytes(8))

    def app(self, function: int, argument: int) -> int:
        return self.make(5, function, argument, scalars=bytes(8))

    def literal(self, value: int, tag: int = 0) -> int:
        return self.make(9, self.make(tag, value), scalars=bytes(8))

    def bound(self, kind: int, name: str, domain: int, body: int, info: int = 0) -> int:
        return self.make(kind, self.name(name), domain, body, scalars=bytes(8) + bytes([info]))

    def marked(self, expression: int) -> int:
        return self.make(10, box(0), expression, scalars=bytes(8))

    # Constants

    def header(self, text: str, type_: int, parameters: Sequence[str] = ()) -> int:
        return self.make(0, self.name(text), self.list([self.name(each) for each in parameters]), type_)

    def declare(self, kind: int, text: str, value: int) -> None:
        """Declare a constant under a name, `value` being what its info holds."""
        self._constants.append((self.name(text), self.make(kind, value)))

    def axiom(self, text: str, type_: int, unsafe: int = 0) -> None:
        self.declare(AXIOM, text, self.make(0, self.header(text, type_), scalars=bytes([unsafe])))

    def theorem(self, text: str, type_: int, value: int, parameters: Sequence[str] = ()) -> None:
        header = self.header(text, type_, parameters)
        self.declare(THEOREM, text, self.make(0, header, value, self.list([self.name(text)])))

    def definition(self, text: str, type_: int, value: int, safety: int = 1) -> None:
        header, names = self.header(text, type_), self.list([self.name(text)])
        held = self.make(0, header, value, box(0), names, scalars=bytes([safety]))
        self.declare(DEFINITION, text, held)

    def imported(self, text: str, marks: bytes = b"\0\1\0") -> int:
        return self.make(0, self.name(text), scalars=marks)

    def module(
        self,
        imports: Sequence[int] = (),
        *,
        names: int | None = None,
        infos: int | None = None,
        entries: Sequence[int] = (),
        is_module: int = 0,
    ) -> bytes:
        """Write the root and return the file."""
        fields = (
            self.array(imports),
            self.array([name for name, _ in self._constants]) if names is None else names,
            self.array([info for _, info in self._constants]) if infos is None else infos,
            self.array([]),
            self.array(entries),
        )
        return self.file(self.make(0, *fields, scalars=bytes([is_module])))

    def file(self, root: int, *, header: bytes = HEADER, base: int = BASE) -> bytes:
        self.data[:96] = header + struct.pack("<QQ", base, root)
        return bytes(self.data)
