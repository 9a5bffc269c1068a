"""Refuses system calls to itself and then becomes a command, as a unit's SystemCallFilter= does.

Called as `python3 seccomp.py NUMBERS COMMAND...`, the numbers of x86-64 joined by commas. It imports only
what Python brings, because it runs where nothing but a node's own files can be seen.
"""

import ctypes
import errno
import os
import struct
import sys

_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _MODE_FILTER = 38, 22, 2
_LOAD_CALL, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM


def program(numbers: list[int]) -> bytes:
    """Return classic BPF over `struct seccomp_data`, see seccomp(2)."""
    steps = [(_LOAD_CALL, 0, 0, 0)]
    for number in numbers:
        steps += [(_JUMP_IF_EQUAL, 0, 1, number), (_RETURN, 0, 0, _REFUSE)]
    return b"".join(struct.pack("HBBI", *step) for step in [*steps, (_RETURN, 0, 0, _ALLOW)])


def main() -> None:
    numbers = [int(number) for number in sys.argv[1].split(",")]
    code = program(numbers)
    buffer = ctypes.create_string_buffer(code)
    described = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    for words in ((_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (_PR_SET_SECCOMP, _MODE_FILTER, described, 0, 0)):
        if libc.prctl(*words):
            raise OSError(ctypes.get_errno(), "prctl")
    os.execvp(sys.argv[2], sys.argv[2:])


main()
