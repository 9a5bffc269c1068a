"""Systems step, the record: everything that a worker asks of a proof system."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from farm.judging.job import Check
from farm.judging.report import Report
from farm.judging.verdict import Verdict
from farm.settings import Settings
from farm_workers.box import once as box
from farm_workers.box.isolation import Isolation
from farm_workers.environments.environment import Environment


class Judge(Protocol):
    """Judges checks in environments of one kind; thread-safe."""

    def check(
        self, check: Check, environment: Any, /, *, cancelled: Callable[[], bool] = box.never
    ) -> Report | Future[Report]:
        """Return the report of a check; no behaviour of a submission raises an exception.

        A judge that checks many submissions in one batch returns a Future, so that the calling thread need
        not wait for the batch.
        """

    def prewarm(self, environment: Any) -> None:
        """Begin to load the images or libraries that checks in this environment need."""

    def require_sound(self, environment: Any) -> None:
        """Judge the environment's canaries; raises FarmError if a verdict is wrong."""

    def trial(self, environment: Any) -> tuple[str, ...]:
        """Judge one canary, and return its wrong verdict as a sentence, () if the verdict is right."""

    def images(self) -> list[tuple[str, int]]:
        """Return the images that can fork: the environment and the memory in bytes of each."""

    def close(self) -> None:
        """End every process; no program may be checked after that."""


@dataclass(frozen=True, kw_only=True, slots=True)
class System:
    """One proof system.

    `environment` returns the environment of a table of ``farm.toml``, given its name, the table without
    `kind`, and the farm's data folder; raises SettingsError that names the key and the remedy. `judge` makes
    the system's judge, given the isolation, the settings and the number of checks at once. `fault` returns
    the fault of a statement, "" for none, given the report and the verdict on a program that states it and
    proves nothing.
    """

    environment: Callable[[str, object, Path], Environment]
    judge: Callable[[Isolation, Settings, int], Judge]
    fault: Callable[[Report, Verdict], str]
