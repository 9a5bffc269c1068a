"""A fork server of Lean: has loaded and initialized Lean's shared library, and forks to check a program.

Called as ``python -I -S -c "...; from workers.forks.lean import main; main()" LIBRARY WORD...``; the words
come first in every call of ``lean_main``. Loading and initializing takes Lean longer than a small program.
"""

from __future__ import annotations

import ctypes
import os
import sys

from workers.forks.serve import serve

_LINE_BUFFERED = 1  # _IOLBF of <stdio.h>, glibc and musl


def main() -> None:
    """Serve until nobody asks any more."""
    library, *always = sys.argv[1:]
    lean = ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
    lean.lean_initialize()

    def work(words: list[str], _files: list[int]) -> int:
        stdout = ctypes.c_void_p.in_dll(ctypes.CDLL(None), "stdout")
        # What Lean has said is there when it is killed.
        ctypes.CDLL(None).setvbuf(stdout, None, _LINE_BUFFERED, 0)
        line = [b"lean", *map(os.fsencode, (*always, *words))]
        status: int = lean.lean_main(len(line), (ctypes.c_char_p * (len(line) + 1))(*line, None))
        ctypes.CDLL(None).fflush(None)
        return status

    serve(work)
