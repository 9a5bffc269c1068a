"""Bench step: the environment that is measured, and its headers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from farm.settings import Settings
from workers.bench import library
from workers.bench.contest import HEAVY, LIGHT
from workers.environments import EMBEDDED, LeanEnvironment, installed
from workers.machine import isolated


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """What is measured: an environment and its headers by name; without a library, the heavy one only."""

    environment: LeanEnvironment
    headers: dict[str, str]
    library: str

    @property
    def heavy(self) -> str:
        """The header that costs most."""
        return self.headers[HEAVY]

    @property
    def light(self) -> str:
        """The header that costs least."""
        return self.headers.get(LIGHT, self.heavy)


def subject(settings: Settings, name: str, modules: int, compiled: Callable[[], None]) -> Subject:
    """Return what is measured; the embedded Lean's library is compiled when it is not there yet.

    `name` is the environment's, `compiled` is called for each of the library's `modules`. Raises UsageError
    when there is no such environment.
    """
    with isolated(settings) as isolation:
        found = installed(settings.home, settings.environments, isolation)
        found.require_any()
        environment = found[name]
    if environment.name != EMBEDDED:
        return Subject(environment=environment, headers={HEAVY: environment.header}, library="its own")
    heavy = library.with_library(
        environment,
        settings.home / "bench",
        at_once=settings.concurrency,
        modules=modules,
        compiled=compiled,
    )
    number = library.declarations(modules)
    return Subject(
        environment=heavy,
        headers={LIGHT: environment.header, HEAVY: heavy.header},
        library=f"{number} declarations in {modules} modules",
    )
