"""Box step, inside: the small supervisor between the box and Lean, run as ``python -I -S launch.py ...``.

It stands at the root of the check's process tree and does what must be done from there:

- it takes in every orphan of the tree (``PR_SET_CHILD_SUBREAPER``), so that no double fork and no ``setsid``
  leaves it, and "no child left" (``ECHILD``) means that nothing of the check lives;
- it kills the whole tree when the command ends, when the box says so (SIGTERM), and when the box's own
  process dies in whatever way (``PR_SET_PDEATHSIG``);
- it reaps all of it, so the processor time that it adds up is that of the whole tree.

Arguments: file descriptor for the result, process id of the box, processor seconds, bytes of private memory,
bytes of one file, number of open files; then the command. A command whose first word ends in ``.so`` is
Lean's shared library: its ``lean_main`` is called by the forked child itself, which saves a program start.
The result is one line: wait status, user microseconds, system microseconds; or why the command cannot run.

Start-up is part of every check: only cheap modules are imported, and only once, before the fork.
"""

from __future__ import annotations

import ctypes
import os
import resource
import sys
import time

# The module `signal` dresses these in enums, at a third of this program's start-up.
from _signal import (  # type: ignore[import-not-found]
    SIG_DFL,
    SIG_IGN,
    SIGINT,
    SIGKILL,
    SIGPIPE,
    SIGSTOP,
    SIGTERM,
    SIGXFSZ,
    signal,
)

# From <linux/prctl.h>.
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38

#: Lean's main thread gets what shells give, so that a deep recursion ends at the same depth on every machine.
STACK_BYTES = 8 << 20
#: The kernel's out-of-memory killer takes Lean first, never the worker.
OOM_SCORE = b"1000"
#: What the result begins with when the command could not be started at all.
CANNOT_RUN = "cannot run "


def descendants(root: int, *, halt: bool = False) -> list[int]:
    """Return the process ids below `root`, parents before children, from ``/proc/*/task/*/children``.

    With `halt`, each is stopped before its children are read, so that it makes no more of them. The kernel
    may leave out a process while the tree is changing: whoever must have all asks again.
    """
    found = [root]
    for pid in found:  # grows while it is walked
        try:
            if halt and pid != root:
                os.kill(pid, SIGSTOP)
            for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - pathlib costs 10 ms of start-up
                with open(f"/proc/{pid}/task/{thread}/children", "rb", 0) as file:  # noqa: PTH123
                    found += map(int, file.read().split())
        except OSError:  # it has just ended
            continue
    return found[1:]


def kill_tree(root: int) -> bool:
    """Kill all processes below `root`; False when there were none. Whoever must have all asks again."""
    doomed: set[int] = set()
    while new := set(descendants(root, halt=True)) - doomed:
        doomed |= new
    for pid in doomed:
        try:
            os.kill(pid, SIGKILL)
        except ProcessLookupError:
            continue
    return bool(doomed)


def _prctl(option: int, value: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl {option}")


def _limit(which: int, soft: int, hard: int | None = None) -> None:
    allowed = resource.getrlimit(which)[1]
    top = soft if hard is None else hard
    if allowed != resource.RLIM_INFINITY:
        soft, top = min(soft, allowed), min(top, allowed)
    resource.setrlimit(which, (soft, top))


def _become_the_command(parent: int, result: int, limits: list[int], command: list[str]) -> None:
    """Put the limits on this process and turn it into the command."""
    _prctl(PR_SET_PDEATHSIG, SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    os.setsid()
    for number in (SIGINT, SIGPIPE, SIGTERM, SIGXFSZ):  # Python ignores or takes some of them
        signal(number, SIG_DFL)
    cpu_seconds, data_bytes, file_bytes, open_files = limits
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_CPU, cpu_seconds, cpu_seconds + 1)
    _limit(resource.RLIMIT_DATA, data_bytes)
    _limit(resource.RLIMIT_FSIZE, file_bytes)
    _limit(resource.RLIMIT_NOFILE, open_files)
    _limit(resource.RLIMIT_STACK, STACK_BYTES)
    _prctl(PR_SET_NO_NEW_PRIVS, 1)
    with open("/proc/self/oom_score_adj", "wb", 0) as file:  # noqa: PTH123
        file.write(OOM_SCORE)
    if command[0].endswith(".so"):
        _lean_main(command, result)
    os.execvp(command[0], command)  # noqa: S606


def _lean_main(command: list[str], result: int) -> None:
    words = [b"lean", *map(os.fsencode, command[1:])]
    library = ctypes.CDLL(command[0], mode=ctypes.RTLD_GLOBAL)
    os.close(result)
    status = library.lean_main(len(words), (ctypes.c_char_p * (len(words) + 1))(*words, None))
    ctypes.CDLL(None).exit(status)  # as after C's own main: buffers are written, Python is not taken down


def _start(supervisor: int, result: int, limits: list[int], command: list[str]) -> int:
    child = os.fork()
    if child:
        return child
    try:
        os.set_inheritable(result, False)  # only the supervisor speaks to the box
        _become_the_command(supervisor, result, limits, command)
    except OSError as error:
        os.write(result, f"{CANNOT_RUN}{command[0]}: {error}\n".encode(errors="replace"))
    os._exit(1)


class _Reaped:
    """What was reaped so far: the command's wait status, and what the whole tree used."""

    def __init__(self, main: int) -> None:
        self.main = main
        self.status: int | None = None
        self.user_us = self.system_us = 0

    def add(self, pid: int, status: int, used: resource.struct_rusage) -> None:
        if pid == self.main:
            self.status = status
        self.user_us += int(used.ru_utime * 1e6)
        self.system_us += int(used.ru_stime * 1e6)


def _reap_all(reaped: _Reaped) -> None:
    """Wait for the command, then kill and reap until nothing of its tree lives."""
    while reaped.status is None:
        reaped.add(*os.wait4(-1, 0))
    while True:
        try:
            pid, status, used = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid:
            reaped.add(pid, status, used)
        else:
            kill_tree(os.getpid())
            time.sleep(0.001)  # the killed need a moment to die, and what they started to be seen


def main(words: list[str]) -> None:
    """Run the command to its end, leave nothing of it, and write the result line."""
    result, box, *limits = map(int, words[:6])
    _prctl(PR_SET_PDEATHSIG, SIGTERM)
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    signal(SIGINT, SIG_IGN)
    signal(SIGTERM, lambda *_: kill_tree(os.getpid()))
    if os.getppid() != box:  # it died before it could be watched
        return
    reaped = _Reaped(_start(os.getpid(), result, limits, words[6:]))
    _reap_all(reaped)
    os.write(result, f"{reaped.status} {reaped.user_us} {reaped.system_us}\n".encode())
    os._exit(0)  # there is nothing to take down


if __name__ == "__main__":
    main(sys.argv[1:])
