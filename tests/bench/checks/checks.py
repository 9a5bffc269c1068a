"""Bench step: checks through the farm beside bare resident Lean, which proves nothing to anybody."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median

from farm_workers.bench.measure import Ask, BenchProgram, checked, programs

from farm.judging.tiers import Tier
from tests.bench.checks.figures import Figure, quantile, rounded
from tests.bench.checks.ring import BARE, Ring
from tests.bench.checks.turns import Turn, ratios
from tests.bench.long import computed, stepwise

#: Attempts at one statement, as reinforcement learning makes them.
ATTEMPTS = 8
#: Programs of a turn: all attempts at ten statements.
TURN = 10 * ATTEMPTS
#: The shares of bare Lean's checks per second that the tier kernel has to reach.
_SMALL, _LONG = 0.42, 0.95
#: Seconds that a long check is to take; the steps of the proofs that tell how many it needs.
_LONG_SECONDS, _TRIAL_STEPS, _TRIALS = 1.0, 10, 5

Rows = list[dict[str, object]]


def small(ring: Ring) -> tuple[Rows, list[Figure]]:
    """Compare small programs, several attempts at each statement, and with every statement new."""
    known = _small(ring, ATTEMPTS, *Tier)
    new = _small(ring, 1, Tier.KERNEL)
    rows = [*_rows(ring, f"{ATTEMPTS} attempts", known), *_rows(ring, "all new", new)]
    name = "small programs over bare resident Lean, tier"
    figures = [
        Figure(
            key=f"{tier}_over_bare",
            name=f"{name} {tier}",
            unit="",
            samples=ratios(known[tier], known[BARE]),
            at_least=_SMALL if tier is Tier.KERNEL else None,
        )
        for tier in Tier
    ]
    samples = ratios(new[Tier.KERNEL], new[BARE])
    figures.append(
        Figure(key="kernel_over_bare_new", name=f"{name} kernel, new statements", unit="", samples=samples)
    )
    return rows, figures


def _small(ring: Ring, attempts: int, *tiers: Tier) -> dict[str, list[Turn]]:
    def given(_: str, number: int) -> Sequence[BenchProgram]:
        ring.say(f"small programs, attempts at a statement {attempts}: round {number} of {ring.rounds}")
        return programs(ring.header, number * TURN, TURN, attempts=attempts)

    with ring.beside_bare(*tiers) as contenders:
        return ring.crew.side_by_side(contenders, given, ring.rounds)


def _rows(ring: Ring, statements: str, contest: Mapping[str, Sequence[Turn]]) -> Rows:
    return [
        {"by": by, "statements": statements, "isolation": "none" if by == BARE else ring.isolation.name}
        | _row(turns)
        for by, turns in contest.items()
    ]


def _row(turns: Sequence[Turn]) -> dict[str, object]:
    latencies = [seconds for turn in turns for seconds in turn.latencies]
    return {
        "checks": len(latencies),
        "checks_per_second": rounded(median(turn.per_second for turn in turns)),
        **{f"p{share}_ms": rounded(quantile(latencies, share / 100) * 1000) for share in (50, 95, 99)},
    }


def long(ring: Ring) -> Iterator[Figure]:
    """Compare checks of 1 s: of elaboration, and of computations by the kernel, which the seal repeats."""
    name = "over bare resident Lean, tier kernel"
    yield _long(ring, stepwise, f"checks of 1 s of elaboration {name}", "long_over_bare", _LONG)
    yield _long(ring, computed, f"checks of 1 s of the kernel's computing {name}", "computed_over_bare")


def _long(
    ring: Ring,
    made: Callable[[str, int, int], BenchProgram],
    name: str,
    key: str,
    at_least: float | None = None,
) -> Figure:
    with ring.beside_bare(Tier.KERNEL) as contenders:
        steps = steps_of_a_second(ring.header, contenders[BARE][0], made)

        def given(_: str, number: int) -> Sequence[BenchProgram]:
            ring.say(f"{name}: round {number} of {ring.rounds}")
            each = range(number * ring.crew.lanes, (number + 1) * ring.crew.lanes)
            return [made(ring.header, place, steps) for place in each]

        turns = ring.crew.side_by_side(contenders, given, ring.rounds)
    samples = ratios(turns[Tier.KERNEL], turns[BARE])
    return Figure(key=key, name=name, unit="", samples=samples, at_least=at_least)


def steps_of_a_second(
    header: str, check: Ask, made: Callable[[str, int, int], BenchProgram] = stepwise
) -> int:
    """Return how many steps a proof needs so that a check takes as long as a long one is to take."""
    trial = [checked(check, made(header, 1_000_000 + number, _TRIAL_STEPS)) for number in range(_TRIALS)]
    return max(1, round(_TRIAL_STEPS * _LONG_SECONDS / median(trial)))
