"""Box step, inside: the small supervisor between the box and Lean, run as ``python -I -S launch.py ...``.

It stands at the root of the check's process tree and does the work that only the root of the tree can do:

- it forks the process that becomes the command; that one puts itself into its control group and waits at a
  gate until the box says go;
- it takes in every orphan of the tree, so that no double fork and no ``setsid`` leaves it, and "no child
  left" (``ECHILD``) means that nothing of the check lives. In a pid namespace of its own it is process 1,
  which gets the orphans by itself; elsewhere it asks for them (``PR_SET_CHILD_SUBREAPER``);
- it kills the whole tree when the command ends, when the box says so (SIGTERM), and when the box's own
  process dies in whatever way (``PR_SET_PDEATHSIG``, or the end of the socket while the gate is closed);
- it reaps the whole tree, so the processor time that it adds up is that of the whole tree.

Arguments: file descriptor of the socket to the box, file descriptors of the files by which the command joins
its control group (with commas; - for none), file descriptors of Landlock's rules for the command and of its
filter of system calls (with a comma; - for none), user id for the command (-1: as it is), 1 when that user is
to read all files (else 0), processor seconds (-1: any number), bytes of private memory, bytes of one file,
number of open files, bytes of the stack, number of the user's tasks (-1: any); then the command. A command
whose first word ends in ``.so`` is Lean's shared library: its ``lean_main`` is called by the forked child
itself, which saves a program start.

The socket keeps messages apart (SOCK_SEQPACKET). The child says `READY`, which tells the box its process id
(SCM_CREDENTIALS), or why it cannot run. The box answers `GO`. The last message is the result: wait status,
user microseconds, system microseconds; or why the command could not be run.

Start-up is part of every check: only cheap modules are imported, and only once, before the fork.
"""

from __future__ import annotations

import ctypes
import errno
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
PR_SET_DUMPABLE = 4
PR_SET_KEEPCAPS = 8
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, PR_CAP_AMBIENT_CLEAR_ALL = 47, 2, 4
#: From <linux/capability.h>: the header of capset(2), the last capability that may exist, and the one to read
#: files and to go through folders whatever their modes.
CAPABILITY_VERSION_3 = 0x20080522
LAST_CAPABILITY = 63
CAP_DAC_READ_SEARCH = 2

#: Lean's main thread gets the usual stack of a shell, so that a deep recursion ends at the same depth on
#: every machine.
STACK_BYTES = 8 << 20
#: The stack of Lean's own threads: since 4.35 its command line runs in one of them, not in the main thread.
THREAD_STACK_BYTES = 1 << 30
#: The kernel's out-of-memory killer takes Lean first, never the worker.
OOM_SCORE = b"1000"
#: One written file, and all that fits into a box's own folders; Lean's largest ones, compiled modules, stay
#: well below.
FILE_BYTES = 256 << 20
OPEN_FILES = 4096
#: RLIMIT_DATA counts reserved memory: Lean reserves some 6 GiB for thread stacks and arenas before it uses
#: any. The limit on top of that only stops a single huge request, before the box could notice it.
RESERVED_BYTES = 8 << 30
#: The address space that no limit may take from a check: memory, what Lean reserves, and modules it maps.
ADDRESS_BYTES = 32 << 30
#: The limits under which an honest check could fail though it exceeds none of its own, by the letters with
#: which the shell's `ulimit` names the hard one.
OWN_LIMITS = {
    resource.RLIMIT_CPU: "-Ht",
    resource.RLIMIT_FSIZE: "-Hf",
    resource.RLIMIT_DATA: "-Hd",
    resource.RLIMIT_STACK: "-Hs",
    resource.RLIMIT_AS: "-Hv",
}
#: The words between the command at the gate and the box.
READY, GO = b"ready", b"go"
#: The message sent instead if the command could not be started.
CANNOT_RUN = "cannot run "

#: The call landlock_restrict_self, which has the same number on all machines.
_RESTRICT_SELF = 446
#: Stands in a filter of system calls for the id of the process that takes it on; no process has such an id.
ITSELF = 0x7FFFFFFF
_MOST_FILTER_BYTES = 1 << 15

_LIBC = ctypes.CDLL(None, use_errno=True)
_LINE_BUFFERED = 1  # _IOLBF of <stdio.h>, glibc and musl


def descendants(root: int, *, halt: bool = False) -> list[int]:
    """Return the process ids below `root`, parents before children, from ``/proc/*/task/*/children``.

    With `halt`, each process is stopped before its children are read, so that it forks no more. The kernel
    may omit a process while the tree changes: callers that need all repeat the call.
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
    """Kill all processes below `root`; False if none was found. To be sure of all, repeat the call."""
    doomed: set[int] = set()
    while new := set(descendants(root, halt=True)) - doomed:
        doomed |= new
    for pid in doomed:
        try:
            os.kill(pid, SIGKILL)
        except ProcessLookupError:
            continue
    return bool(doomed)


def kill_all() -> None:
    """Kill everything below this process; process 1 of a namespace can do it in one stroke, missing none."""
    if os.getpid() != 1:
        kill_tree(os.getpid())
        return
    try:
        os.kill(-1, SIGKILL)
    except ProcessLookupError:
        return


def prctl(option: int, *values: int) -> None:
    """Call the system's prctl. Raises OSError."""
    words = [*values, 0, 0, 0, 0][:4]
    if _LIBC.prctl(option, *map(ctypes.c_ulong, words)) != 0:
        raise OSError(ctypes.get_errno(), f"prctl {option}")


def limit(which: int, soft: int, hard: int | None = None) -> None:
    """Set a limit of this process, as far as it may. Raises OSError where a check needs more than it may."""
    allowed = resource.getrlimit(which)[1]
    top = soft if hard is None else hard
    if allowed != resource.RLIM_INFINITY:
        needed = min(soft, ADDRESS_BYTES)  # an image's memory has no limit
        if which in OWN_LIMITS and allowed < needed:
            raise OSError(errno.EPERM, _too_low(which, allowed, needed))
        soft, top = min(soft, allowed), min(top, allowed)
    resource.setrlimit(which, (soft, top))


def _too_low(which: int, allowed: int, needed: int) -> str:
    return f"its hard limit `ulimit {OWN_LIMITS[which]}` is {allowed}, and a check needs {needed}; raise it"


def limits_now() -> dict[int, int]:
    """Return the limits of this process under which an honest check could fail."""
    return {which: resource.getrlimit(which)[0] for which in (*OWN_LIMITS, resource.RLIMIT_NPROC)}


def require_limits(before: dict[int, int]) -> None:
    """Raise OSError if a limit of this process is lower than it was before."""
    for which, now in limits_now().items():
        if now != resource.RLIM_INFINITY and not 0 <= before[which] <= now:
            raise OSError(errno.EPERM, f"its limit {which} of getrlimit(2) was lowered to {now}")


def _free_addresses() -> None:
    """Take all address space that this process may have. Raises OSError where a check needs more."""
    which = resource.RLIMIT_AS
    allowed = resource.getrlimit(which)[1]
    if allowed != resource.RLIM_INFINITY and allowed < ADDRESS_BYTES:
        raise OSError(errno.EPERM, _too_low(which, allowed, ADDRESS_BYTES))
    resource.setrlimit(which, (allowed, allowed))


def become(user: int, *, reads_all: bool) -> None:
    """Become another user (-1: keep the user) without capabilities, except to read if `reads_all`."""
    kept = CAP_DAC_READ_SEARCH
    if user >= 0:
        os.setgroups([])
        os.setresgid(user, user, user)
        prctl(PR_SET_KEEPCAPS, 1)
        os.setresuid(user, user, user)
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    low = 1 << kept if reads_all else 0
    if _LIBC.capset(header, (ctypes.c_uint32 * 6)(low, low, low)) != 0:  # effective, permitted, inheritable
        raise OSError(ctypes.get_errno(), "capset")
    if reads_all:
        prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, kept)  # it outlives the start of a program


def drop_bounding_set(kept: int = -1) -> None:
    """Keep every program that is started here from gaining any capability but `kept`."""
    for capability in range(LAST_CAPABILITY + 1):
        if capability == kept:
            continue
        try:
            prctl(PR_CAPBSET_DROP, capability)
        except OSError:  # the kernel has no more of them
            return


def restrict(rules: int) -> None:
    """Take on a set of Landlock's rules, for good. Raises OSError."""
    if _LIBC.syscall(_RESTRICT_SELF, rules, 0) != 0:
        raise OSError(ctypes.get_errno(), "landlock_restrict_self")


def of_this_process(calls: bytes) -> bytes:
    """Return a filter of system calls with this process's id in it, where it has a place for one."""
    return calls.replace(ITSELF.to_bytes(4, sys.byteorder), os.getpid().to_bytes(4, sys.byteorder))


class _Filter(ctypes.Structure):
    """A filter as the kernel takes it: struct sock_fprog of <linux/filter.h>."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def _enclose(walls: list[int]) -> None:
    """Take on Landlock's rules and a filter of system calls, given by their descriptors. Raises OSError."""
    rules, *filtered = walls
    restrict(rules)
    for file in filtered:
        calls = of_this_process(os.read(file, _MOST_FILTER_BYTES))
        program = _Filter(len(calls) // 8, calls)
        if _LIBC.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "seccomp")
    for descriptor in walls:
        os.close(descriptor)


def _prepare(parent: int, joins: list[int], walls: list[int], user: int, numbers: list[int]) -> None:
    """Set the limits of this process, and drop the rights that the command must not have."""
    for descriptor in joins:
        os.write(descriptor, b"0")  # a single thread that moves itself moves at once
        os.close(descriptor)
    os.setsid()
    for number in (SIGINT, SIGPIPE, SIGTERM, SIGXFSZ):  # Python ignores or takes some of them
        signal(number, SIG_DFL)
    reads_all, cpu_seconds, data_bytes, file_bytes, open_files, stack_bytes, tasks = numbers
    limit(resource.RLIMIT_CORE, 0)
    if cpu_seconds >= 0:
        limit(resource.RLIMIT_CPU, cpu_seconds, cpu_seconds + 1)
    _free_addresses()
    limit(resource.RLIMIT_DATA, data_bytes)
    limit(resource.RLIMIT_FSIZE, file_bytes)
    limit(resource.RLIMIT_NOFILE, open_files)
    limit(resource.RLIMIT_STACK, stack_bytes)
    if tasks >= 0:
        limit(resource.RLIMIT_NPROC, tasks)
    if user >= 0 or walls:
        os.umask(0o022)  # other users may have to read the command's files
        drop_bounding_set(CAP_DAC_READ_SEARCH if reads_all else -1)
        become(user, reads_all=bool(reads_all))
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    prctl(PR_SET_DUMPABLE, 1)  # the default of programs, needed for access to its own files in /proc
    with open("/proc/self/oom_score_adj", "wb", 0) as file:  # noqa: PTH123
        file.write(OOM_SCORE)
    prctl(PR_SET_PDEATHSIG, SIGKILL)  # a change of user takes this away too
    if os.getppid() != parent:
        os._exit(1)
    if walls:
        _enclose(walls)


def _run(command: list[str], box: int) -> None:
    """Wait at the gate, then turn this process into the command."""
    os.write(box, READY)
    if os.read(box, len(GO)) != GO:  # the box's process is gone
        os._exit(1)
    if command[0].endswith(".so"):
        _lean_main(command, box)
    os.set_inheritable(box, False)  # only the supervisor speaks to the box
    os.execv(_found(command[0]), command)  # noqa: S606


def _found(program: str) -> str:
    """Return the path of a program; `os.execvp` imports a module, which this user may be unable to read."""
    folders = [] if "/" in program else os.environ["PATH"].split(":")
    return next((path for f in folders if os.access(path := f"{f}/{program}", os.X_OK)), program)


def _lean_main(command: list[str], box: int) -> None:
    words = [b"lean", *map(os.fsencode, command[1:])]
    main = ctypes.CDLL(command[0], mode=ctypes.RTLD_GLOBAL).lean_main
    os.close(box)
    stdout = ctypes.c_void_p.in_dll(_LIBC, "stdout")
    _LIBC.setvbuf(stdout, None, _LINE_BUFFERED, 0)  # Lean's messages are written before a kill
    status = main(len(words), (ctypes.c_char_p * (len(words) + 1))(*words, None))
    _LIBC.exit(status)  # like C's own main: flushes buffers, but does not shut Python down


def _start(
    box: int, joins: list[int], walls: list[int], user: int, numbers: list[int], command: list[str]
) -> int:
    supervisor = os.getpid()
    child = os.fork()
    if child:
        return child
    try:
        _prepare(supervisor, joins, walls, user, numbers)
        _run(command, box)
    except (OSError, AttributeError, ValueError) as error:  # no such file, no Lean in it, a NUL in a word
        os.write(box, f"{CANNOT_RUN}{command[0]}: {error}".encode(errors="replace")[:4096])
    os._exit(1)


def reap_all(command: int) -> bytes:
    """Wait for the command, then kill and reap until nothing of its tree lives; return the result.

    The result is in the form that the box reads: the command's wait status, and user and system microseconds
    of the whole tree.
    """
    status: int | None = None
    user_us = system_us = 0
    while True:
        try:
            pid, ended, used = os.wait4(-1, 0 if status is None else os.WNOHANG)
        except ChildProcessError:
            if status is None:
                raise
            return f"{status} {user_us} {system_us}".encode()
        if pid == 0:
            kill_all()
            time.sleep(0.001)  # killed processes take a moment to die, and their children to appear
            continue
        status = ended if pid == command else status
        user_us += int(used.ru_utime * 1e6)
        system_us += int(used.ru_stime * 1e6)


def main(words: list[str]) -> None:
    """Run the command to its end, kill and reap its tree, and send the result."""
    box = int(words[0])
    joins, walls = ([int(word) for word in words[place].split(",") if word != "-"] for place in (1, 2))
    user, *numbers = map(int, words[3:11])
    if os.getpid() != 1:  # process 1 gets orphans anyway, and dies with bubblewrap
        prctl(PR_SET_PDEATHSIG, SIGTERM)
        prctl(PR_SET_CHILD_SUBREAPER, 1)
    prctl(PR_SET_DUMPABLE, 0)  # no other process of the same user may trace this one or read its memory
    signal(SIGINT, SIG_IGN)
    signal(SIGTERM, lambda *_: kill_all())
    os.write(box, reap_all(_start(box, joins, walls, user, numbers, words[11:])))
    os._exit(0)  # nothing needs a shutdown


if __name__ == "__main__":
    main(sys.argv[1:])
