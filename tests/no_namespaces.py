"""Runs a command without the right to make namespaces: ``python no_namespaces.py COMMAND ...``.

A filter refuses the calls that make them, as containers' runtimes do, to all that the command starts as well.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys

from farm_workers.box.seccomp import filter_for

PR_SET_SECCOMP, SECCOMP_MODE_FILTER, PR_SET_NO_NEW_PRIVS = 22, 2, 38

#: What is put before a command's words.
PREFIX = (sys.executable, "-P", __file__)


class _Program(ctypes.Structure):
    """``struct sock_fprog`` of <linux/filter.h>."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def main(command: list[str]) -> None:
    code = filter_for(platform.machine())
    assert code is not None
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
    program = _Program(len(code) // 8, code)
    assert libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0) == 0
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1:])
