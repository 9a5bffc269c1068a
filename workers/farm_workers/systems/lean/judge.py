"""Systems step, Lean's judge: passes checks to the checker, which the settings configure."""

from __future__ import annotations

from collections.abc import Callable

from farm.judging.job import Check
from farm.judging.report import Report
from farm.settings import Settings
from farm_workers.box import once as box
from farm_workers.box.isolation import Isolation
from farm_workers.checking.canary import require_sound, trial
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.metrics import events
from farm_workers.sessions.sessions import Sessions


class LeanJudge:
    """Judges checks in Lean environments."""

    def __init__(self, checker: Checker) -> None:
        self.checker = checker
        self._trial = trial(checker)

    def check(
        self, check: Check, environment: LeanEnvironment, *, cancelled: Callable[[], bool] = box.never
    ) -> Report:
        """Return the report of a check, as `Checker.check` does."""
        return self.checker.check(check, environment, cancelled=cancelled)

    def prewarm(self, environment: LeanEnvironment) -> None:
        """Begin to make images of the environment's headers, if Lean is forked."""
        self.checker.prewarm(environment)

    def require_sound(self, environment: LeanEnvironment) -> None:
        """Judge the environment's canaries; raises FarmError if a verdict is wrong."""
        events.forkable(environment.name, is_so=environment.forks)
        require_sound(environment, self.checker)

    def trial(self, environment: LeanEnvironment) -> tuple[str, ...]:
        """Judge one canary with a fresh Lean, and return its wrong verdict, () if the verdict is right."""
        return self._trial(environment)

    @property
    def sessions(self) -> Sessions:
        """The proofs in which tactics are tried step by step."""
        return self.checker.sessions

    def images(self) -> list[tuple[str, int]]:
        """Return the images that can fork."""
        return self.checker.images()

    def close(self) -> None:
        """End every process."""
        self.checker.close()


def checker(isolation: Isolation, settings: Settings, concurrency: int) -> Checker:
    """Return a checker with the settings' limits; a context manager."""
    return Checker(
        isolation,
        home=settings.home,
        way=settings.way,
        concurrency=concurrency,
        most_images=settings.images,
        images_mib=settings.images_mib,
    )
