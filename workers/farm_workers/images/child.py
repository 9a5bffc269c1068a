"""Image step, cells: confines a fork of an image before it works on a check or a seal.

The fork of a check goes into its control group, makes the mounts of its cell, and waits at the gate; a keeper
(`farm_workers.images.pid_namespace`) is process 1 of its pid namespace, if it has one. Then it drops every
capability, closes every descriptor, and installs a filter of system calls, before it reads the text.

A seal runs no code of a submission. It needs no namespaces, only a filter that lets it compute.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import mmap
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from farm_workers.binding.objects import LeanError
from farm_workers.box import launch
from farm_workers.box.sockets import socket_of
from farm_workers.images import protocol
from farm_workers.images.accounts import Unaccounted, require_accounted
from farm_workers.images.banned import write_banned
from farm_workers.images.compiled import Compiler
from farm_workers.images.examples import Examples
from farm_workers.images.extracting import write_extract
from farm_workers.images.filling import filling_in
from farm_workers.images.filters import Filter
from farm_workers.images.frontend import Frontend, NotWritten
from farm_workers.images.goals import write_goals
from farm_workers.images.outlining import write_outline
from farm_workers.images.printing import printer
from farm_workers.images.process import require
from farm_workers.images.reading import read_in
from farm_workers.seal import Kernel, SealRequest, seal

# From <linux/sched.h> and <linux/mount.h>.
_NEW_MOUNTS, _NEW_IPC = 0x00020000, 0x08000000
_PRIVATE, _RECURSIVE, _NO_SUID, _NO_DEVICES, _DETACH = 1 << 18, 1 << 14, 2, 4, 2
#: The folder of a cell: its own, in memory.
FOLDER = "/tmp"  # noqa: S108 - a mount of the cell's own
#: The most seconds for writing goals, and the largest part of the remaining limits. With less than the last
#: of these remaining, no goals are written.
_GOALS_SECONDS, _GOALS_PART, _LEAST_SECONDS = 2.0, 0.5, 0.05
#: A folder with less room counts as full.
_LEAST_ROOM_BYTES = 1 << 20

_LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, kw_only=True, slots=True)
class Surroundings:
    """The surroundings of an image's forks.

    `namespaces`: whether the image may make any; `walls`: whether the worker passes Landlock's rules;
    `workshop` is the folder in which a fork makes its own folder, None if the worker passes one; `user` is
    the user of a check, -1 to keep the present one; `parent` is the parent of a fork while the image lives.
    `check_calls`, `seal_calls`, `native_calls` (of a seal that evaluates terms in forks of itself) and
    `image_calls` (of an image that reads a context) are filters, None on a machine whose calls are not known.
    `kept` are the image's own descriptors, which its library expects to stay open; `data_bytes` is the memory
    that it has reserved, and `limits` are its own, which its forks inherit.
    """

    namespaces: bool
    walls: bool
    workshop: str | None
    user: int
    parent: int
    check_calls: Filter | None
    seal_calls: Filter | None
    native_calls: Filter | None
    image_calls: Filter | None
    kept: frozenset[int]
    data_bytes: int
    limits: dict[int, int]


def check_in(frontend: Frontend, place: Surroundings, files: Sequence[int]) -> int:
    """Do the work of one check in this process, which must exit with the returned status."""
    asked = confined(place, files)
    if asked is None:
        return 1
    if "reading" in asked:
        return _read(lambda: read_in(frontend, asked["reading"]))
    if "filling" in asked:
        return _read(lambda: filling_in(frontend, asked["filling"]))
    if "extracting" in asked:
        return write_extract(frontend, asked["extracting"])
    if "outline" in asked:
        return write_outline(frontend, asked["outline"])
    began = time.monotonic()
    status = _elaborate(frontend, asked, in_own_room=place.namespaces or place.workshop is not None)
    if status == 0 and (banned := asked.get("banned")):
        with contextlib.suppress(LeanError, FileExistsError):  # without the file the check is not accepted
            write_banned(frontend, asked["program"], banned)
    if asked.get("goals"):
        _add_goals(frontend, asked, began)
    return status


def confined(place: Surroundings, files: Sequence[int]) -> protocol.Asked | None:
    """Confine this process, the fork of a check, and return its request; None if the worker is gone.

    It waits at the gate, then drops the image's rights and descriptors: only its own output is open when this
    returns.
    """
    held = at_the_gate(place, files, protocol.CHECK, lambda: [_folder(place, files)])
    if held is None:
        return None
    asked = _given_up(place, files, *held)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them
        signal.signal(number, signal.SIG_DFL)
    limit(asked, place.data_bytes)
    return asked if _enclosed(place, place.check_calls) else None


def confined_image(place: Surroundings, files: Sequence[int]) -> tuple[protocol.Asked, socket.socket] | None:
    """Confine this process as `confined` does, to be an image that runs untrusted code.

    Return its request and its socket to the worker. It can kill its descendants, and set the limits of its
    forks: it has none of its own, and the worker watches it.
    """
    held = at_the_gate(place, files, protocol.ON_CONTEXT, lambda: [_folder(place, files)])
    if held is None:
        return None
    asked = _given_up(place, files, *held, spared=files[protocol.IMAGE])
    return (asked, socket_of(files[protocol.IMAGE])) if _enclosed(place, place.image_calls) else None


def image_on_module(
    place: Surroundings, files: Sequence[int]
) -> tuple[bytes, socket.socket, memoryview | None] | None:
    """Make this process an image that reads a module.

    Return the module, its socket to the worker and the table of dependencies.
    """
    if at_the_gate(place, files, protocol.ON_MODULE, list) is None:
        return None
    launch.prctl(launch.PR_SET_CHILD_SUBREAPER, 1)  # adopts processes that outlive its seals
    module = bytes(_mapped(files[protocol.MODULE]))
    has_table = read(files[protocol.REQUEST])["with_table"]
    table = _mapped(files[protocol.TABLE_OF_IMAGE]) if has_table else None
    take_descriptors(files, place.kept, files[protocol.IMAGE])
    return module, socket_of(files[protocol.IMAGE]), table


def seal_in(
    frontend: Frontend, compiler: Compiler, kernel: Kernel, place: Surroundings, files: Sequence[int]
) -> int:
    """Do the work of one seal in this process, and print its answer as one JSON object."""
    held = at_the_gate(place, files, protocol.SEAL, list)
    return 1 if held is None else _seal(frontend, compiler, kernel, place, files)


def at_the_gate(
    place: Surroundings, files: Sequence[int], what: bytes, made: Callable[[], list[int]]
) -> list[int] | None:
    """Join the fork's control group, send the descriptors of `made` to the worker, and wait for its go.

    Return the descriptors of `made`; None if joining failed, somebody lowered the image's limits, or the
    worker is gone.
    """
    with socket_of(files[protocol.SOCKET]) as worker:
        try:
            launch.require_limits(
                place.limits
            )  # otherwise they could end a check that exceeds none of its own
            _join(files[protocol.FIRST_DOOR[what] :])
            held = made()
        except OSError as error:
            protocol.tell(worker.fileno(), error)
            return None
        socket.send_fds(worker, [protocol.READY], held)
        return held if worker.recv(protocol.MOST_BYTES) == protocol.GO else None


def _folder(place: Surroundings, files: Sequence[int]) -> int:
    if place.workshop is not None:
        return os.open(place.workshop, os.O_RDONLY | os.O_DIRECTORY)
    return _furnished(max(place.user, 0)) if place.namespaces else files[protocol.FOLDER]


def _join(doors: Sequence[int]) -> None:
    """Join the control group of these descriptors."""
    for door in doors:
        os.write(door, b"0")
        os.close(door)


def clear_away() -> None:
    """Unmount /proc and terminals, of this process and so of its forks."""
    for shared in (b"/proc", b"/dev/pts"):
        require(_LIBC.umount2(shared, _DETACH), "umount")


def _furnished(owner: int) -> int:
    """Make the cell's own mounts; return its folder, which belongs to `owner`."""
    require(_LIBC.unshare(_NEW_MOUNTS | _NEW_IPC), "unshare")
    require(_LIBC.mount(None, b"/", None, _PRIVATE | _RECURSIVE, None), "mount")
    options = f"size={launch.FILE_BYTES},nr_inodes=4096,mode=0755,uid={owner},gid={owner}".encode()
    require(_LIBC.mount(b"tmpfs", FOLDER.encode(), b"tmpfs", _NO_SUID | _NO_DEVICES, options), "mount")
    return os.open(FOLDER, os.O_RDONLY | os.O_DIRECTORY)


def _given_up(place: Surroundings, files: Sequence[int], folder: int, *, spared: int = 0) -> protocol.Asked:
    """Close all descriptors of the image except `spared`, and return the request."""
    os.fchdir(folder)
    if not place.namespaces:
        os.environ["HOME"] = os.environ["TMPDIR"] = os.getcwd()  # noqa: PTH109
    asked = read(files[protocol.REQUEST])
    if place.walls:
        launch.restrict(files[protocol.RULES])
    take_descriptors(files, place.kept, *filter(None, [spared]))
    os.setsid()
    return asked


def _enclosed(place: Surroundings, calls: Filter | None) -> bool:
    """Drop all rights, and install a filter; False if the image has ended."""
    launch.prctl(launch.PR_SET_CHILD_SUBREAPER, 1)  # descendants stay below it while it lives
    launch.become(place.user, reads_all=False)
    launch.prctl(launch.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != place.parent:
        return False
    if calls:
        calls.take()
    return True


def _elaborate(frontend: Frontend, asked: protocol.Asked, *, in_own_room: bool) -> int:
    if asked.get("stop_at_error"):
        frontend.report_in_commands()
    try:
        accepted = frontend.elaborate(
            asked["program"],
            asked["module"],
            asked.get("writes", protocol.ALL),
            asked.get("context", ""),
            added=lambda: _added(frontend, asked),
        )
    except Unaccounted:
        accepted = False
    except NotWritten as error:
        print(f"the module was not written: {error}", file=sys.stderr)  # noqa: T201 - talk
        # The folder of the cell has files of the program only, and they are examined later. Where none of
        # them explains the error, this machine failed: an end without an answer says that.
        accepted = _is_in_the_way(asked["module"], in_own_room=in_own_room)
    if frontend.reached_end():
        _print_mark(asked.get("mark", ""))
    return 0 if accepted else 1


def _is_in_the_way(module: str, *, in_own_room: bool) -> bool:
    """Return whether files in the present folder keep Lean from writing a module there.

    Where the folder is on a disk of the machine, a full disk explains nothing, nor does a file that Lean may
    have written: only a folder, which no file can replace.
    """
    if not in_own_room:
        return Path(module).is_dir() and not Path(module).is_symlink()
    room = os.statvfs(".")
    is_full = room.f_bavail * room.f_frsize < _LEAST_ROOM_BYTES or room.f_favail == 0
    return is_full or os.path.lexists(module)


def _read(answered: Callable[[], Mapping[str, object]]) -> int:
    """Write the answer of a reading, or the reason for which there is none."""
    try:
        answer = answered()
    except LeanError as error:
        answer = {"error": str(error)}
    with open(protocol.READING_NAME, "x", encoding="utf-8") as file:  # noqa: PTH123
        json.dump(answer, file)
    return 0


def _added(frontend: Frontend, asked: protocol.Asked) -> list[tuple[int, int]]:
    """Return the constants to add to the module, besides those that Lean keeps.

    Raises Unaccounted for a program that declares what its module lacks.
    """
    if not asked.get("examples"):
        return []
    examples = Examples(frontend, asked["program"], asked["moved"])
    constants = examples.constants()
    require_accounted(frontend, asked["program"], examples)
    return constants


def _print_mark(mark: str) -> None:
    """Print the end mark of a program as a message of Lean's."""
    os.write(1, json.dumps({"severity": "information", "data": mark}).encode() + b"\n")


def _add_goals(frontend: Frontend, asked: protocol.Asked, began: float) -> None:
    """Write the program's goals within its remaining limits, so that it exceeds none.

    Without a control group that counts memory, pages shared with the parent count twice.
    """
    if 2 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10) > asked["memory_bytes"]:
        return
    wall_seconds, cpu_seconds = asked["goals"] or (0.0, 0.0)
    left = min(wall_seconds - (time.monotonic() - began), cpu_seconds - time.process_time())
    seconds = min(_GOALS_SECONDS, _GOALS_PART * left)
    if seconds >= _LEAST_SECONDS:
        with contextlib.suppress(OSError):  # no room for one more process: the goals are omitted
            write_goals(frontend, asked["program"], protocol.GOALS_NAME, seconds=seconds)


#: The most seconds for printing the answers that a proof gives.
_PRINTING_SECONDS = 2.0
#: The module of Lean's library in which the types are declared that the compiler represents by their names.
_LEANS_OWN = ("Init", "Prelude")


def _seal(
    frontend: Frontend, compiler: Compiler, kernel: Kernel, place: Surroundings, files: Sequence[int]
) -> int:
    asked = read(files[protocol.REQUEST])
    into = files[protocol.SEALED] if asked.pop("with_sealed") else None
    request = SealRequest(
        into=into,
        module=_mapped(files[protocol.MODULE]),
        challenge=_mapped(files[protocol.CHALLENGE]) if asked.pop("with_challenge") else None,
        parent=_mapped(files[protocol.PARENT]) if asked.pop("with_parent") else None,
        dependencies=_mapped(files[protocol.TABLE]) if asked.pop("with_table") else None,
        **asked.pop("request"),
    )
    if request.challenge is None:
        request = replace(request, imports=frontend.imported)
    take_descriptors(files, place.kept, *filter(None, [into]))
    frontend.begin()
    limit(asked, place.data_bytes)
    calls = place.seal_calls
    # Without a filter compiled code is not run at all. The compiler gives `Char`, `String` and other names of
    # Lean's the representations of its own library, which are wrong for a library that defines them anew.
    if request.native and calls and frontend.imports(*_LEANS_OWN):
        kernel, calls = replace(kernel, compiled=compiler.apart(calls)), place.native_calls
        os.setpgid(0, 0)  # the image ends these forks with the seal
    if request.answers and calls:
        left = 0.5 * (asked["cpu_seconds"] - time.process_time())
        seconds = min(_PRINTING_SECONDS, left) if asked["cpu_seconds"] >= 0 else _PRINTING_SECONDS
        printed = printer(frontend.lean, compiler.context, calls, seconds)
        kernel, calls = replace(kernel, printed=printed), place.native_calls
        os.setpgid(0, 0)
    if calls:
        calls.take()
    facts = seal(frontend.lean, kernel, request, asks=lambda: os.write(1, protocol.KERNEL_ASKED))
    answer = memoryview(json.dumps(facts).encode())
    while answer:
        answer = answer[os.write(1, answer) :]
    return 0


def _mapped(file: int) -> memoryview:
    return memoryview(mmap.mmap(file, 0, access=mmap.ACCESS_READ))


def read(file: int) -> protocol.Asked:
    """Return a request."""
    size = os.fstat(file).st_size
    found: protocol.Asked = json.loads(os.pread(file, size, 0))
    return found


def take_descriptors(files: Sequence[int], kept: frozenset[int], *spared: int) -> None:
    """Keep this process's output and the spared descriptors open, and close the others."""
    nothing = os.open(os.devnull, os.O_RDWR)
    stdout, stderr = (os.dup(files[number]) for number in (protocol.STDOUT, protocol.STDERR))
    for descriptor in kept | {0}:
        os.dup2(nothing, descriptor)
    os.dup2(stdout, 1)
    os.dup2(stderr, 2)
    first = 3
    for descriptor in sorted(kept.union(spared) - {0, 1, 2}):
        if first < descriptor:
            os.closerange(first, descriptor)
        first = descriptor + 1
    os.closerange(first, launch.OPEN_FILES)


def limit(asked: protocol.Asked, data_bytes: int) -> None:
    """Set the kernel's limits, a second line of defence behind the worker's watch."""
    if asked["cpu_seconds"] >= 0:
        launch.limit(resource.RLIMIT_CPU, asked["cpu_seconds"], asked["cpu_seconds"] + 1)
    launch.limit(resource.RLIMIT_DATA, data_bytes + asked["memory_bytes"] + launch.RESERVED_BYTES)
    if asked["tasks"] >= 0:
        launch.limit(resource.RLIMIT_NPROC, asked["tasks"])
