"""Bench step: what a larger header costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from farm_workers.bench.measure import BenchProgram, programs

from tests.bench.checks.checks import ATTEMPTS, TURN
from tests.bench.checks.figures import Figure
from tests.bench.checks.ring import Ring
from tests.bench.checks.turns import ratios

_AT_LEAST = 0.75


def larger(ring: Ring) -> Iterator[Figure]:
    """Yield the rate of small programs under the larger header over that under the usual one."""
    if ring.larger is None:
        return
    environments = {"usual": ring.environment, "larger": ring.larger}

    def given(which: str, number: int) -> Sequence[BenchProgram]:
        ring.say(f"the larger header: round {number} of {ring.rounds}")
        return programs(environments[which].header, number * TURN, TURN, attempts=ATTEMPTS)

    contenders = {name: ring.farm(environment=each) for name, each in environments.items()}
    turns = ring.crew.side_by_side(contenders, given, ring.rounds)
    yield Figure(
        key="larger_over_usual",
        name="small programs with the larger header over the usual one, tier kernel",
        unit="",
        samples=ratios(turns["larger"], turns["usual"]),
        at_least=_AT_LEAST,
    )
