"""Machine step, judges: passes each check to the judge of its environment's proof system."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial

from farm.errors import FarmError
from farm.judging.job import Check
from farm.judging.report import Report
from farm.kinds import Kind
from farm.settings import Settings
from farm_workers.box import once as box
from farm_workers.box.isolation import Isolation
from farm_workers.environments.environment import Environment
from farm_workers.metrics import events
from farm_workers.systems.known import system
from farm_workers.systems.system import Judge


class Judges:
    """Judges checks in all environments of this machine, with a judge for each proof system; thread-safe.

    `begin` makes the judge of a system at its first use. `way` is the preferred way to run Lean, and
    `isolation` the name of the isolation. As a context manager the object ends all processes at exit.
    """

    def __init__(self, begin: Mapping[Kind, Callable[[], Judge]], *, way: str, isolation: str) -> None:
        self._begin = begin
        self._lock = threading.Lock()
        self._begun: dict[Kind, Judge] = {}
        self.way, self.isolation = way, isolation

    def __enter__(self) -> Judges:
        return self

    def __exit__(self, *_raised: object) -> None:
        self.close()

    def close(self) -> None:
        """End every process; no program may be checked after that."""
        for judge in self._all():
            judge.close()

    def of(self, kind: Kind) -> Judge:
        """Return the judge of a proof system."""
        with self._lock:
            judge = self._begun.get(kind)
            if judge is None:
                judge = self._begun[kind] = self._begin[kind]()
            return judge

    def check(
        self, check: Check, environment: Environment, *, cancelled: Callable[[], bool] = box.never
    ) -> Report | Future[Report]:
        """Return the report of a check, or its Future, as `Judge.check` does."""
        return self.of(environment.kind).check(check, environment, cancelled=cancelled)

    def prewarm(self, environment: Environment) -> None:
        """Begin to load the images or libraries that checks in this environment need."""
        self.of(environment.kind).prewarm(environment)

    def require_sound(self, environment: Environment) -> None:
        """Judge the environment's canaries; raises FarmError if a verdict is wrong."""
        try:
            self.of(environment.kind).require_sound(environment)
        except FarmError:
            events.examined(environment.name, passed=False)
            raise
        events.examined(environment.name, passed=True)

    def trial(self, environment: Environment) -> tuple[str, ...]:
        """Judge one canary, and return its wrong verdict as a sentence, () if the verdict is right."""
        wrong = self.of(environment.kind).trial(environment)
        events.examined(environment.name, passed=not wrong)
        return wrong

    def images(self) -> list[tuple[str, int]]:
        """Return the images of all systems that can fork."""
        return [image for judge in self._all() for image in judge.images()]

    def _all(self) -> list[Judge]:
        with self._lock:
            return list(self._begun.values())


def judges(isolation: Isolation, settings: Settings, *, concurrency: int = 1) -> Judges:
    """Return the judges of this machine, made with its settings; a context manager."""
    begin = {kind: partial(system(kind).judge, isolation, settings, concurrency) for kind in Kind}
    return Judges(begin, way=settings.way, isolation=isolation.name)
