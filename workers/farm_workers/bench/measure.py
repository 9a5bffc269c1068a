"""Bench step: checks of small programs through the farm's engine, as fast as it can on this machine."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from farm.errors import FarmError
from farm.judging.assurance import Assurance
from farm.judging.job import Check
from farm.judging.tiers import Tier
from farm.judging.verdict import Outcome, Reason, judge
from farm.limits import Limits
from farm_workers.bench.programs import BenchProgram, ExpectedWorth, program
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import LeanEnvironment

#: Checks one program and returns its result.
Ask = Callable[[BenchProgram], ExpectedWorth]

_WORTH = {
    Reason.OK: ExpectedWorth.PROVED,
    Reason.ERROR: ExpectedWorth.ERROR,
    Reason.WALL_LIMIT: ExpectedWorth.TIMEOUT,
}
#: Attempts at one statement, as reinforcement learning makes them.
ATTEMPTS = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Rate:
    """How fast one tier is: checks a second over all threads, and the seconds of each check, sorted."""

    tier: Tier
    per_second: float
    latencies: tuple[float, ...]

    def quantile(self, share: float) -> float:
        """Return the latency, in seconds, that this share of the checks does not exceed."""
        return self.latencies[min(len(self.latencies) - 1, int(share * len(self.latencies)))]


def measured(
    checker: Checker, environment: LeanEnvironment, tier: Tier, *, at_once: int, seconds: float
) -> Rate:
    """Check programs on a tier for `seconds`, `at_once` at a time, and return the rate.

    Preparations, such as making the image of the header, are not measured. Raises FarmError when a program
    has a wrong result.
    """
    ask, numbers = asked(checker, environment, tier), itertools.count()
    for _ in range(2 * at_once):
        checked(ask, program(environment.header, next(numbers), attempts=ATTEMPTS))

    def lane(deadline: float) -> Iterator[float]:
        while time.perf_counter() < deadline:
            yield checked(ask, program(environment.header, next(numbers), attempts=ATTEMPTS))

    begun = time.perf_counter()
    with ThreadPoolExecutor(at_once, thread_name_prefix="lane") as pool:
        lanes = list(pool.map(lambda end: list(lane(end)), [begun + seconds] * at_once))
    took = time.perf_counter() - begun
    latencies = sorted(itertools.chain.from_iterable(lanes))
    return Rate(tier=tier, per_second=len(latencies) / took, latencies=tuple(latencies))


def checked(ask: Ask, program: BenchProgram) -> float:
    """Return the seconds that a check takes; raises FarmError when the program comes out as it must not."""
    begun = time.perf_counter()
    worth = ask(program)
    seconds = time.perf_counter() - begun
    if worth is not program.worth:
        raise FarmError(f"the bench's program came out as {worth}, not {program.worth}:\n{program.text}")
    return seconds


def asked(checker: Checker, environment: LeanEnvironment, tier: Tier) -> Ask:
    """Return a function that checks and judges one program on a tier, as a worker does.

    It raises FarmError when Lean was run in another way than the checker's, or the program could not be
    judged: then the figures would measure something else.
    """
    assurance = Assurance(tier=tier)

    def check(program: BenchProgram) -> ExpectedWorth:
        limits = Limits()
        if program.wall_seconds is not None:
            limits = replace(limits, wall_seconds=program.wall_seconds)
        work = Check.of(program=program.text, limits=limits, challenge=program.challenge, assurance=assurance)
        report = checker.check(work, environment)
        verdict = judge(report)
        if (
            report.way != checker.way
            or verdict.outcome is Outcome.JUDGE_ERROR
            or verdict.reason not in _WORTH
        ):
            raise FarmError(
                f"the bench's program was checked {report.way}, not {checker.way}, and judged "
                f"{verdict.reason}: {verdict.detail}\n{program.text}"
            )
        return _WORTH[verdict.reason]

    return check
