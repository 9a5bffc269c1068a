"""Image step, filters: a filter of system calls, which a fork of an image installs."""

from __future__ import annotations

import ctypes

from farm_workers.box import launch
from farm_workers.images.process import require

# From <linux/seccomp.h>, and the call's number on each machine whose filters are known.
_SET_FILTER, _ALL_THREADS = 1, 1
_SECCOMP = {"x86_64": 317, "aarch64": 277}

_LIBC = ctypes.CDLL(None, use_errno=True)


class _Program(ctypes.Structure):
    """A filter as the kernel takes it: struct sock_fprog of <linux/filter.h>."""

    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


class Filter:
    """A filter of system calls that a process can install."""

    def __init__(self, calls: bytes, machine: str) -> None:
        """Prepare the filter; `machine` is the output of ``uname -m``."""
        self._calls = ctypes.create_string_buffer(calls, len(calls))
        program = _Program(len(calls) // 8, ctypes.addressof(self._calls))
        self._words = _SECCOMP[machine], _SET_FILTER, _ALL_THREADS, ctypes.byref(program)

    def take(self) -> None:
        """Install it, for good, in all threads. Raises OSError."""
        self._calls.raw = launch.of_this_process(self._calls.raw)
        require(_LIBC.syscall(*self._words), "seccomp")
