"""Box step: makes the rules by which Linux itself refuses a process files, networks and signals.

Landlock needs no privilege and no namespace. A process that takes on a set of rules, for good and for all its
descendants, may open only the files and folders that the rules name; it may not trace or look into a process
outside, and newer kernels refuse it connections and signals to others as well. A filter of system calls
(`farm_workers.box.seccomp`) refuses the rest.

The numbers are those of <linux/landlock.h>; glibc has no functions for these calls, whose numbers are the
same on all machines. https://docs.kernel.org/userspace-api/landlock.html tells which version of the
interface, which is called the ABI, has which rights.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import platform
import struct
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from farm_workers.box import bubblewrap, seccomp
from farm_workers.box.bubblewrap import ETC, SYSTEM, python

_CREATE_RULESET, _ADD_RULE = 444, 445
_VERSION, _PATH_BENEATH = 1, 1
#: Rights to a file; the last two came with ABI 3 and 5.
_EXECUTE, _WRITE, _READ, _TRUNCATE, _IOCTL = 1 << 0, 1 << 1, 1 << 2, 1 << 14, 1 << 15
_LIST = 1 << 3
#: To remove folders and files, and to make folders, files, pipes and links.
_CHANGE = 1 << 4 | 1 << 5 | 1 << 7 | 1 << 8 | 1 << 10 | 1 << 12
#: To make devices and sockets, which no check may.
_MAKE_SPECIAL = 1 << 6 | 1 << 9 | 1 << 11
#: To move a file to another folder: ABI 1 refuses it to all.
_REFER = 1 << 13
_ABI_1 = _EXECUTE | _WRITE | _READ | _LIST | _CHANGE | _MAKE_SPECIAL
#: The rights to files that each ABI added.
_ADDED = {2: _REFER, 3: _TRUNCATE, 5: _IOCTL}
_NETWORK_ABI, _BIND_AND_CONNECT = 4, 1 << 0 | 1 << 1
#: The ABI that keeps a process from signalling others, and from connecting to their abstract sockets.
SCOPES_ABI, _SCOPES = 6, 1 << 0 | 1 << 1

_ALWAYS_THERE = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")

#: The folder of the farm's packages: Python lists it to find those that a command may read.
_CODE = Path(__file__).parents[2]

_LIBC = ctypes.CDLL(None, use_errno=True)


class NoLandlock(Exception):
    """Landlock is missing or refused: the message has the reason and the remedy."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Walls:
    """The separation of a command from others: rules of this kernel's Landlock, and a filter of system calls.

    `abi` is the version of Landlock's interface. `calls` is the filter of a command that runs a submission,
    None on a machine whose calls are not known. `lacking` are the promises that a probe could break.
    """

    abi: int
    calls: bytes | None
    lacking: tuple[str, ...] = ()

    @classmethod
    def here(cls) -> Walls:
        """Return the walls of this machine. Raises NoLandlock."""
        version = abi()
        alone = version < SCOPES_ABI
        return cls(abi=version, calls=seccomp.filter_for(platform.machine(), shared=True, alone=alone))

    def weakest(self) -> Walls:
        """Return these walls with the filter that refuses the fewest calls: that of sessions, if it exists.

        The filter of a fork of an image refuses all that `calls` refuses.
        """
        if not self.scopes:
            return self
        return replace(self, calls=seccomp.filter_for(platform.machine(), shared=True, holder=True))

    @property
    def name(self) -> str:
        """The word of the level: ``landlock``, or ``weak-landlock`` if a probe could break a promise."""
        return "weak-landlock" if self.lacking else "landlock"

    @property
    def words(self) -> str:
        """The kernel and its version of Landlock, for people."""
        return f"Linux {platform.release()}, Landlock {self.abi}"

    @property
    def scopes(self) -> bool:
        """Whether Landlock refuses signals to others; if not, a filter compares process ids."""
        return self.abi >= SCOPES_ABI

    def rules(
        self, readable: Iterable[Path], writable: Iterable[Path]
    ) -> contextlib.AbstractContextManager[int]:
        """Give the descriptor of the rules for one command. Raises OSError."""
        return ruleset(readable, writable, self.abi)

    @contextlib.contextmanager
    def around(self, readable: Iterable[Path], writable: Iterable[Path]) -> Iterator[tuple[int, ...]]:
        """Give the descriptors of the rules and of the filter for one command. Raises OSError."""
        with self.rules(readable, writable) as rules, bubblewrap.filtered(self.calls) as calls:
            yield (rules, *calls)


def abi() -> int:
    """Return the version of Landlock's interface in this kernel. Raises NoLandlock."""
    found: int = _LIBC.syscall(_CREATE_RULESET, None, 0, _VERSION)
    if found < 1:
        raise NoLandlock(_why(ctypes.get_errno()))
    return found


def _why(error: int) -> str:
    if error == errno.EOPNOTSUPP:
        return "it is switched off; add `landlock` to the list of the boot parameter lsm="
    if error == errno.ENOSYS:
        return (
            "this kernel has none, or a filter of system calls hides it; use Linux 5.13 or newer, built with "
            "CONFIG_SECURITY_LANDLOCK, and a container runtime from 2022 or newer"
        )
    name = errno.errorcode.get(error, error)
    return f"landlock_create_ruleset is refused ({name}); use a container runtime from 2022 or newer"


@contextlib.contextmanager
def ruleset(readable: Iterable[Path], writable: Iterable[Path], version: int) -> Iterator[int]:
    """Give the descriptor of a set of rules for one command, with the rights that an ABI has. Raises OSError.

    The system's programs and libraries and the Python of the farm can be read as well, as in a box with
    namespaces.
    """
    handled = _ABI_1
    for since, rights in _ADDED.items():
        handled |= rights if version >= since else 0
    words = [handled]
    words += [_BIND_AND_CONNECT] if version >= _NETWORK_ABI else []
    words += [_SCOPES] if version >= SCOPES_ABI else []
    attributes = struct.pack(f"={len(words)}Q", *words)
    rules = _require(
        _LIBC.syscall(_CREATE_RULESET, attributes, len(attributes), 0), "landlock_create_ruleset"
    )
    try:
        for path in (*_system(), *readable):
            _allow(rules, path, handled & (_READ | _LIST | _EXECUTE))
        _allow(rules, _CODE, handled & _LIST)
        for path in map(Path, _ALWAYS_THERE):
            _allow(rules, path, handled & (_READ | _WRITE))
        for path in writable:
            _allow(rules, path, handled & ~(_MAKE_SPECIAL | _IOCTL))
        yield rules
    finally:
        os.close(rules)


@lru_cache(maxsize=1)
def _system() -> tuple[Path, ...]:
    always = (Path("/usr"), *map(Path, SYSTEM), *map(Path, ETC))
    pythons = (Path(sys.base_prefix), Path(sys.base_exec_prefix), Path(python()))
    there = [path.resolve() for path in (*always, *pythons) if path.exists()]
    return tuple(
        path for path in dict.fromkeys(there) if not any(map(path.is_relative_to, {*there} - {path}))
    )


def _allow(rules: int, path: Path, rights: int) -> None:
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not path.is_dir():
            rights &= _EXECUTE | _WRITE | _READ | _TRUNCATE | _IOCTL
        rule = struct.pack("=Qi", rights, descriptor)
        _require(_LIBC.syscall(_ADD_RULE, rules, _PATH_BENEATH, rule, 0), f"landlock_add_rule {path}")
    finally:
        os.close(descriptor)


def _require(result: int, what: str) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), what)
    return result
