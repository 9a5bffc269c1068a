"""Ties the life of a process to that of its parent."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

# PR_SET_PDEATHSIG of prctl(2): the signal that a process gets when its parent dies.
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


def die_with(parent: int, orphaned: signal.Signals = signal.SIGKILL) -> None:
    """Have the kernel send this process a signal when its parent dies; exit if the parent is dead already.

    ``parent`` is the parent's id. On Linux only; elsewhere it does nothing.
    """
    if _libc is None:
        return
    _libc.prctl(_PR_SET_PDEATHSIG, int(orphaned))
    if os.getppid() != parent:  # it died before the call
        os._exit(1)
