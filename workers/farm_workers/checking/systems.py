"""Checking step, proof systems: passes each check to the judge of its environment's proof system."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from types import MappingProxyType

from farm.errors import FarmError
from farm.judging.job import Check
from farm.judging.report import Report
from farm.kinds import Kind
from farm.settings import Settings
from farm_workers.box import once as box
from farm_workers.box.isolation import Isolation
from farm_workers.checking.canary import require_sound, trial
from farm_workers.checking.checker import Checker
from farm_workers.checking.judge import Judge
from farm_workers.environments.environment import Environment
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.hol_light.judge import HolLightJudge
from farm_workers.metamath.judge import MetamathJudge
from farm_workers.metrics import events

#: Makes the judge of a system, given the isolation, the settings and the number of checks at once.
Begin = Callable[[Isolation, Settings, int], Judge]


def _hol_light(isolation: Isolation, _settings: Settings, _concurrency: int) -> Judge:
    return HolLightJudge(isolation)


#: The judges of the systems besides Lean.
SYSTEMS: Mapping[Kind, Begin] = MappingProxyType({Kind.METAMATH: MetamathJudge, Kind.HOL_LIGHT: _hol_light})


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
        require_sound(environment, self.checker)

    def trial(self, environment: LeanEnvironment) -> tuple[str, ...]:
        """Judge one canary with a fresh Lean, and return its wrong verdict, () if the verdict is right."""
        return self._trial(environment)

    def images(self) -> list[tuple[str, int]]:
        """Return the images that can fork."""
        return self.checker.images()

    def close(self) -> None:
        """End every process."""
        self.checker.close()


class Judges:
    """Judges checks in all environments of this machine, with a judge for each proof system; thread-safe.

    `checker` judges for Lean, and `begin` makes the judges of other systems at their first use. As a context
    manager the object ends all processes at exit.
    """

    def __init__(self, checker: Checker, begin: Mapping[Kind, Callable[[], Judge]]) -> None:
        self._begin = begin
        self._lock = threading.Lock()
        self._begun: dict[Kind, Judge] = {Kind.LEAN: LeanJudge(checker)}
        self.way, self.isolation = checker.way, checker.isolation

    def __enter__(self) -> Judges:
        return self

    def __exit__(self, *_raised: object) -> None:
        self.close()

    def close(self) -> None:
        """End every process; no program may be checked after that."""
        for judge in self._all():
            judge.close()

    def of(self, environment: Environment) -> Judge:
        """Return the judge of an environment's proof system."""
        with self._lock:
            judge = self._begun.get(environment.kind)
            if judge is None:
                judge = self._begun[environment.kind] = self._begin[environment.kind]()
            return judge

    def check(
        self, check: Check, environment: Environment, *, cancelled: Callable[[], bool] = box.never
    ) -> Report | Future[Report]:
        """Return the report of a check, or its Future, as `Judge.check` does."""
        return self.of(environment).check(check, environment, cancelled=cancelled)

    def prewarm(self, environment: Environment) -> None:
        """Begin to load the images or libraries that checks in this environment need."""
        self.of(environment).prewarm(environment)

    def require_sound(self, environment: Environment) -> None:
        """Judge the environment's canaries; raises FarmError if a verdict is wrong."""
        try:
            self.of(environment).require_sound(environment)
        except FarmError:
            events.examined(environment.name, passed=False)
            raise
        events.examined(environment.name, passed=True)

    def trial(self, environment: Environment) -> tuple[str, ...]:
        """Judge one canary, and return its wrong verdict as a sentence, () if the verdict is right."""
        wrong = self.of(environment).trial(environment)
        events.examined(environment.name, passed=not wrong)
        return wrong

    def images(self) -> list[tuple[str, int]]:
        """Return the images of all systems that can fork."""
        return [image for judge in self._all() for image in judge.images()]

    def _all(self) -> list[Judge]:
        with self._lock:
            return list(self._begun.values())


def judges(checker: Checker, isolation: Isolation, settings: Settings, *, concurrency: int = 1) -> Judges:
    """Return the judges of this machine, made with its settings; a context manager."""

    def beginning(begin: Begin) -> Callable[[], Judge]:
        return lambda: begin(isolation, settings, concurrency)

    return Judges(checker, {kind: beginning(begin) for kind, begin in SYSTEMS.items()})
