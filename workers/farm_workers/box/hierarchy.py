"""Box step: finds the place where this process can make control groups, and prepares it."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from farm import place
from farm_workers.box import launch, obstacles, procfs
from farm_workers.box.cgroup import PROCESSES, Groups, pids_in, write


class NoGroups(Exception):
    """No control groups can be made here; the message gives the reason and the remedy."""


@contextlib.contextmanager
def own_groups(given: Path | None, own_name: str) -> Iterator[Groups]:
    """Find a place for control groups, and make this process's own one there, called `own_name`.

    `given` is a group: its folder (with version 1, its folder in any hierarchy), or its name as
    ``/proc/PID/cgroup`` writes it; the default is the group of this process. Version 2 is taken if it can
    limit memory and processes. Groups that dead processes left are removed. Raises NoGroups.
    """
    mounts = _mounts()
    name = None if given is None else _name(mounts, given)
    with contextlib.ExitStack() as undo:
        yield _found(mounts, name, own_name, undo)


def groups_around(controller: str) -> list[Path]:
    """Return the folders of the groups around this process that limit by a controller, innermost first."""
    for mount in _mounts():
        if mount.version == 1 and controller not in mount.controllers:
            continue
        with contextlib.suppress(NoGroups, ValueError):  # it sees the folders of other groups alone
            own = Path(_own_path("" if mount.version == 2 else controller)).relative_to(mount.root)
            found = [mount.folder / each for each in (own, *own.parents)]
            if any((each / f"{controller}.max").exists() for each in found):
                return found
    return []


def remove_dead(given: Path | None) -> None:
    """Remove the control groups that dead processes left where `own_groups` makes them, and that can be."""
    mounts = _mounts()
    name = None if given is None else _name(mounts, given)
    for version, bases_of in ((2, _bases2), (1, _bases1)):
        with contextlib.suppress(NoGroups, OSError):
            _remove_dead(version, bases_of([mount for mount in mounts if mount.version == version], name))


def _found(mounts: list[_Mount], given: str | None, own_name: str, undo: contextlib.ExitStack) -> Groups:
    reasons = []
    for version, find in ((2, _found2), (1, _found1)):
        there = [mount for mount in mounts if mount.version == version]
        try:
            if there:
                with contextlib.ExitStack() as attempt:
                    groups = find(there, given, own_name, attempt)
                    undo.push(attempt.pop_all())
                return groups
        except NoGroups as why:
            reasons.append(str(why))
        except OSError as error:
            what = f"{error.filename or 'a control group'}: {error.strerror}"
            reasons.append(f"{what}; {obstacles.writable_groups(error.errno) or _remedy(version)}")
    raise NoGroups("; ".join(reasons) or "none are mounted")


def _remedy(version: int) -> str:
    """Return the command that makes a group writable for this process, for hosts and not for containers."""
    if version == 1:
        return "version 1 needs root, or a writable group in FARM_CGROUP"
    return place.here().delegate()


@dataclass(frozen=True, kw_only=True, slots=True)
class _Mount:
    """A mounted hierarchy: its folder, the group of that folder, and its controllers (version 1)."""

    folder: Path
    root: Path
    version: int
    controllers: frozenset[str]


def _mounts() -> list[_Mount]:
    """Read the mounted hierarchies, proc_pid_mountinfo(5)."""
    mounts = []
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        front, _, back = line.partition(" - ")
        kind, _, options = back.split(" ", 2)
        controllers = frozenset(options.split(","))
        if kind == "cgroup2" or (kind == "cgroup" and not controllers.isdisjoint(_CONTROLLERS)):
            root, folder = (Path(_unescaped(word)) for word in front.split(" ")[3:5])
            version = 2 if kind == "cgroup2" else 1
            mounts.append(_Mount(folder=folder, root=root, version=version, controllers=controllers))
    return mounts


def _unescaped(word: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), word)


def _own_path(controller: str) -> str:
    """Return the group this process is in, cgroups(7); the empty controller is that of version 2."""
    for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            return path
    raise NoGroups(f"this process is in no control group of {controller or 'version 2'}")


def _name(mounts: list[_Mount], folder: Path) -> str:
    """Return the name of the group with this folder; any other path is taken as a name."""
    for mount in sorted(mounts, key=lambda mount: len(mount.folder.parts), reverse=True):
        if folder.is_relative_to(mount.folder):
            return str(mount.root / folder.relative_to(mount.folder))
    return str(folder)


def _place(mount: _Mount, name: str) -> Path:
    """Return the folder of a group under a mount."""
    if not Path(name).is_relative_to(mount.root):
        raise NoGroups(f"the control group {name} is not visible at {mount.folder}")
    return mount.folder / Path(name).relative_to(mount.root)


# Version 1.

_CONTROLLERS = ("memory", "pids", "cpuacct", "freezer")


def _bases1(mounts: list[_Mount], given: str | None) -> dict[str, Path]:
    """Return the group of each controller below which this process can make its own. Raises NoGroups."""
    bases: dict[str, Path] = {}
    for controller in _CONTROLLERS:
        mount = next((mount for mount in mounts if controller in mount.controllers), None)
        if mount is None:
            raise NoGroups(f"version 1 has no controller {controller}")
        bases[controller] = _place(mount, _own_path(controller) if given is None else given)
        if not bases[controller].is_dir():
            raise NoGroups(
                f"there is no control group {bases[controller]}; create it, or set FARM_CGROUP to another"
            )
    return bases


def _found1(mounts: list[_Mount], given: str | None, own_name: str, undo: contextlib.ExitStack) -> Groups:
    bases = _bases1(mounts, given)
    _remove_dead(1, bases)
    groups = Groups(version=1, folders=_below(bases, own_name), here=None)
    undo.callback(groups.clear)
    for folder in dict.fromkeys(groups.folders.values()):
        folder.mkdir()
    return groups


# Version 2.

_NEEDED = ("memory", "pids")
#: The leaf of a process's own group that contains the process, if the kernel requires a leaf.
_SELF = "self"


def _bases2(mounts: list[_Mount], given: str | None) -> dict[str, Path]:
    """Return the group of each controller below which this process can make its own. Raises NoGroups."""
    if not mounts:
        raise NoGroups("version 2 is not mounted")
    base = _place(mounts[0], _own_path("") if given is None else given)
    if base.name == _SELF and procfs.is_own_name(base.parent.name):
        base = base.parent.parent  # an earlier process of the farm moved there
    offered = (base / "cgroup.controllers").read_text(encoding="ascii").split()
    if lacking := [name for name in _NEEDED if name not in offered]:
        raise NoGroups(f"version 2 has no controller {' and '.join(lacking)} at {base}")
    return dict.fromkeys(_NEEDED, base)


def _found2(mounts: list[_Mount], given: str | None, own_name: str, undo: contextlib.ExitStack) -> Groups:
    bases = _bases2(mounts, given)
    base = bases[_NEEDED[0]]
    _remove_dead(2, bases)
    own = base / own_name
    own.mkdir()
    undo.callback(Groups(version=2, folders=_below(bases, own_name), here=None).clear)
    _share(base, own, undo)
    here = None
    with contextlib.suppress(NoGroups):  # the process's group can be outside of the mount
        here = _place(mounts[0], _own_path(""))
    return Groups(version=2, folders=_below(bases, own_name), here=here)


def _share(base: Path, own: Path, undo: contextlib.ExitStack) -> None:
    """Let memory and processes be limited below the own group.

    A group other than the root cannot both hold processes and delegate controllers, so this process's
    processes are moved to a leaf, if the group has no others.
    """
    missing = _not_shared(base)
    if missing and (base / "cgroup.type").exists() and (pids := pids_in(base)):
        if strangers := set(pids) - _own_processes():
            others = f"{base} contains {len(strangers)} processes that are not the farm's"
            raise NoGroups(f"{others}; {_remedy(2)}")
        (own / _SELF).mkdir()
        undo.callback(_leave, own / _SELF, base)
        _move(base, own / _SELF)
    if missing:
        write(base / _SHARED, " ".join(f"+{name}" for name in missing))
        undo.callback(_unshare, base, missing, own)
    write(own / _SHARED, " ".join(f"+{name}" for name in _NEEDED))


def _own_processes() -> set[int]:
    """Return this process, its descendants, and the process 1 of a container that started it."""
    first = {1} if os.getppid() == 1 else set()
    return {os.getpid(), *launch.descendants(os.getpid())} | first


_SHARED = "cgroup.subtree_control"


def _not_shared(base: Path) -> list[str]:
    shared = (base / _SHARED).read_text(encoding="ascii").split()
    return [name for name in _NEEDED if name not in shared]


def _move(source: Path, target: Path) -> None:
    while pids := pids_in(source):  # again, because they may fork
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                write(target / PROCESSES, pid)


def _leave(leaf: Path, base: Path) -> None:
    """Move back from the leaf, unless others still need the delegation."""
    if not _not_shared(base):
        return
    with contextlib.suppress(OSError):  # else the next process of the farm removes it
        _move(leaf, base)
        leaf.rmdir()


def _unshare(base: Path, names: list[str], own: Path) -> None:
    """Withdraw the delegation at `base`, unless another group uses it by now."""
    if any(each.is_dir() and each != own for each in base.iterdir()):
        return
    for folder in (own, base):
        with contextlib.suppress(OSError):  # else the delegation stays, which is harmless
            write(folder / _SHARED, " ".join(f"-{name}" for name in names))


def _below(bases: Mapping[str, Path], name: str) -> dict[str, Path]:
    return {controller: base / name for controller, base in bases.items()}


def _remove_dead(version: int, bases: Mapping[str, Path]) -> None:
    """Remove the groups that dead processes left at `bases`; those that cannot be removed stay."""
    names = {each.name for base in set(bases.values()) for each in base.glob("farm-*")}
    for name in filter(procfs.is_left_over, names):
        folders = _below(bases, name)
        for folder in set(folders.values()):
            with contextlib.suppress(OSError):
                (folder / _SELF).rmdir()
        Groups(version=version, folders=folders, here=None).clear()
