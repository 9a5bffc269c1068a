"""Seal step, memory: reserves memory at a fixed address for a rebuilt module, and reads words at any address.

The file of a module names the address for which its pointers hold. A module that is built at that address
needs no second copy: its bytes in memory are the bytes of the file, and they are equal on every machine.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

#: Every word of the address space by its address / 8; access to an unmapped word ends the process.
WORDS: memoryview[int] = (
    memoryview((ctypes.c_uint64 * (1 << 44)).from_address(0)).cast("B").cast("Q")  # 47 bits of addresses
)

#: The addresses for a module, tried in this order. Lean spreads its own modules over a range a thousand times
#: as large; a module of a library that occupies the first address does so on all machines with that library.
_BASES = tuple(0x20_0000_0000 + number * 0x8_0000_0000 for number in range(8))
_READ_WRITE = 1 | 2
_PRIVATE, _ANONYMOUS, _NORESERVE, _FIXED_NOREPLACE = 0x02, 0x20, 0x4000, 0x100000

_LIBC = ctypes.CDLL(None)
_MAP, _UNMAP = _LIBC.mmap, _LIBC.munmap
_MAP.restype = _UNMAP.restype = ctypes.c_size_t
_MAP.argtypes = [ctypes.c_size_t, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_ssize_t]
_UNMAP.argtypes = [ctypes.c_size_t, ctypes.c_size_t]


#: The additional bytes of a rebuilt module, for axioms about compiled code.
_MORE_BYTES = 1 << 20
_PAGE = 1 << 16


def word_at(place: int, number: int) -> int:
    """Return a field of an object at an address."""
    return WORDS[(place >> 3) + 1 + number]


class NoRoom(Exception):
    """None of the fixed addresses is free for a module."""


def room_for(size: int) -> int:
    """Return the bytes to reserve for a module that is rebuilt from one of this size."""
    return (2 * size + _MORE_BYTES) // _PAGE * _PAGE


@contextmanager
def reserved(size: int) -> Iterator[tuple[int, memoryview]]:
    """Yield a fixed address and zeroed memory at it; the system allocates a page at its first write."""
    flags = _PRIVATE | _ANONYMOUS | _NORESERVE | _FIXED_NOREPLACE
    for base in _BASES:
        found = _MAP(base, size, _READ_WRITE, flags, -1, 0)
        if found == base:
            break
        if found != ctypes.c_size_t(-1).value:
            _UNMAP(found, size)  # a system without MAP_FIXED_NOREPLACE maps another address
    else:
        raise NoRoom(f"none of {len(_BASES)} memory areas is free")
    try:
        yield base, memoryview((ctypes.c_ubyte * size).from_address(base)).cast("B")
    finally:
        _UNMAP(base, size)
