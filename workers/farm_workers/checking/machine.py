"""What checks on this machine, as the settings say: its isolation, its environments and its checker."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property

from farm.errors import FarmError
from farm.judging.forgeable import is_forgeable
from farm.log import logger
from farm.settings import Settings
from farm.version import VERSION
from farm_workers.box.isolation import Isolation, prepared
from farm_workers.box.supervisor import BoxFailed
from farm_workers.checking.checker import Checker
from farm_workers.checking.systems import Judges, judges
from farm_workers.environments.environments import Configured, Installed, configured, looked_at

#: The least isolation that a worker accepts unless the settings name one: what it judges, others rely on.
OF_A_WORKER = "bwrap"
#: The least there is: of a check made for whoever asks for it, and of the farm's own worker on this machine.
ANY = "rlimit"

_log = logger(__name__)


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A machine ready to check: what holds a check, which environments are configured, and who judges.

    `checker` judges in the Lean environments among them, and can be asked to run Lean in other ways.
    """

    isolation: Isolation
    configured: Mapping[str, Configured]
    judges: Judges
    checker: Checker

    @cached_property
    def installed(self) -> Installed:
        """The environments of this machine, each of which is looked at now."""
        return looked_at(self.configured)


@contextmanager
def isolated(settings: Settings) -> Iterator[Isolation]:
    """Prepare the strongest isolation that works here, in the farm's data folder; take it down at the end."""
    with ExitStack() as stack:
        try:
            isolation = stack.enter_context(prepared(settings.home / "work", cgroup=settings.cgroup))
        except (BoxFailed, OSError) as error:
            raise FarmError(
                f"this machine cannot run checks: {error}; FARM_HOME is {settings.home}"
            ) from error
        yield isolation


def demanded(settings: Settings, otherwise: str = ANY) -> str:
    """Return the least isolation that is accepted: what the settings say, `otherwise` where they say nothing.

    Who names a cgroup wants it to be used.
    """
    least = settings.isolation or otherwise
    return least if settings.cgroup is None else f"{least}+cgroup"


@contextmanager
def opened(
    settings: Settings, *, way: str | None = None, concurrency: int = 1, minimum: str | None = None
) -> Iterator[Machine]:
    """Get this machine ready; at the end every process, group and folder of its checks is gone.

    `way` is how Lean is run and `minimum` the least isolation, otherwise the settings say it; `concurrency`
    is how many checks run at once. The first line that is logged names the farm's version, the environments
    and the isolation in force. Raises SettingsError when that is weaker, or the file of environments cannot
    be read.
    """
    with isolated(settings) as isolation:
        isolation.require(minimum or demanded(settings))
        here = configured(settings.home, settings.environments, isolation)
        level = logging.WARNING if is_forgeable(isolation.name) else logging.INFO
        _log.log(
            level,
            "Farm %s; environments: %s; isolation %s",
            VERSION,
            ", ".join(here) or "none",
            isolation.words,
        )
        checker = checking(settings, isolation, way=way, concurrency=concurrency)
        with judges(checker, isolation, settings, concurrency=concurrency) as all_of_them:
            yield Machine(isolation=isolation, configured=here, judges=all_of_them, checker=checker)


def checking(
    settings: Settings, isolation: Isolation, *, way: str | None = None, concurrency: int = 1
) -> Checker:
    """Return what checks as the settings say; to be used as a context."""
    return Checker(
        isolation,
        home=settings.home,
        way=way or settings.way,
        concurrency=concurrency,
        most_images=settings.images,
        images_mib=settings.images_mib,
        snapshot_mib=settings.snapshot_mib,
    )
