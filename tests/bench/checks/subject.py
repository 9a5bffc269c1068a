"""Bench step: the environment that is measured, and its headers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from farm_workers.environments.lean_environment import EMBEDDED, LeanEnvironment
from farm_workers.machine.environments import installed
from farm_workers.machine.opening import isolated

from farm.settings import Settings
from tests.bench.checks import library


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """What is measured: an environment, the same with a larger header if there is one, and both in words."""

    environment: LeanEnvironment
    larger: LeanEnvironment | None
    library: str


def subject(settings: Settings, name: str, modules: int, compiled: Callable[[], None]) -> Subject:
    """Return what is measured; the embedded Lean's library is compiled when it is not there yet.

    Of more `modules` than `library.MODULES` a second, larger one is made. `name` is the environment's,
    `compiled` is called for each module. Raises UsageError when there is no such environment.
    """
    with isolated(settings) as isolation:
        found = installed(settings.home, settings.environments, isolation)
        found.require_any()
        environment = found.lean(name)
    if environment.name != EMBEDDED:
        return Subject(environment=environment, larger=None, library="its own")
    usual, *larger = [_with_library(settings, environment, size, compiled) for size in sizes(modules)]
    words = [f"{library.declarations(size)} declarations in {size} modules" for size in sizes(modules)]
    return Subject(environment=usual, larger=larger[0] if larger else None, library=" and ".join(words))


def sizes(modules: int) -> list[int]:
    """Return how many modules each library has, where so many are asked for."""
    return sorted({min(modules, library.MODULES), modules})


def _with_library(
    settings: Settings, environment: LeanEnvironment, modules: int, compiled: Callable[[], None]
) -> LeanEnvironment:
    return library.with_library(
        environment,
        settings.home / "bench",
        at_once=settings.concurrency,
        modules=modules,
        compiled=compiled,
    )
