"""Bench step: everything that is measured, in order."""

from __future__ import annotations

import platform
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from farm.settings import Settings, usable_cpus
from workers.bench import boxes, headers, soak, timeouts
from workers.bench.contest import Contest, Ring, Rules, hold
from workers.bench.figures import Figure
from workers.bench.processes import Others, adopt_orphans
from workers.bench.subject import Subject
from workers.bench.turns import crew
from workers.machine import opened
from workers.ways.way import RESIDENT


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What is measured, and how often.

    `rules` are those of the contest. `header_times`, `resident_checks` and `cold_checks` are how often the
    cost of a header and that of a box around either check are measured, `timeouts` and `timeout_rounds` how
    many programs a turn has that never end, and how many turns there are. `soak_checks` are those over which
    the worker's own memory is watched, `modules` those of the library.
    """

    environment: str
    rules: Rules
    header_times: int
    resident_checks: int
    cold_checks: int
    timeouts: int
    timeout_rounds: int
    soak_checks: int
    modules: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Results:
    """All that was measured."""

    machine: dict[str, object]
    contests: Sequence[Contest]
    figures: Sequence[Figure]


def measure(settings: Settings, plan: Plan, what: Subject, say: Callable[[str], None]) -> Results:
    """Measure everything; `say` is told what is under way."""
    adopt_orphans()
    others = Others()
    work = settings.home / "work"
    levels = boxes.levels(work, settings.cgroup)
    around = _boxes(settings, plan, what, say)
    with tempfile.TemporaryDirectory(prefix="farm-bench-") as folder:
        say("headers")
        cost = list(headers.costs(what.environment, what.heavy, Path(folder), times=plan.header_times))
        contests, late = _engine(settings, plan, what, Path(folder), say)
    ratios = [figure for contest in contests for figure in contest.figures()]
    own = list(soak.soak(plan.environment, plan.soak_checks, say))
    return Results(
        machine=_machine(settings, what, list(levels)) | {"used_by_others": others.share()},
        contests=contests,
        figures=[*ratios, *cost, *around, *late, *own],
    )


def _machine(settings: Settings, what: Subject, levels: Sequence[str]) -> dict[str, object]:
    return {
        "cpus": usable_cpus(),
        "checks_at_once": settings.concurrency,
        "kernel": platform.release(),
        "processor": platform.machine(),
        "python": platform.python_version(),
        "lean": what.environment.toolchain,
        "environment": what.environment.name,
        "library": what.library,
        "isolation": levels[-1],
        "isolations": levels,
    }


def _boxes(settings: Settings, plan: Plan, what: Subject, say: Callable[[str], None]) -> list[Figure]:
    boxed = boxes.Boxed(
        environment=what.environment,
        header=what.light,
        folder=settings.home / "work",
        cgroup=settings.cgroup,
        resident_checks=plan.resident_checks,
        cold_checks=plan.cold_checks,
        say=say,
    )
    return list(boxes.added(boxed))


def _engine(
    settings: Settings, plan: Plan, what: Subject, folder: Path, say: Callable[[str], None]
) -> tuple[list[Contest], list[Figure]]:
    """Measure what needs the engine: the contests, and the cost of timeouts."""
    at_once = settings.concurrency
    with crew(at_once) as hired, opened(settings, concurrency=at_once) as machine:
        ring = Ring(environment=what.environment, checker=machine.checker, crew=hired, folder=folder, say=say)
        contests = [hold(ring, name, header, plan.rules) for name, header in what.headers.items()]
        if RESIDENT not in plan.rules.ways:
            return contests, []
        late = timeouts.cost(ring, what.heavy, timeouts=plan.timeouts, rounds=plan.timeout_rounds)
        return contests, list(late)
