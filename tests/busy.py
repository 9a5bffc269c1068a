"""What tests of limits beside neighbours share: one core for all, and processes that take it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator

#: The neighbours, each of which always runs or waits.
NEIGHBOURS = 8


@contextlib.contextmanager
def one_core() -> Iterator[None]:
    """Keep this thread, and all that it starts, on one core."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextlib.contextmanager
def busy(neighbours: int = NEIGHBOURS) -> Iterator[None]:
    """Have so many processes take what they get of the cores of this thread, each once it has begun."""
    with contextlib.ExitStack() as ends:
        for _ in range(neighbours):
            words = [sys.executable, "-I", "-S", "-c", "print(flush=True)\nwhile True: pass"]
            each = ends.enter_context(subprocess.Popen(words, stdout=subprocess.PIPE))
            ends.callback(each.kill)
            assert each.stdout is not None
            assert each.stdout.readline() == b"\n"
        yield
