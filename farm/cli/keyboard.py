"""The keyboard of a terminal, read key by key during a live display."""

from __future__ import annotations

import os
import select
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def pressed() -> Iterator[Callable[[float], str]]:
    """Give a function that waits some seconds for a key and returns it, "" for none; keys are not echoed.

    If stdin is no terminal, or was closed, the function only waits. The terminal's mode is restored at the
    end.
    """
    if not sys.stdin.isatty():
        yield _wait
        return
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)
        yield lambda seconds: _key(descriptor, seconds)
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def _wait(seconds: float) -> str:
    time.sleep(seconds)
    return ""


def _key(descriptor: int, seconds: float) -> str:
    ready, _, _ = select.select([descriptor], [], [], seconds)
    if not ready:
        return ""
    # An end of file means that the terminal is gone: the display ends.
    return os.read(descriptor, 1).decode(errors="replace") or "q"
