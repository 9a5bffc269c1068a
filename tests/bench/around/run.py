"""Bench step: everything around Lean that is measured, in order."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from farm_workers.bench.measure import asked
from farm_workers.environments.lean_environment import EMBEDDED
from farm_workers.machine.environments import installed
from farm_workers.machine.opening import isolated, opened

from farm.judging.tiers import Tier
from farm.settings import Settings
from tests.bench.around import cluster, loading, serving, waiting, whole
from tests.bench.around.cluster import Cluster, Size
from tests.bench.around.loading import Lines
from tests.bench.around.site import FarmAtWork, farm_at_work
from tests.bench.around.workers import environments_file, farm_worker
from tests.bench.checks.figures import Figure
from tests.bench.checks.processes import used_by_others
from tests.bench.checks.run import machine_facts
from tests.bench.checks.subject import Subject
from tests.bench.checks.turns import crew

Say = Callable[[str], None]

_MILLION = 1_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What is measured, and how often.

    `lines` are submitted and exported `rounds` times, and a million lines once with `million`. Everything
    else has `rounds` turns: of `turn_seconds` with small programs, of `long_checks` for each thread, of
    `idle_checks` without Lean that take no time and `paced_checks` that take as long as small ones; `sizes`
    are those of the simulated clusters.
    """

    lines: int
    million: bool
    rounds: int
    turn_seconds: float
    long_checks: int
    idle_checks: int
    paced_checks: int
    sizes: Sequence[Size]


@dataclass(frozen=True, kw_only=True, slots=True)
class ServicePlan:
    """How many turns the service and the engine have, and how many large batches are one."""

    rounds: int
    batches: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Results:
    """All that was measured."""

    machine: dict[str, object]
    clusters: Sequence[Cluster]
    figures: Sequence[Figure]


def measure(settings: Settings, plan: Plan, what: Subject, say: Callable[[str], None]) -> Results:
    """Measure everything in a farm of its own, of which nothing is left; `say` is told what is under way."""
    before = used_by_others()
    connections = max(size.connections for size in plan.sizes)
    say("servers")
    with farm_at_work(connections=connections, servers=settings.servers) as farm:
        found: list[Figure] = []
        for lines in (Lines(count=plan.lines), Lines(count=plan.lines, long=True)):
            found += loading.loaded(farm, lines, times=plan.rounds, say=say)
        if plan.million:
            found += loading.loaded(farm, Lines(count=_MILLION), times=1, say=say)
        found += _end_to_end(settings, plan, what, farm, say)
        found += _without_lean(settings.concurrency, plan, farm, say)
        clusters = cluster.simulated(farm, plan.sizes, plan.rounds, say)
        found += cluster.figures(clusters)
    with isolated(settings) as isolation:
        facts = machine_facts(settings, what, isolation.name)
    machine = facts | {"used_by_others": max(before, used_by_others())}
    return Results(machine=machine, clusters=clusters, figures=found)


def _end_to_end(
    settings: Settings, plan: Plan, what: Subject, farm: FarmAtWork, say: Callable[[str], None]
) -> Iterator[Figure]:
    """Compare a worker with bare Lean."""
    say("end to end: starting a worker")
    farm.empty()
    _add_library(settings, what, farm)
    more = environments_file(settings.home, settings.environments)
    with ExitStack() as kept:
        hired = kept.enter_context(crew(settings.concurrency))
        worker = kept.enter_context(farm_worker(farm, what.environment.name, settings.concurrency, more))
        bench = whole.Bench(
            farm=farm,
            environment=what.environment,
            crew=hired,
            rounds=plan.rounds,
            turn_seconds=plan.turn_seconds,
            long_checks=plan.long_checks,
            say=say,
        )
        yield from whole.over_bare(bench, worker)


def measure_service(settings: Settings, plan: ServicePlan, what: Subject, say: Say) -> Results:
    """Measure the HTTP service beside the engine alone, in a farm of its own, of which nothing is left."""
    before = used_by_others()
    at_once = settings.concurrency
    with ExitStack() as kept:
        hired = kept.enter_context(crew(at_once))
        machine = kept.enter_context(opened(settings, concurrency=at_once))
        say("servers")
        farm = kept.enter_context(farm_at_work(servers=settings.servers))
        farm.empty()
        _add_library(settings, what, farm)
        more = environments_file(settings.home, settings.environments)
        kept.enter_context(farm_worker(farm, what.environment.name, at_once, more))
        service = kept.enter_context(serving.served(farm))
        contest = serving.Contest(
            client=service.client,
            engine=asked(machine.checker, what.environment, Tier.KERNEL),
            crew=hired,
            environment=what.environment.name,
            header=what.environment.header,
            rounds=plan.rounds,
            batches=plan.batches,
            say=say,
        )
        found = [*serving.over_engine(contest), *waiting.waiting_at_once(service, say)]
        facts = machine_facts(settings, what, machine.isolation.name)
    machine_ = facts | {"used_by_others": max(before, used_by_others())}
    return Results(machine=machine_, clusters=(), figures=found)


#: About what a small check takes.
_PACE_SECONDS = 0.008


def _without_lean(at_once: int, plan: Plan, farm: FarmAtWork, say: Callable[[str], None]) -> Iterator[Figure]:
    """Have a stand-in do nothing, as fast as it can and as slowly as Lean."""
    for checks, seconds in ((plan.idle_checks, 0.0), (plan.paced_checks, _PACE_SECONDS)):
        farm.empty()
        yield from whole.without_lean(farm, at_once, checks, plan.rounds, say, check_seconds=seconds)


def _add_library(settings: Settings, what: Subject, farm: FarmAtWork) -> None:
    """Show the worker the library that the bench compiled: beside the embedded Lean's own, in its home."""
    if what.environment.name != EMBEDDED:
        return
    with isolated(settings) as isolation:
        served = installed(farm.home, None, isolation).lean(EMBEDDED)
    (target,) = map(Path, served.lean_path)
    shutil.copytree(what.environment.lean_path[-1], target, dirs_exist_ok=True)
