"""HOL Light step, OCaml: the bytecode runtime as a library in this process, running a toplevel.

``libcamlrun_shared.so`` contains all of ``ocamlrun`` except for two tables of the primitives, which the
linker of a program writes. `_tables` is a library of two empty tables in their place; they are filled with
the primitives that the toplevel's bytecode names. The layout of bytecode files is that of OCaml 4.13
(``runtime/caml/exec.h``), the tables those of ``runtime/caml/prims.h``.

The toplevel's main function never returns. It reads its standard input at the end of its script. Before it
waits for that, the runtime calls `caml_enter_blocking_section_hook`, in which this process continues in
Python.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

#: The end of a bytecode file of a version that this was written for.
MAGIC = b"Caml1999X030"
_TABLES = ("caml_names_of_builtin_cprim", "caml_builtin_cprim")
_HOOK = "caml_enter_blocking_section_hook"
#: The numbers of machines in ELF files.
_MACHINES = {"x86_64": 62, "aarch64": 183}
#: The lowest bits of a result that is an exception.
_RAISED, _BITS = 2, 3
_SECTION = struct.Struct(">4sI")

_Hook = ctypes.CFUNCTYPE(None)


class OCamlError(Exception):
    """The runtime cannot be had, or a call of a function raised."""


class Runtime:
    """OCaml's runtime; there can be one in a process."""

    def __init__(self, library: Path, toplevel: Path) -> None:
        """Load the runtime for the bytecode of a toplevel. Raises OCamlError and OSError."""
        self._toplevel = toplevel
        names = primitives(toplevel.read_bytes())
        given = ctypes.CDLL(_file_of(_tables(8 * (len(names) + 1))), mode=ctypes.RTLD_GLOBAL)
        self._library = ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
        self._fill(given, names)
        self._declare()

    def _fill(self, given: ctypes.CDLL, names: list[bytes]) -> None:
        row = ctypes.c_void_p * (len(names) + 1)
        known, functions = (row.in_dll(given, name) for name in _TABLES)
        self._kept = [ctypes.create_string_buffer(name) for name in names]
        for number, name in enumerate(names):
            try:
                function = getattr(self._library, name.decode())
            except AttributeError as error:
                raise OCamlError(
                    f"OCaml's runtime has no {name.decode()}: it is of another version"
                ) from error
            known[number] = ctypes.addressof(self._kept[number])
            functions[number] = ctypes.cast(function, ctypes.c_void_p).value

    def _declare(self) -> None:
        value = ctypes.c_size_t
        library = self._library
        self._named, self._call = library.caml_named_value, library.caml_callback_exn
        self._string, self._length = library.caml_alloc_initialized_string, library.caml_string_length
        self._named.restype, self._named.argtypes = ctypes.POINTER(value), [ctypes.c_char_p]
        self._call.restype, self._call.argtypes = value, [value, value]
        self._string.restype, self._string.argtypes = value, [value, ctypes.c_char_p]
        self._length.restype, self._length.argtypes = value, [value]

    def run(self, script: Path, then: Callable[[], NoReturn]) -> NoReturn:
        """Run the toplevel with a script; `then` is called at the script's end."""
        place = ctypes.c_size_t.in_dll(self._library, _HOOK)
        before = place.value

        def waits() -> None:
            if self.has("farm_end"):
                place.value = before
                _left_by(then)

        self._hook = _Hook(waits)  # kept: the runtime calls it
        place.value = ctypes.cast(self._hook, ctypes.c_void_p).value or 0
        words = [b"ocamlrun", os.fsencode(self._toplevel), b"-init", os.fsencode(script), b"-noprompt"]
        self._library.caml_main((ctypes.c_char_p * (len(words) + 1))(*words, None))
        raise OCamlError("OCaml's toplevel ended before its script")

    def has(self, name: str) -> bool:
        """Whether a value was registered under this name."""
        return bool(self._named(name.encode()))

    def call(self, name: str, text: bytes) -> bytes:
        """Call a registered function from string to string. Raises OCamlError when it raises."""
        found = self._call(self._named(name.encode())[0], self._string(len(text), text))
        if found & _BITS == _RAISED:
            raise OCamlError(f"{name} raised an exception")
        return ctypes.string_at(found, self._length(found))


def _left_by(then: Callable[[], NoReturn]) -> None:
    """Go on in Python for good: there is no way back into the toplevel."""
    try:
        then()
    finally:
        os._exit(1)


def primitives(bytecode: bytes) -> list[bytes]:
    """Return the names of the primitives that a bytecode program needs. Raises OCamlError.

    The file ends in its sections, a table of their names and lengths, the number of those, and the magic.
    """
    if not bytecode.endswith(MAGIC):
        raise OCamlError(f"not a bytecode program of OCaml 4.13, which ends in {MAGIC.decode()}")
    number = int.from_bytes(bytecode[-16:-12], "big")
    at = table = len(bytecode) - 16 - _SECTION.size * number
    for name, length in reversed(list(_SECTION.iter_unpack(bytecode[table:-16]))):
        at -= length
        if name == b"PRIM":
            return [each for each in bytecode[at : at + length].split(b"\0") if each]
    raise OCamlError("a bytecode program without a section PRIM")


def _file_of(library: bytes) -> str:
    """Return a path under which the loader finds a library that is in memory."""
    descriptor = os.memfd_create("tables", os.MFD_CLOEXEC)
    os.write(descriptor, library)
    return f"/proc/self/fd/{descriptor}"


def _tables(size: int) -> bytes:
    """Return a shared library that holds only the two tables, `size` zero bytes each.

    By the ELF specification: a header, a segment to load and one for the dynamic linker, symbols, a hash
    table of one bucket, names. It refers to no address, so it needs no relocation.
    """
    names = b"\0" + b"".join(name.encode() + b"\0" for name in _TABLES)
    symbols = 64 + 2 * 56
    hashes = symbols + 3 * 24
    strings = hashes + 6 * 4
    dynamic = -(-(strings + len(names)) // 16) * 16
    end = dynamic + 6 * 16
    machine = _MACHINES.get(platform.machine())
    if machine is None:
        raise OCamlError(f"HOL Light is not supported on a machine of type {platform.machine()}")
    ident = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    head = struct.pack("<16sHHIQQQIHHHHHH", ident, 3, machine, 1, 0, 64, 0, 0, 64, 56, 2, 0, 0, 0)
    head += struct.pack("<IIQQQQQQ", 1, 6, 0, 0, 0, end, end + 2 * size, 1 << 16)
    head += struct.pack("<IIQQQQQQ", 2, 6, dynamic, dynamic, dynamic, 96, 96, 8)
    head += bytes(24)  # the first symbol is none
    for number, name in enumerate(_TABLES):
        head += struct.pack("<IBBHQQ", names.index(name.encode()), 0x11, 0, 1, end + number * size, size)
    head += struct.pack("<6I", 1, 3, 1, 0, 2, 0)  # one bucket, which begins at 1; after that comes 2
    entries = ((4, hashes), (5, strings), (6, symbols), (10, len(names)), (11, 24), (0, 0))
    return (head + names).ljust(dynamic, b"\0") + b"".join(struct.pack("<QQ", *each) for each in entries)
