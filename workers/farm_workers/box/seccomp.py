"""Box step: the filters of system calls that are put on checks. Pure: it makes bytes.

It refuses the calls that flatpak, the best known user of bubblewrap, refuses its applications
(``setup_seccomp`` in https://github.com/flatpak/flatpak/blob/main/common/flatpak-run.c): interfaces of the
kernel that a program does not need and that most escapes from sandboxes used. It also refuses newer ones of
that kind (bpf, userfaultfd, io_uring), calls that load another kernel or a module, read another process's
memory, or open files by handle. All else is allowed: the kernel then knows from a table that it need not run
the filter at all.

The program is classic BPF over ``struct seccomp_data``, see seccomp(2); the numbers of calls are those of
Linux, ``asm/unistd_64.h`` on x86-64 and ``asm-generic/unistd.h`` on arm64.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Mapping, Set
from dataclasses import dataclass
from types import MappingProxyType

from farm_workers.box.launch import ITSELF

#: Calls that are refused, with the error they end in, and their numbers on x86-64 and arm64 (None: there is
#: no such call). ENOSYS stands where programs know how to do without.
REFUSED: Mapping[str, tuple[int, int | None, int | None]] = MappingProxyType(
    {
        # Flatpak's list.
        "syslog": (errno.EPERM, 103, 116),
        "uselib": (errno.EPERM, 134, None),
        "acct": (errno.EPERM, 163, 89),
        "modify_ldt": (errno.EPERM, 154, None),
        "quotactl": (errno.EPERM, 179, 60),
        "add_key": (errno.EPERM, 248, 217),
        "request_key": (errno.EPERM, 249, 218),
        "keyctl": (errno.EPERM, 250, 219),
        "move_pages": (errno.EPERM, 279, 239),
        "mbind": (errno.EPERM, 237, 235),
        "get_mempolicy": (errno.EPERM, 239, 236),
        "set_mempolicy": (errno.EPERM, 238, 237),
        "migrate_pages": (errno.EPERM, 256, 238),
        "unshare": (errno.EPERM, 272, 97),
        "setns": (errno.EPERM, 308, 268),
        "mount": (errno.EPERM, 165, 40),
        "umount2": (errno.EPERM, 166, 39),
        "pivot_root": (errno.EPERM, 155, 41),
        "chroot": (errno.EPERM, 161, 51),
        "clone3": (errno.ENOSYS, 435, 435),  # its flags are in memory, where no filter can see them
        "open_tree": (errno.ENOSYS, 428, 428),
        "move_mount": (errno.ENOSYS, 429, 429),
        "fsopen": (errno.ENOSYS, 430, 430),
        "fsconfig": (errno.ENOSYS, 431, 431),
        "fsmount": (errno.ENOSYS, 432, 432),
        "fspick": (errno.ENOSYS, 433, 433),
        "mount_setattr": (errno.ENOSYS, 442, 442),
        "perf_event_open": (errno.EPERM, 298, 241),
        "ptrace": (errno.EPERM, 101, 117),
        # Ours.
        "bpf": (errno.EPERM, 321, 280),
        "userfaultfd": (errno.EPERM, 323, 282),
        "io_uring_setup": (errno.ENOSYS, 425, 425),
        "io_uring_enter": (errno.ENOSYS, 426, 426),
        "io_uring_register": (errno.ENOSYS, 427, 427),
        "kexec_load": (errno.EPERM, 246, 104),
        "kexec_file_load": (errno.EPERM, 320, 294),
        "init_module": (errno.EPERM, 175, 105),
        "finit_module": (errno.EPERM, 313, 273),
        "delete_module": (errno.EPERM, 176, 106),
        "process_vm_readv": (errno.EPERM, 310, 270),
        "process_vm_writev": (errno.EPERM, 311, 271),
        "pidfd_getfd": (errno.EPERM, 438, 438),
        "kcmp": (errno.EPERM, 312, 272),
        "name_to_handle_at": (errno.EPERM, 303, 264),
        "open_by_handle_at": (errno.EPERM, 304, 265),
        "fanotify_init": (errno.EPERM, 300, 262),
        "quotactl_fd": (errno.EPERM, 443, 443),
    }
)
#: Families that a socket may be of (AF_UNIX, AF_INET, AF_INET6, AF_NETLINK): as in flatpak, the common ones.
#: A network namespace holds these; AF_VSOCK, for one, would reach the machine outside.
SOCKET_FAMILIES = (1, 2, 10, 16)


#: Calls that send a signal: their numbers on x86-64 and arm64, and the position of the signal argument.
_SENDING = (
    (62, 129, 1),  # kill
    (200, 130, 1),  # tkill
    (234, 131, 2),  # tgkill
    (129, 138, 1),  # rt_sigqueueinfo
    (297, 240, 2),  # rt_tgsigqueueinfo
    (424, 424, 1),  # pidfd_send_signal
)
_TKILL = (200, 130)
_BY_HANDLE = 424  # pidfd_send_signal, on each machine
#: Signals that end a process and are no fault of its own: all deadly ones except those of a fault or a limit
#: of the process itself (SIGABRT, SIGSEGV, SIGXCPU and the like), then those without a fixed meaning.
_DEADLY = (1, 2, 3, 9, 10, 12, 13, 14, 15, 16, 26, 27, 29, 30)
_FIRST_FREE = 34
#: Signals that stop a process: SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU. A stopped process cannot be reaped and
#: reports nothing, and an image that has read a context shares a cell with its forks.
_STOPPING = (19, 20, 21, 22)


#: Calls that are refused in cells besides. Some make objects that outlive their process for a moment, would
#: lead from one cell to another, or have the kernel send a signal of the caller's choice; the others act on
#: another process of the same user, such as an image that has read a context. Their numbers on x86-64 and
#: arm64.
REFUSED_IN_CELLS: Mapping[str, tuple[int, int]] = MappingProxyType(
    {
        "pidfd_open": (434, 434),
        "process_madvise": (440, 440),
        "process_mrelease": (448, 448),
        "get_robust_list": (274, 100),
        "setpriority": (141, 140),
        "ioprio_set": (251, 30),
        "sched_setparam": (142, 118),
        "sched_setscheduler": (144, 119),
        "sched_setaffinity": (203, 122),
        "sched_setattr": (314, 274),
        "socketpair": (53, 199),
        "shmget": (29, 194),
        "msgget": (68, 186),
        "semget": (64, 190),
        "mq_open": (240, 180),
        "mq_notify": (244, 184),
        "timer_create": (222, 107),
    }
)
#: Calls that are refused besides to a process that shares users, folders and process ids with others, because
#: Landlock has no rule about them, or none on older kernels. They change or reveal the attributes of a file
#: that cannot be opened, lock one that can only be read, as the farm does, or reach objects that have a
#: number or a name and no path. The errors and numbers are given as in `REFUSED`.
REFUSED_WHERE_SHARED: Mapping[str, tuple[int, int | None, int | None]] = MappingProxyType(
    {
        "chmod": (errno.EPERM, 90, None),
        "fchmod": (errno.EPERM, 91, 52),
        "fchmodat": (errno.EPERM, 268, 53),
        "fchmodat2": (errno.EPERM, 452, 452),
        "chown": (errno.EPERM, 92, None),
        "fchown": (errno.EPERM, 93, 55),
        "lchown": (errno.EPERM, 94, None),
        "fchownat": (errno.EPERM, 260, 54),
        "utime": (errno.EPERM, 132, None),
        "utimes": (errno.EPERM, 235, None),
        "futimesat": (errno.EPERM, 261, None),
        "utimensat": (errno.EPERM, 280, 88),
        "setxattr": (errno.EPERM, 188, 5),
        "lsetxattr": (errno.EPERM, 189, 6),
        "fsetxattr": (errno.EPERM, 190, 7),
        "getxattr": (errno.EOPNOTSUPP, 191, 8),
        "lgetxattr": (errno.EOPNOTSUPP, 192, 9),
        "fgetxattr": (errno.EOPNOTSUPP, 193, 10),
        "listxattr": (errno.EOPNOTSUPP, 194, 11),
        "llistxattr": (errno.EOPNOTSUPP, 195, 12),
        "flistxattr": (errno.EOPNOTSUPP, 196, 13),
        "removexattr": (errno.EPERM, 197, 14),
        "lremovexattr": (errno.EPERM, 198, 15),
        "fremovexattr": (errno.EPERM, 199, 16),
        "truncate": (errno.EPERM, 76, 45),
        "openat2": (errno.ENOSYS, 437, 437),  # its flags are in memory
        "flock": (errno.EPERM, 73, 32),
        "inotify_init": (errno.EPERM, 253, None),
        "inotify_init1": (errno.EPERM, 294, 26),
        "connect": (errno.EPERM, 42, 203),
        "bind": (errno.EPERM, 49, 200),
        "shmat": (errno.EPERM, 30, 196),
        "shmctl": (errno.EPERM, 31, 195),
        "msgsnd": (errno.EPERM, 69, 189),
        "msgrcv": (errno.EPERM, 70, 188),
        "msgctl": (errno.EPERM, 71, 187),
        "semop": (errno.EPERM, 65, 193),
        "semtimedop": (errno.EPERM, 220, 192),
        "semctl": (errno.EPERM, 66, 191),
        "mq_unlink": (errno.EPERM, 241, 181),
        "statmount": (errno.ENOSYS, 457, 457),
        "listmount": (errno.ENOSYS, 458, 458),
    }
)
#: The first call that is not known here: newer ones may lead around the others.
_FIRST_UNKNOWN = 463
#: Calls by which a trusted process, the image of a header, makes the cells of its children.
FOR_CELLS = frozenset({"unshare", "setns", "mount", "umount2", "pivot_root"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Architecture:
    """The numbers in which machines differ: of their call tables, and of the calls whose arguments count.

    `foreign_from`: calls from this number on belong to another table (the x32 one of x86-64).
    """

    place: int
    audit: int
    clone: int
    fcntl: int
    ioctl: int
    open: int | None
    openat: int
    prctl: int
    prlimit: int
    setrlimit: int
    socket: int
    foreign_from: int | None


#: Architectures by the output of ``uname -m``. The audit numbers are AUDIT_ARCH_X86_64 and
#: AUDIT_ARCH_AARCH64, <linux/audit.h>.
MACHINES: Mapping[str, Architecture] = MappingProxyType(
    {
        "x86_64": Architecture(
            place=1,
            audit=0xC000003E,
            clone=56,
            fcntl=72,
            ioctl=16,
            open=2,
            openat=257,
            prctl=157,
            prlimit=302,
            setrlimit=160,
            socket=41,
            foreign_from=0x40000000,
        ),
        "aarch64": Architecture(
            place=2,
            audit=0xC00000B7,
            clone=220,
            fcntl=25,
            ioctl=29,
            open=None,
            openat=56,
            prctl=167,
            prlimit=261,
            setrlimit=164,
            socket=198,
            foreign_from=None,
        ),
    }
)

_CLONE_NEWUSER, _CLONE_PARENT = 0x10000000, 0x00008000  # <linux/sched.h>
_EXIT_SIGNAL = 0xFF  # which part of the flags is the signal that a parent gets: CSIGNAL of <linux/sched.h>
_SIGCHLD = 17
_CHILD_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of <linux/prctl.h>
#: F_SETSIG, F_SETOWN and F_SETOWN_EX of <asm-generic/fcntl.h>, F_SETLEASE and F_NOTIFY of <linux/fcntl.h>:
#: the kernel sends SIGIO, or a signal of the caller's choice, to a process of the caller's choice.
_SENDS_LATER = (10, 8, 15, 1024, 1026)
#: F_SETLK, F_SETLKW of <asm-generic/fcntl.h>, F_OFD_SETLK and F_OFD_SETLKW of the same.
_LOCKS = (6, 7, 37, 38)
#: O_ACCMODE and O_TRUNC of <asm-generic/fcntl.h>. With both bits of the former a file is opened neither for
#: reading nor for writing, and Landlock asks for no right.
_ACCESS, _TRUNCATES = 0o3, 0o1000
_PROCESSOR_TIME = 0  # RLIMIT_CPU of <asm-generic/resource.h>: past the hard limit the kernel sends SIGKILL
#: Calls that feed a terminal with input: TIOCSTI and TIOCLINUX of <asm-generic/ioctls.h>.
_TERMINAL_REQUESTS = (0x5412, 0x541C)
#: The requests to a file that remain allowed where files are shared: TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO,
#: FIONCLEX and FIOCLEX of <asm-generic/ioctls.h>. Others change a file that is only open for reading.
_HARMLESS_REQUESTS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)

# <linux/filter.h>: load a word, compare, mask, return. <linux/seccomp.h>: return values, and struct
# seccomp_data.
_LOAD, _IS, _AT_LEAST, _HAS, _MASK, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_KILL_PROCESS, _ERROR, _ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
_NUMBER, _AUDIT = 0, 4
_ARGUMENTS = (16, 24, 32)  # the low halves, on these little-endian machines


def filter_for(
    machine: str,
    *,
    trusted: bool = False,
    in_cell: bool = False,
    image: int | None = None,
    sockets: bool = True,
    shared: bool = False,
    alone: bool = False,
    holder: bool = False,
) -> bytes | None:
    """Return the filter for a machine as ``uname -m`` names it; None if its calls are not known.

    A `trusted` process keeps the calls that make namespaces and mounts. In the cell of an image no socket can
    be made, and nowhere without `sockets`: cells share a network namespace, and could find each other there.

    A process in a cell that sends a deadly signal, to itself or another, dies of a fault (SIGSYS); it cannot
    stop a process, and it cannot have the kernel send a signal. So any other deadly signal came from outside.
    It can neither choose which process adopts its orphans nor change limits, priority, cores or memory of
    another process. `image` is the process id of the image that forks it, where both are in one cell: it can
    send that process no signal at all.

    `shared` is for a process that only Landlock separates from others (`farm_workers.box.landlock`): it can
    make no socket, lock nothing, and change nothing about a file but its content. With `alone` it can send
    signals only to the process whose id replaces `ITSELF` in the filter; without, Landlock must see to that.
    A `holder` of a session opens its forks' process ids.
    """
    here = MACHINES.get(machine)
    if here is None:
        return None
    program = [(_LOAD, 0, 0, _AUDIT), (_IS, 1, 0, here.audit), _give(_KILL_PROCESS), (_LOAD, 0, 0, _NUMBER)]
    if here.foreign_from is not None:
        program += _when(_AT_LEAST, here.foreign_from, errno.ENOSYS)
    program += _of_everybody(here, trusted=trusted)
    if shared:
        program += _where_shared(here)
    allowed = SOCKET_FAMILIES if sockets and not in_cell and not shared else ()
    families = [i for family in allowed for i in ((_IS, 0, 1, family), _give(_ALLOW))]
    program += _only(here.socket, _ARGUMENTS[0], [*families, _give(_ERROR | errno.EAFNOSUPPORT)])
    if in_cell or shared:
        program += _apart(here, kept={"pidfd_open"} if holder else set())
    if alone:
        program += _only_to_itself(here)
    if in_cell:
        program += _of_a_cell(here)
    if image is not None:
        program += _without_signals_to(image, here)
    program.append(_give(_ALLOW))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)


def _of_everybody(here: Architecture, *, trusted: bool) -> list[_Instruction]:
    program: list[_Instruction] = []
    for name, refused in REFUSED.items():
        number = refused[here.place]
        if number is not None and not (trusted and name in FOR_CELLS):
            program += _when(_IS, number, refused[0])
    if not trusted:
        flags = _CLONE_NEWUSER | _CLONE_PARENT  # no process would reap a sibling
        program += _only(here.clone, _ARGUMENTS[0], _when(_HAS, flags, errno.EPERM))
    requests = [i for request in _TERMINAL_REQUESTS for i in _when(_IS, request, errno.EPERM)]
    return program + _only(here.ioctl, _ARGUMENTS[1], requests)


def _apart(here: Architecture, kept: Set[str]) -> list[_Instruction]:
    """Refuse calls that act on other processes of the same user, or have the kernel do so later."""
    program: list[_Instruction] = []
    for name, refused_here in REFUSED_IN_CELLS.items():
        if name not in kept:
            program += _when(_IS, refused_here[here.place - 1], errno.EPERM)
    refused = _give(_ERROR | errno.EPERM)
    a_usual_signal = [(_MASK, 0, 0, _EXIT_SIGNAL), (_IS, 2, 0, 0), (_IS, 1, 0, _SIGCHLD), refused]
    program += _only(here.clone, _ARGUMENTS[0], a_usual_signal)
    later = [i for command in _SENDS_LATER for i in _when(_IS, command, errno.EPERM)]
    program += _only(here.fcntl, _ARGUMENTS[1], later)
    program += _only(here.prlimit, _ARGUMENTS[0], [(_IS, 1, 0, 0), refused])  # 0 is the process itself
    program += _only(here.prctl, _ARGUMENTS[0], _when(_IS, _CHILD_SUBREAPER, errno.EPERM))
    return program


def _where_shared(here: Architecture) -> list[_Instruction]:
    """Refuse calls that Landlock has no rule about."""
    program = _when(_AT_LEAST, _FIRST_UNKNOWN, errno.ENOSYS)
    for refused in REFUSED_WHERE_SHARED.values():
        number = refused[here.place]
        if number is not None:
            program += _when(_IS, number, refused[0])
    locks = [i for command in _LOCKS for i in _when(_IS, command, errno.EPERM)]
    program += _only(here.fcntl, _ARGUMENTS[1], locks)
    requests = [i for request in _HARMLESS_REQUESTS for i in ((_IS, 0, 1, request), _give(_ALLOW))]
    program += _only(here.ioctl, _ARGUMENTS[1], [*requests, _give(_ERROR | errno.EPERM)])
    ways = [(_MASK, 0, 0, _ACCESS | _TRUNCATES), *_when(_IS, _TRUNCATES, errno.EPERM)]
    ways += [(_MASK, 0, 0, _ACCESS), *_when(_IS, _ACCESS, errno.EPERM)]
    program += _only(here.openat, _ARGUMENTS[2], ways)
    return program + (_only(here.open, _ARGUMENTS[1], ways) if here.open is not None else [])


def _only_to_itself(here: Architecture) -> list[_Instruction]:
    """Refuse signals to other processes; a handle of a process cannot be compared with one's own id."""
    program: list[_Instruction] = []
    for *numbers, _ in _SENDING:
        number = numbers[here.place - 1]
        if number == _BY_HANDLE:
            program += _when(_IS, number, errno.EPERM)
        else:
            program += _only(number, _ARGUMENTS[0], [(_IS, 1, 0, ITSELF), _give(_ERROR | errno.EPERM)])
    return program


def _of_a_cell(here: Architecture) -> list[_Instruction]:
    program: list[_Instruction] = []
    program += _only(here.setrlimit, _ARGUMENTS[0], _when(_IS, _PROCESSOR_TIME, errno.EPERM))
    program += _only(here.prlimit, _ARGUMENTS[1], _when(_IS, _PROCESSOR_TIME, errno.EPERM))
    signals = [i for number in _DEADLY for i in ((_IS, 0, 1, number), _give(_KILL_PROCESS))]
    signals += [(_AT_LEAST, 0, 1, _FIRST_FREE), _give(_KILL_PROCESS)]
    signals += [i for number in _STOPPING for i in _when(_IS, number, errno.EPERM)]
    for *numbers, argument in _SENDING:
        program += _only(numbers[here.place - 1], _ARGUMENTS[argument], signals)
    return program


def _without_signals_to(process: int, here: Architecture) -> list[_Instruction]:
    """Refuse every call that could send a signal to a process, to its group, or to all processes."""
    places = [i for place in (process, -process, -1) for i in _when(_IS, place & 0xFFFFFFFF, errno.EPERM)]
    program = _when(_IS, _TKILL[here.place - 1], errno.EPERM)  # it names a thread, which could be any
    for *numbers, _ in _SENDING[:-1]:  # the last one takes a descriptor, which can only be a child's
        program += _only(numbers[here.place - 1], _ARGUMENTS[0], places)
    return program


#: Calls with which a process can compute, read and write its open files, and end; their numbers on x86-64 and
#: arm64.
COMPUTING: Mapping[str, tuple[int, int]] = MappingProxyType(
    {
        "read": (0, 63),
        "write": (1, 64),
        "close": (3, 57),
        "fstat": (5, 80),
        "lseek": (8, 62),
        "mmap": (9, 222),
        "mprotect": (10, 226),
        "munmap": (11, 215),
        "brk": (12, 214),
        "rt_sigaction": (13, 134),
        "rt_sigprocmask": (14, 135),
        "rt_sigreturn": (15, 139),
        "sched_yield": (24, 124),
        "mremap": (25, 216),
        "madvise": (28, 233),
        "nanosleep": (35, 101),
        "getpid": (39, 172),
        "exit": (60, 93),
        "getrusage": (98, 165),
        "sigaltstack": (131, 132),
        "gettid": (186, 178),
        "futex": (202, 98),
        "clock_gettime": (228, 113),
        "clock_nanosleep": (230, 115),
        "exit_group": (231, 94),
        "getrandom": (318, 278),
    }
)


#: Calls of a process that forks a child, which installs a filter, and waits for its end. A call that a
#: machine lacks is -1.
FORKING: Mapping[str, tuple[int, int]] = MappingProxyType(
    {
        "clone": (56, 220),
        "fork": (57, -1),
        "wait4": (61, 260),
        "getppid": (110, 173),
        "prctl": (157, 167),
        "set_robust_list": (273, 99),
        "dup3": (292, 24),
        "pipe2": (293, 59),
        "seccomp": (317, 277),
        "rseq": (334, 293),
        "close_range": (436, 436),
    }
)


def only_computing(machine: str, *, forks: bool = False) -> bytes | None:
    """Return the filter that only lets a process compute; None for a machine whose calls are not known.

    With `forks` the process may also fork children, which then install the filter without `forks`.
    """
    here = MACHINES.get(machine)
    if here is None:
        return None
    program = [(_LOAD, 0, 0, _AUDIT), (_IS, 1, 0, here.audit), _give(_KILL_PROCESS), (_LOAD, 0, 0, _NUMBER)]
    known = {**COMPUTING, **(FORKING if forks else {})}
    for numbers in known.values():
        if numbers[here.place - 1] < 0:
            continue
        program += [(_IS, 0, 1, numbers[here.place - 1]), _give(_ALLOW)]
    program.append(_give(_ERROR | errno.EPERM))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)


_Instruction = tuple[int, int, int, int]  # code, jump if true, jump if false, operand


def _give(what: int) -> _Instruction:
    return (_RETURN, 0, 0, what)


def _when(test: int, operand: int, error: int) -> list[_Instruction]:
    """Return an error if the loaded word passes a test."""
    return [(test, 0, 1, operand), _give(_ERROR | error)]


def _only(call: int, argument: int, body: list[_Instruction]) -> list[_Instruction]:
    """Put `body`, which checks an argument of one call, before the remaining instructions."""
    return [(_IS, 0, len(body) + 2, call), (_LOAD, 0, 0, argument), *body, (_LOAD, 0, 0, _NUMBER)]
