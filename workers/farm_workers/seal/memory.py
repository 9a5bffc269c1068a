"""Seal step, memory: all of the process's memory as words, and a place of our own in it with a fixed address.

A module that is built where its file says that it belongs needs no second copy: its bytes in memory are the
bytes of the file, and they are the same on every machine.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

#: Every word of the address space by its address / 8; touching one that is not mapped ends the process.
WORDS: memoryview[int] = (
    memoryview((ctypes.c_uint64 * (1 << 44)).from_address(0)).cast("B").cast("Q")  # 47 bits of addresses
)

#: Where a module may lie, tried in this order. Lean spreads its own modules over a thousand times as much;
#: where one of them has taken the first place, it has on all machines with this library.
_BASES = tuple(0x20_0000_0000 + number * 0x8_0000_0000 for number in range(8))
_READ_WRITE = 1 | 2
_PRIVATE, _ANONYMOUS, _NORESERVE, _FIXED_NOREPLACE = 0x02, 0x20, 0x4000, 0x100000

_LIBC = ctypes.CDLL(None)
_MAP, _UNMAP = _LIBC.mmap, _LIBC.munmap
_MAP.restype = _UNMAP.restype = ctypes.c_size_t
_MAP.argtypes = [ctypes.c_size_t, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_ssize_t]
_UNMAP.argtypes = [ctypes.c_size_t, ctypes.c_size_t]


#: What a module of our own may need besides what it has from a submission's: axioms about compiled code.
_MORE_BYTES = 1 << 20
_PAGE = 1 << 16


class NoRoom(Exception):
    """There is no place in memory for a module."""


def room_for(size: int) -> int:
    """Return how many bytes a module may need that is built from one of this size."""
    return (2 * size + _MORE_BYTES) // _PAGE * _PAGE


@contextmanager
def reserved(size: int) -> Iterator[tuple[int, memoryview]]:
    """Give memory of zeros at a fixed address, and the address; nothing is taken before it is written."""
    flags = _PRIVATE | _ANONYMOUS | _NORESERVE | _FIXED_NOREPLACE
    for base in _BASES:
        found = _MAP(base, size, _READ_WRITE, flags, -1, 0)
        if found == base:
            break
        if found != ctypes.c_size_t(-1).value:
            _UNMAP(found, size)  # a system that does not know the flag puts it elsewhere
    else:
        raise NoRoom(f"none of {len(_BASES)} memory areas is free")
    try:
        yield base, memoryview((ctypes.c_ubyte * size).from_address(base)).cast("B")
    finally:
        _UNMAP(base, size)
