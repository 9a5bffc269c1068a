"""Environment step, by command: makes the files for a table of ``farm.toml``, from one of four sources.

Each source works step by step and notes finished steps in the environment's folder, so a second `farm
environments add` continues after the last finished step.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

from farm.errors import FarmError, UsageError
from farm.files import write_whole
from farm_workers.environments import bundle, lake
from farm_workers.environments.lake import Elan, LakeCommand
from farm_workers.environments.lean_environment import EMBEDDED
from farm_workers.environments.table import Value
from farm_workers.environments.toolchain import find

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
_NOTES = "farm-environment.json"

_AFTER_A_FAILURE = """\
farm.toml is as it was. Repeat the same `farm environments add`: it goes on where this one stopped. Without a
network, make the environment on another machine, and bring it: farm environments pack NAME FILE there, and
farm environments add NAME --from FILE here."""

#: Shows the progress of a step: it takes a title and gives the function to call with each new line.
Following = Callable[[str], AbstractContextManager[Callable[[str], None]]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Made:
    """The result of a source: the keys of a table, and the digest that it must have, if known."""

    keys: dict[str, Value]
    digest: str = ""


class Source(Protocol):
    """Where an environment comes from."""

    @property
    def words(self) -> str:
        """The source's name, for people and for the notes in its folder."""

    def commands(self, folder: Path) -> list[LakeCommand]:
        """Return the commands of the source, in their order."""

    def make(self, making: Making) -> Made:
        """Make the missing parts; raises FarmError."""


def require_name(name: str) -> None:
    """Raise UsageError for a name that is no folder's name."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} cannot be an environment's name here; use letters, digits, dots, hyphens and "
            "underscores, such as mathlib-4.22"
        )
    if name == EMBEDDED:
        raise UsageError(f"{EMBEDDED!r} is the environment that comes with the farm; choose another name")


@contextmanager
def alone(home: Path, name: str) -> Iterator[int]:
    """Let no other command make this environment; gives the descriptor that holds the lock.

    Raises FarmError while one does, or while a command that it has started still runs.
    """
    file = home / "environments" / f"{quote(name, safe='')}.lock"
    file.parent.mkdir(parents=True, exist_ok=True)
    held = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        _lock(held, name)
        yield held
    finally:
        os.close(held)


def _lock(held: int, name: str) -> None:
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise FarmError(
            f"{name} is being worked on: another `farm environments` command, or one that it has started, "
            "still runs; wait until it has ended"
        ) from error


@dataclass(frozen=True, kw_only=True, slots=True)
class Making:
    """One run of `farm environments add`: the environment, its folder, its lock, and how to show progress."""

    name: str
    folder: Path
    held: int
    say: Callable[[str], None]
    following: Following

    def claim(self, source: Source) -> None:
        """Make the environment's folder, or find it as an earlier run left it.

        Raises UsageError where it belongs to something else.
        """
        notes = self._notes()
        if notes and (notes.get("name"), notes.get("source")) != (self.name, source.words):
            raise UsageError(
                f"{self.folder} was made for {notes.get('name')} ({notes.get('source')}); choose another "
                "--dir, or remove that folder"
            )
        if not notes and self.folder.exists() and any(self.folder.iterdir()):
            raise UsageError(
                f"{self.folder} is not empty, and `farm environments add` did not make it; choose another "
                "--dir. To use a workspace that is built: --workspace"
            )
        if not notes:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.folder.chmod(0o755)
            self._note({"name": self.name, "source": source.words, "finished": []})

    def restart(self) -> None:
        """Note that no step is finished."""
        self._note({**self._notes(), "finished": []})

    def is_finished(self, step: str) -> bool:
        """Whether an earlier run has finished a step."""
        return step in self._finished()

    def finish(self, step: str) -> None:
        """Note that a step is finished."""
        self._note({**self._notes(), "finished": [*self._finished(), step]})

    def _finished(self) -> list[object]:
        steps = self._notes().get("finished")
        return steps if isinstance(steps, list) else []

    def run(self, command: LakeCommand, elan: Elan | None) -> None:
        """Run a command and show its output; raises FarmError with the output's last lines."""
        self.say(f"{command.purpose[0].upper()}{command.purpose[1:]}: {command.line}")
        try:
            with self.following(command.purpose) as told:
                lake.run(command, elan, told, held=self.held)
        except FarmError as error:
            raise FarmError(f"{error}\n{_AFTER_A_FAILURE}") from error

    def install(self, toolchain: str, elan: Elan) -> Path:
        """Return the Lean of a toolchain; elan installs a missing one."""
        lean = elan.lean(toolchain)
        if not lean.exists():
            self.run(elan.install(toolchain), elan)
            if not lean.exists():
                raise FarmError(
                    f"elan has installed {toolchain}, and yet there is no {lean}; look into {elan.home}"
                )
        with suppress(PermissionError):  # it may belong to another user
            make_readable(lean.parent.parent)
        return lean

    def _notes(self) -> dict[str, object]:
        return notes_of(self.folder)

    def _note(self, notes: dict[str, object]) -> None:
        write_whole(self.folder / _NOTES, json.dumps(notes).encode())


def notes_of(folder: Path) -> dict[str, object]:
    """Return the notes of `farm environments add` in a folder that it made, else nothing."""
    try:
        notes = json.loads((folder / _NOTES).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return notes if isinstance(notes, dict) else {}


@dataclass(frozen=True, slots=True)
class Mathlib:
    """A release of Mathlib, fetched with git, elan and Lake."""

    version: str

    @property
    def words(self) -> str:
        """The source's name."""
        return f"Mathlib {self.version}"

    def commands(self, folder: Path) -> list[LakeCommand]:
        """Return the commands that make it."""
        workspace = folder / "workspace"
        program = Elan(program="elan", home=Path())
        return [
            lake.clone_mathlib(self.version, workspace),
            program.install(lake.toolchain_of(self.version)),
            lake.fetch_modules(workspace),
            lake.build_mathlib(workspace),
        ]

    def make(self, making: Making) -> Made:
        """Fetch, install, download and compile the missing parts."""
        elan = Elan.found()
        making.claim(self)
        workspace = making.folder / "workspace"
        if not workspace.exists():
            part = making.folder / ".workspace.part"
            shutil.rmtree(part, ignore_errors=True)  # of one that was interrupted
            making.restart()
            making.run(lake.clone_mathlib(self.version, part), elan)
            part.rename(workspace)
        toolchain = lake.toolchain_of_workspace(workspace)
        lean = making.install(toolchain, elan)
        for command in (lake.fetch_modules(workspace), lake.build_mathlib(workspace)):
            if not making.is_finished(command.line):
                making.run(command, elan)
                making.finish(command.line)
        make_readable(workspace)
        return Made(keys={"workspace": str(workspace), "lean": str(lean), "headers": ["import Mathlib\n"]})


@dataclass(frozen=True, slots=True)
class Release:
    """A release of Lean alone, installed with elan."""

    version: str

    @property
    def words(self) -> str:
        """The source's name."""
        return f"Lean {self.version}"

    def commands(self, folder: Path) -> list[LakeCommand]:
        """Return the commands that make it."""
        return [Elan(program="elan", home=folder).install(lake.toolchain_of(self.version))]

    def make(self, making: Making) -> Made:
        """Install a missing toolchain."""
        lean = making.install(lake.toolchain_of(self.version), Elan.found())
        return Made(keys={"lean": str(lean), "headers": ["import Init\n"]})


@dataclass(frozen=True, slots=True)
class Workspace:
    """A workspace that was built with Lake before; it is never changed."""

    path: Path

    @property
    def words(self) -> str:
        """The source's name."""
        return f"the workspace {self.path}"

    def commands(self, folder: Path) -> list[LakeCommand]:  # noqa: ARG002 - as all sources
        """Return no commands: it is there."""
        return []

    def make(self, making: Making) -> Made:  # noqa: ARG002 - as all sources
        """Find the workspace and its Lean."""
        if not self.path.is_dir():
            raise UsageError(
                f"--workspace {self.path}: there is no such folder; name one that was built with Lake"
            )
        return Made(keys={"workspace": str(self.path), "lean": str(find(None, str(self.path)).lean)})


@dataclass(frozen=True, slots=True)
class Bundle:
    """A bundle that `farm environments pack` has made on another machine."""

    file: Path

    @property
    def words(self) -> str:
        """The source's name."""
        return f"the bundle {self.file.name}"

    def commands(self, folder: Path) -> list[LakeCommand]:  # noqa: ARG002 - as all sources
        """Return no commands: the farm unpacks it itself."""
        return []

    def make(self, making: Making) -> Made:
        """Unpack the bundle, unless it is unpacked."""
        making.claim(self)
        unpacked = making.folder / "bundle"
        if not unpacked.exists():
            making.say(f"Unpack {self.file} into {unpacked}")
            with making.following("unpacking") as follow:
                bundle.unpack(self.file, unpacked, follow)
        keys, digest = bundle.unpacked(unpacked)
        return Made(keys=keys, digest=digest)


def make_readable(folder: Path) -> None:
    """Let every user read a folder and its content, like ``chmod -R a+rX``: checks may run as another."""
    for here, _, names in os.walk(folder):
        for path in (Path(here), *(Path(here, name) for name in names)):
            state = path.lstat()
            if stat.S_ISLNK(state.st_mode):
                continue
            needed = 0o444 | (0o111 if stat.S_ISDIR(state.st_mode) or state.st_mode & 0o111 else 0)
            if state.st_mode & needed != needed:
                path.chmod(stat.S_IMODE(state.st_mode) | needed)


def delete(folder: Path, name: str) -> None:
    """Delete a folder that `farm environments add` made for it; raises UsageError for others."""
    if notes_of(folder).get("name") != name:
        raise UsageError(f"{folder} was not made by `farm environments add {name}`; delete it by hand")
    gone = folder.with_name(f".{folder.name}.deleted")
    with suppress(FileNotFoundError):
        shutil.rmtree(gone)
    folder.rename(gone)
    shutil.rmtree(gone)
