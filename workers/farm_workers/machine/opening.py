"""Prepares this machine's isolation, environments and checker from the settings, for workers and commands."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from farm.errors import FarmError
from farm.judging.forgeable import is_forgeable
from farm.kinds import Kind
from farm.log import logger
from farm.settings import Settings
from farm.version import farm_version
from farm_workers.box import hierarchy
from farm_workers.box.isolation import Isolation, prepared, remove_dead
from farm_workers.box.supervisor import BoxFailed
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.machine.descriptors import raise_limit
from farm_workers.machine.environments import Configured, Installed, configured, looked_at
from farm_workers.machine.judges import Judges, judges
from farm_workers.systems.lean.judge import LeanJudge

#: The least isolation that a worker accepts unless the settings name one: other users rely on its verdicts.
OF_A_WORKER = "landlock"
#: The weakest isolation: enough for a user's own checks, and for the local worker that the farm starts.
ANY = "rlimit"

_log = logger(__name__)


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A machine that is ready to check: its isolation, its configured environments and its judges."""

    isolation: Isolation
    configured: Mapping[str, Configured]
    judges: Judges

    @cached_property
    def installed(self) -> Installed:
        """The environments of this machine, each examined at the first access."""
        found = looked_at(self.configured)
        self.checker.know([each for each in found.sound.values() if isinstance(each, LeanEnvironment)])
        return found

    @property
    def checker(self) -> Checker:
        """The checker of the judge of Lean, which can run Lean in other ways than the configured one."""
        judge = self.judges.of(Kind.LEAN)
        assert isinstance(judge, LeanJudge)  # noqa: S101 - that is in Lean's record
        return judge.checker


def remove_leftovers(settings: Settings) -> None:
    """Remove the folders and control groups that dead processes of the farm left; those that resist stay.

    `isolated` removes them too, and says why where it cannot.
    """
    with suppress(OSError):
        remove_dead(_work(settings))
    hierarchy.remove_dead(settings.cgroup)


def _work(settings: Settings) -> Path:
    return settings.home / "work"


@contextmanager
def isolated(settings: Settings) -> Iterator[Isolation]:
    """Prepare the strongest isolation that works here, in the farm's data folder, and clean it up at exit."""
    with ExitStack() as stack:
        try:
            isolation = stack.enter_context(prepared(_work(settings), cgroup=settings.cgroup))
        except (BoxFailed, OSError) as error:
            raise FarmError(
                f"this machine cannot run checks: {error}; FARM_HOME is {settings.home}"
            ) from error
        yield isolation


def demanded(settings: Settings, otherwise: str = ANY) -> str:
    """Return the least isolation that is accepted: the setting, or `otherwise` if it is not set.

    If the settings name a cgroup, the isolation must use cgroups.
    """
    least = settings.isolation or otherwise
    return least if settings.cgroup is None else f"{least}+cgroup"


@contextmanager
def opened(
    settings: Settings, *, way: str | None = None, concurrency: int = 1, minimum: str | None = None
) -> Iterator[Machine]:
    """Get this machine ready; at exit all processes, control groups and folders of its checks are removed.

    `way` and `minimum` override the settings of the way to run Lean and of the least isolation; `concurrency`
    is the number of checks at once. The first log line names the farm's version, the environments and the
    isolation. Raises SettingsError if the isolation is weaker than the least, or if the file of environments
    cannot be read.
    """
    raise_limit()
    with isolated(settings) as isolation:
        isolation.require(minimum or demanded(settings))
        here = configured(settings.home, settings.environments, isolation)
        level = logging.WARNING if is_forgeable(isolation.name) else logging.INFO
        _log.log(
            level,
            "Farm %s; environments: %s; isolation %s",
            farm_version(),
            ", ".join(here) or "none",
            isolation.words,
        )
        chosen = replace(settings, way=way or settings.way)
        with judges(isolation, chosen, concurrency=concurrency) as all_of_them:
            yield Machine(isolation=isolation, configured=here, judges=all_of_them)
