"""Environment step: which environments this machine has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from farm.errors import FarmError, SettingsError, UsageError
from farm.kinds import Kind
from farm_workers.box.isolation import Isolation
from farm_workers.environments import hol_light, metamath
from farm_workers.environments.bundled import WHEEL, embedded
from farm_workers.environments.configured import Table, tables
from farm_workers.environments.environment import Environment
from farm_workers.environments.lean_environment import EMBEDDED, LeanEnvironment

#: The environments file in the farm's data folder, read when no other is named.
FILE = "farm.toml"


@dataclass(frozen=True, kw_only=True, slots=True)
class Installed:
    """The environments of one machine by name: those it can use, and what is wrong with the others."""

    sound: Mapping[str, Environment]
    problems: Mapping[str, str]

    def __getitem__(self, name: str) -> Environment:
        """Return the environment of this name; raises UsageError that says why there is none."""
        if name in self.sound:
            return self.sound[name]
        if name in self.problems:
            raise UsageError(self.problems[name])
        raise UsageError(f"no environment is called {name!r}; this machine has: {', '.join(self.names)}")

    def lean(self, name: str) -> LeanEnvironment:
        """Return the Lean environment of this name; raises UsageError that says why there is none."""
        found = self[name]
        if not isinstance(found, LeanEnvironment):
            raise UsageError(f"{name!r} is an environment of {found.kind.system}; name one of Lean")
        return found

    @property
    def names(self) -> list[str]:
        """The names of all of them."""
        return [*self.sound, *self.problems]

    def require_any(self) -> None:
        """Raise SettingsError when there is nothing to check with."""
        if not self.names:
            raise SettingsError(
                f"this machine has no Lean: install the {WHEEL} package, or name an environment in {FILE} "
                "in FARM_HOME, or in the file that FARM_ENVIRONMENTS names; `farm environments add` does so"
            )
        if not self.sound:
            raise SettingsError(f"no environment is usable: {'; '.join(self.problems.values())}")


def installed(home: Path, file: Path | None, isolation: Isolation) -> Installed:
    r"""Return the environments of this machine: the embedded one and those that a file configures.

    `home` is the farm's data folder; the embedded core library is compiled there once, held by `isolation`,
    and `file`, when None, is the ``farm.toml`` there, if there is one. It has a table for each environment::

        [environments.mathlib]
        workspace = "/path/to/workspace"  # built with Lake; or lean_path = ["/folder/of/oleans", ...]
        lean = "/path/to/bin/lean"        # default: the workspace's, or the one on PATH
        toolchain = "4.22.0"              # refuse any other version
        options = ["-DmaxHeartbeats=400000"]
        header = "import Mathlib\n"       # what its canaries begin with; default: the first of headers
        headers = ["import Mathlib\n"]    # to be ready for; default: header
        visible = ["/nix/store"]          # what else Lean must be able to read
        checker = ["/path/to/leanchecker", "{module}"]  # another kernel, for the tier kernel
        audit = false                     # modules of this Lean cannot be audited: lean only
        packages = "/lake-manifest.json"  # with lean_path: what the modules' workspace pinned

    What is wrong with one environment keeps none of the others back: `Installed.problems` tells it, with
    file, key and remedy. Without the wheel that brings Lean there is no embedded environment. Raises
    SettingsError when the file cannot be read as a whole.
    """
    sound: dict[str, Environment] = {}
    problems: dict[str, str] = {}
    file = file or home / FILE
    for name, table in tables(file, required=file != home / FILE).items():
        try:
            sound[name] = _of_table(name, table, home)
        except (FarmError, OSError) as error:
            problems[name] = f"{file}: environment {name!r}: {error}"
    if EMBEDDED not in sound.keys() | problems.keys():
        try:
            if (core := embedded(home, isolation)) is not None:
                sound[EMBEDDED] = core
        except (FarmError, OSError) as error:
            problems[EMBEDDED] = f"environment {EMBEDDED!r}: {error}"
    return Installed(sound=sound, problems=problems)


def _lean(name: str, table: object, home: Path) -> Environment:
    return Table(name, table).environment(home)


#: What makes an environment of a table without its kind, by that kind: given its name, the table, and the
#: farm's data folder. Raises SettingsError that names the key and the remedy.
TABLES: Mapping[Kind, Callable[[str, object, Path], Environment]] = MappingProxyType(
    {Kind.LEAN: _lean, Kind.METAMATH: metamath.environment, Kind.HOL_LIGHT: hol_light.environment}
)


def _of_table(name: str, table: object, home: Path) -> Environment:
    kind = table.pop("kind", Kind.LEAN) if isinstance(table, dict) else Kind.LEAN
    if kind not in TABLES:
        known = ", ".join(f'"{each}"' for each in TABLES)
        raise SettingsError(f"kind: {kind!r} is no proof system that this farm knows; write one of {known}")
    return TABLES[Kind(kind)](name, table, home)
