"""Bench step: everything that is measured, in order."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from farm_workers.lean.way import FORKED
from farm_workers.machine.opening import opened

from farm import allotment
from farm.errors import UsageError
from farm.settings import Settings
from tests.bench.checks import checks, headers, memory, seals, soak, timeouts
from tests.bench.checks.figures import Figure
from tests.bench.checks.processes import used_by_others
from tests.bench.checks.ring import Ring
from tests.bench.checks.subject import Subject
from tests.bench.checks.turns import crew


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """How many turns each contender has, and over how many checks a worker's own memory is watched."""

    rounds: int
    soak_checks: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Results:
    """All that was measured."""

    machine: dict[str, object]
    rows: Sequence[dict[str, object]]
    figures: Sequence[Figure]


def measure(settings: Settings, plan: Plan, what: Subject, say: Callable[[str], None]) -> Results:
    """Measure everything; `say` is told what is under way. Raises UsageError for another way than forked."""
    if settings.way != FORKED:
        raise UsageError(f"FARM_WAY={settings.way}: the bench only measures forked checks; unset FARM_WAY")
    before = used_by_others()
    at_once = settings.concurrency
    with crew(at_once) as hired, opened(settings, concurrency=at_once) as machine:
        level = machine.isolation.name
        ring = Ring(
            environment=what.environment,
            larger=what.larger,
            checker=machine.checker,
            isolation=machine.isolation,
            home=settings.home,
            crew=hired,
            rounds=plan.rounds,
            say=say,
        )
        rows, figures = checks.small(ring)
        for measured in (checks.long, headers.larger, timeouts.cost, memory.private, seals.cost):
            figures += measured(ring)
    figures += soak.soak(what.environment.name, plan.soak_checks, say)
    facts = machine_facts(settings, what, level) | {"used_by_others": max(before, used_by_others())}
    return Results(machine=facts, rows=rows, figures=figures)


def machine_facts(settings: Settings, what: Subject, isolation: str) -> dict[str, object]:
    """Return what the figures are of."""
    return {
        "cpus": allotment.cores(),
        "checks_at_once": settings.concurrency,
        "kernel": platform.release(),
        "processor": platform.machine(),
        "python": platform.python_version(),
        "lean": what.environment.toolchain,
        "environment": what.environment.name,
        "library": what.library,
        "isolation": isolation,
    }
