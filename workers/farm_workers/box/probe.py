"""Box step, inside: tries the kernel's features that namespaces need, one after another.

Run as ``python -I -S probe.py``, because it changes its own namespaces. It prints one word and an errno for
each try, 0 for one that succeeded: ``user`` makes a user namespace, ``spaces`` all the others in it,
``mount`` mounts a file system in memory there, ``proc`` a new ``/proc`` in the new pid namespace. A failure
is the last try.
"""

from __future__ import annotations

import ctypes
import os

# From <linux/sched.h> and <linux/mount.h>.
NEW_USER, NEW_MOUNTS, NEW_PIDS = 0x10000000, 0x00020000, 0x20000000
NEW_REST = 0x08000000 | 0x04000000 | 0x40000000  # IPC, host name, network
PRIVATE = 0x40000 | 0x4000

_LIBC = ctypes.CDLL(None, use_errno=True)


def _tell(word: str, result: int) -> bool:
    print(word, ctypes.get_errno() if result else 0, flush=True)  # noqa: T201 # the parent reads this output
    return result == 0


def _mounts() -> None:
    _LIBC.mount(None, b"/", None, PRIVATE, None)
    if _tell("mount", _LIBC.mount(b"none", b"/tmp", b"tmpfs", 0, None)):
        _tell("proc", _LIBC.mount(b"proc", b"/proc", b"proc", 0, None))


def main() -> None:
    """Try one step after another until one fails."""
    if not _tell("user", _LIBC.unshare(NEW_USER)):
        return
    if _tell("spaces", _LIBC.unshare(NEW_MOUNTS | NEW_PIDS | NEW_REST)):
        if os.fork():
            os.wait()
        else:  # the first process of the new pid namespace, which mounts its /proc
            _mounts()


if __name__ == "__main__":
    main()
