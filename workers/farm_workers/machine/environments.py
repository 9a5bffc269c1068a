"""Machine step: finds the environments of this machine."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from farm.errors import FarmError, SettingsError, UsageError
from farm.kinds import Kind
from farm.systems import known
from farm_workers.box.isolation import Isolation
from farm_workers.environments.bundled import WHEEL, embedded, is_embedded
from farm_workers.environments.configured import tables
from farm_workers.environments.environment import Environment
from farm_workers.environments.lean_environment import EMBEDDED, LeanEnvironment
from farm_workers.systems.known import system

#: The environments file in the farm's data folder, read when no other is named.
FILE = "farm.toml"
#: At most this many environments are examined at once: one may have to run Lake in its workspace.
_AT_ONCE = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class Installed:
    """The environments of one machine by name: the usable ones, and a problem for each of the others."""

    sound: Mapping[str, Environment]
    problems: Mapping[str, str]

    def __getitem__(self, name: str) -> Environment:
        """Return the environment of this name; raises UsageError with the reason if it is not usable."""
        if name in self.sound:
            return self.sound[name]
        if name in self.problems:
            raise UsageError(self.problems[name])
        raise UsageError(f"no environment is called {name!r}; this machine has: {', '.join(self.names)}")

    def lean(self, name: str) -> LeanEnvironment:
        """Return the Lean environment of this name; raises UsageError with the reason if it is not usable."""
        found = self[name]
        if not isinstance(found, LeanEnvironment):
            raise UsageError(
                f"{name!r} is an environment of {known.system(found.kind).name}; name one of Lean"
            )
        return found

    @property
    def names(self) -> list[str]:
        """The names of all of them."""
        return [*self.sound, *self.problems]

    def require_any(self) -> None:
        """Raise SettingsError when there is nothing to check with."""
        require_names(self.names)
        if not self.sound:
            raise SettingsError(f"no environment is usable: {'; '.join(self.problems.values())}")


def require_names(names: Collection[str]) -> None:
    """Raise SettingsError when no environment is configured."""
    if not names:
        raise SettingsError(
            f"this machine has no Lean: install the {WHEEL} package, or name an environment in {FILE} "
            "in FARM_HOME, or in the file that FARM_ENVIRONMENTS names; `farm environments add` does so"
        )


def installed(home: Path, file: Path | None, isolation: Isolation) -> Installed:
    r"""Return the environments of this machine: the embedded one and those that a file configures.

    `home` is the farm's data folder; the embedded core library is compiled there once, held by `isolation`,
    and `file`, when None, is the ``farm.toml`` there, if there is one. It has a table for each environment::

        [environments.mathlib]
        workspace = "/path/to/workspace"  # built with Lake; or lean_path = ["/folder/of/oleans", ...]
        lean = "/path/to/bin/lean"        # default: the workspace's, or the one on PATH
        toolchain = "4.22.0"              # refuse any other version
        options = ["-DmaxHeartbeats=400000"]
        header = "import Mathlib\n"       # header of its canaries; default: the first of headers
        headers = ["import Mathlib\n"]    # to be ready for; default: header
        visible = ["/nix/store"]          # other paths that Lean must be able to read
        checker = ["/path/to/leanchecker", "{module}"]  # another kernel, for the tier kernel
        checkers = [{command = ["/path/to/leanchecker", "{module}"], reads = "module"}]  # or several
        audit = false                     # modules of this Lean cannot be audited: lean only
        packages = "/lake-manifest.json"  # with lean_path: the manifest of the modules' workspace
        library_sorries = "permit"        # proofs may rest on declarations of the library with a sorry

    A problem of one environment does not affect the others: `Installed.problems` has it, with file, key and
    remedy. Without the wheel that brings Lean there is no embedded environment. Raises SettingsError when the
    file cannot be read as a whole.
    """
    return looked_at(configured(home, file, isolation))


def looked_at(found: Mapping[str, Configured]) -> Installed:
    """Return the environments, examined side by side."""

    def look(each: Configured) -> Environment | FarmError:
        try:
            return each.find()
        except FarmError as error:
            return error

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        answers = dict(zip(found, pool.map(look, found.values()), strict=True))
    return Installed(
        sound={name: each for name, each in answers.items() if not isinstance(each, FarmError)},
        problems={name: str(each) for name, each in answers.items() if isinstance(each, FarmError)},
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Configured:
    """An environment of the configuration, whose parts were not examined yet.

    `kind` is the proof system of its table. `find` examines its parts as they are now; it raises FarmError
    that names the file, the environment, the key and the remedy.
    """

    kind: str
    find: Callable[[], Environment]


def configured(home: Path, file: Path | None, isolation: Isolation) -> dict[str, Configured]:
    """Return the environments that `installed` examines, by name, without examining any."""
    file = file or home / FILE
    is_required = file != home / FILE
    found = {
        name: Configured(kind=_kind(table), find=partial(_read_again, name, file, home, required=is_required))
        for name, table in tables(file, required=is_required).items()
    }
    if EMBEDDED not in found and is_embedded():
        found[EMBEDDED] = Configured(kind=Kind.LEAN, find=partial(_embedded, home, isolation))
    return found


def _kind(table: object) -> str:
    return str(table.get("kind", Kind.LEAN)) if isinstance(table, dict) else Kind.LEAN


def _read_again(name: str, file: Path, home: Path, *, required: bool) -> Environment:
    """Return the environment of the present file: its owner may have corrected the table."""
    described = tables(file, required=required)
    try:
        if name not in described:
            raise SettingsError("its table is gone; restart the worker to forget it")
        return _of_table(name, described[name], home)
    except (FarmError, OSError) as error:
        raise SettingsError(f"{file}: environment {name!r}: {error}") from error


def _embedded(home: Path, isolation: Isolation) -> Environment:
    try:
        core = embedded(home, isolation)
    except (FarmError, OSError) as error:
        raise FarmError(f"environment {EMBEDDED!r}: {error}") from error
    if core is None:
        raise SettingsError(f"environment {EMBEDDED!r}: the {WHEEL} package is gone; install it")
    return core


def _of_table(name: str, table: object, home: Path) -> Environment:
    word = _kind(table)
    if isinstance(table, dict):
        table = {key: value for key, value in table.items() if key != "kind"}
    if word not in set(Kind):
        words = ", ".join(f'"{each}"' for each in Kind)
        raise SettingsError(f"kind: {word!r} is no proof system that this farm knows; write one of {words}")
    return system(Kind(word)).environment(name, table, home)
