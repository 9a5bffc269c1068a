"""Runs a command without the right to make namespaces: ``python no_namespaces.py ERROR COMMAND ...``.

A filter refuses the calls that make them, as containers' runtimes do, to all that the command starts as well.
If ERROR is not 0, Landlock is refused with that number of an error.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys

from farm_workers.box.seccomp import filter_for

CREATE_RULESET = 444

PR_SET_SECCOMP, SECCOMP_MODE_FILTER, PR_SET_NO_NEW_PRIVS = 22, 2, 38

#: What is put before a command's words, to leave it Landlock, or nothing.
PREFIX = (sys.executable, "-P", __file__, "0")
NEITHER = (sys.executable, "-P", __file__, str(errno.ENOSYS))


class _Program(ctypes.Structure):
    """``struct sock_fprog`` of <linux/filter.h>."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def refusing(call: int, error: int) -> bytes:
    """Return a filter that refuses one call: load its number, compare, return."""
    load, allow, refuse = (0x20, 0, 0, 0), (0x06, 0, 0, 0x7FFF0000), (0x06, 0, 0, 0x00050000 | error)
    return b"".join(struct.pack("=HBBI", *each) for each in (load, (0x15, 0, 1, call), refuse, allow))


def take(code: bytes) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
    program = _Program(len(code) // 8, code)
    assert libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0) == 0


def main(error: str, *command: str) -> None:
    code = filter_for(platform.machine())
    assert code is not None
    take(code)
    if int(error):
        take(refusing(CREATE_RULESET, int(error)))
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(*sys.argv[1:])
