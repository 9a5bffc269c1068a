"""Environment step, Metamath: a database, and the program that verifies accepted proofs a second time."""

from __future__ import annotations

import difflib
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from farm.errors import SettingsError
from farm.judging.tiers import Tier
from farm.kinds import Kind
from farm_workers.environments import digest
from farm_workers.environments.configured import digests

#: Bump when the farm's verifier accepts other proofs: it is part of every digest.
VERIFIER_VERSION = "1"
#: The path in Debian's package.
PROGRAM = "/usr/bin/metamath"
_KEYS = ("database", "metamath")
_VERSION = re.compile(r"Metamath - Version (\S+)")
_START_SECONDS = 30.0


@dataclass(frozen=True, kw_only=True, slots=True)
class MetamathEnvironment:
    """One database with the program ``metamath``, the second verifier of accepted proofs.

    `digest` is over the verifier's version, the database's bytes and the version of the program.
    """

    name: str
    digest: str
    toolchain: str
    database: Path
    program: Path
    version: str

    def __hash__(self) -> int:
        """Return a hash that takes no time: each check looks up processes by its environment."""
        return hash(self.digest)

    @property
    def kind(self) -> Kind:
        """The proof system."""
        return Kind.METAMATH

    @property
    def tiers(self) -> Sequence[Tier]:
        """The only tier: a proof is either verified or not."""
        return (Tier.KERNEL,)

    @property
    def second(self) -> str:
        """The name of the second verifier."""
        return f"metamath {self.version}"


def environment(name: str, table: object, home: Path) -> MetamathEnvironment:
    """Return the environment of a table; raises SettingsError that names the key and the remedy."""
    keys = _with_known_keys(table)
    database = _file(keys, "database")
    program = _file(keys, "metamath", PROGRAM)
    if not os.access(program, os.X_OK):
        raise SettingsError(f"metamath: {program} is not a program; give the path of metamath")
    version = _version(program)
    content = digest.modules([], digests(home), programs=[database])
    return MetamathEnvironment(
        name=name,
        digest=digest.sha256(["metamath", VERIFIER_VERSION, content, version]),
        toolchain=f"metamath {version}, {database.name} {content[:8]}",
        database=database,
        program=program,
        version=version,
    )


def _with_known_keys(table: object) -> Mapping[str, object]:
    if not isinstance(table, dict):
        raise SettingsError("must be a table")
    if unknown := sorted(table.keys() - set(_KEYS)):
        close = difflib.get_close_matches(unknown[0], _KEYS, n=1, cutoff=0.0)[0]
        raise SettingsError(f"unknown key {unknown[0]!r}; did you mean {close}? Known: {', '.join(_KEYS)}")
    return table


def _file(table: Mapping[str, object], key: str, default: str | None = None) -> Path:
    named = table.get(key, default)
    if not isinstance(named, str):
        raise SettingsError(f"{key}: must be a string, the absolute path of a file")
    path = Path(named)
    if not (path.is_absolute() and path.is_file()):
        package = "metamath" if key == "metamath" else "metamath-databases"
        raise SettingsError(
            f"{key}: {named} is not the absolute path of a file; fix it, or install Debian's {package}"
        )
    return path


def _version(program: Path) -> str:
    """Return the version that the program prints."""
    try:
        ended = subprocess.run(
            [program, "exit"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_START_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SettingsError(f"metamath: {program} cannot be run: {error}") from error
    found = _VERSION.match(ended.stdout.decode(errors="replace"))
    if found is None:
        raise SettingsError(f"metamath: {program} does not say its version; give the path of metamath")
    return found[1]
