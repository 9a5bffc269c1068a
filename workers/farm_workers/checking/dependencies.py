"""Sealing step, dependencies: keeps each environment's table of axioms and sorries below constants.

The first seal in an environment has the table made, by a process in a box that reads all compiled modules as
data (`farm_workers.audit.library`). It is kept in the farm's data folder under the environment's digest, and
is verified before its first use: another file in its place is made again. Nothing is sealed without it.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from farm.limits import Limits
from farm.log import logger
from farm_workers import audit
from farm_workers.audit.dependencies import BadTable, mapped
from farm_workers.box import once as box
from farm_workers.box.bubblewrap import python
from farm_workers.box.isolation import Isolation, fresh_folder
from farm_workers.box.supervisor import BoxFailed
from farm_workers.environments.lean_environment import LeanEnvironment, module_folders

_log = logger(__name__)

#: Enough for a million constants; the modules are mapped, and their pages do not count.
_LIMITS = Limits(wall_seconds=3600.0, cpu_seconds=3600.0, memory_mib=6144, output_kib=4096)
_MADE = "table"
#: A file that has this state was verified: inode, size, time of its last change.
_State = tuple[int, int, int]


class Dependencies:
    """Returns the tables of environments, in `home`; thread-safe, and safe for several processes."""

    def __init__(self, isolation: Isolation, home: Path) -> None:
        self._isolation, self._folder = isolation, home / "environments"
        self._lock = threading.Lock()
        self._verified: dict[str, _State] = {}

    def of(self, environment: LeanEnvironment) -> Path:
        """Return the file with an environment's table, which is made if it is missing or damaged.

        Raises BoxFailed if it cannot be made.
        """
        file = self._folder / f"dependencies-{environment.digest[:24]}"
        if self._is_verified(file, environment):
            return file
        with self._lock:
            if not self._is_verified(file, environment):
                self._prepare(file, environment)
        return file

    def _is_verified(self, file: Path, environment: LeanEnvironment) -> bool:
        return self._verified.get(environment.digest) == (_state(file) or ())

    def _prepare(self, file: Path, environment: LeanEnvironment) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        with file.with_name(f"{file.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # one process makes it for all
            state = _state(file)
            if state is None or not _is_sound(file, environment):
                self._make(file, environment)
                state = _state(file)
        if state is None or not _is_sound(file, environment):
            raise BoxFailed(f"{file} could not be kept; see whether its disk is full or changes files")
        self._verified[environment.digest] = state

    def _make(self, file: Path, environment: LeanEnvironment) -> None:
        _log.info(
            "Reading the modules of %s, to know the axioms and sorries below each constant; "
            "%s keeps the result",
            environment.name,
            file,
        )
        begun, roots = time.monotonic(), module_folders(environment)
        with fresh_folder(self._isolation.folder) as workshop:
            made = workshop / "made"
            made.mkdir()
            run = box.run(
                audit.command(python(), "library", [str(made / _MADE), environment.digest, *map(str, roots)]),
                isolation=self._isolation,
                limits=_LIMITS,
                environment={},
                visible=(*audit.FOLDERS, *roots, *environment.folders),
                writable=made,
            )
            said = run.stderr.decode(errors="replace").strip().rpartition("\n")[2]
            if not run.is_undisturbed or run.exit_status != 0:
                raise BoxFailed(
                    f"the axioms and sorries below the constants of {environment.name} could not be found: "
                    f"{run.box_error or run.limit or said or run.exit_status}"
                )
            new = file.with_name(f"{file.name}.{os.getpid()}")
            new.write_bytes((made / _MADE).read_bytes())
        new.chmod(0o644)  # a box reads it as another user, and this process's umask may forbid that
        new.replace(file)
        self._tell(environment, json.loads(run.stdout), time.monotonic() - begun)

    def _tell(self, environment: LeanEnvironment, facts: Mapping[str, object], seconds: float) -> None:
        _log.info(
            "%s has %s constants in %s modules; read in %.1f s",
            environment.name,
            facts["constants"],
            facts["modules"],
            seconds,
        )
        unread = facts["unread"]
        if isinstance(unread, dict) and unread:
            named = "; ".join(f"{module}: {reason}" for module, reason in list(unread.items())[:5])
            _log.warning(
                "%d modules of %s could not be read, and proofs that rest on them will not be judged (%s). "
                "Build them again, or remove those that are left from another build",
                len(unread),
                environment.name,
                named,
            )


def _state(file: Path) -> _State | None:
    try:
        found = file.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _is_sound(file: Path, environment: LeanEnvironment) -> bool:
    """Return whether a file is the whole table of an environment."""
    try:
        with suppress(FileNotFoundError):
            mapped(file).require(environment.digest)
            return True
    except BadTable as error:
        _log.warning("%s is made again: %s", file, error)
    return False
