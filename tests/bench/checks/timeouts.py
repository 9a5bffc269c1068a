"""Bench step: what checks that time out cost the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from farm_workers.bench.measure import BenchProgram

from tests.bench.checks.checks import TURN
from tests.bench.checks.figures import Figure
from tests.bench.checks.ring import Ring
from tests.bench.checks.turns import ratios
from tests.bench.long import with_endless

#: One check of so many never ends and must be killed, after so many seconds.
_EVERY, _WALL_SECONDS = 20, 0.5
_AT_LEAST = 0.95


def cost(ring: Ring) -> Iterator[Figure]:
    """Yield the rate of the checks that end by themselves beside 5 % that do not, over the rate without.

    The timeouts' limits are taken out as `tests.bench.checks.turns.Turn.per_second` says; whatever a timeout
    takes beyond its limit, and whatever it costs the checks that follow, counts.
    """

    def given(which: str, number: int) -> Sequence[BenchProgram]:
        ring.say(f"timeouts: round {number} of {ring.rounds}")
        made = with_endless(ring.header, number * TURN, TURN, every=_EVERY, wall_seconds=_WALL_SECONDS)
        return [each for each in made if which == "troubled" or each.wall_seconds is None]

    checks = ring.farm()
    turns = ring.crew.side_by_side({"troubled": checks, "calm": checks}, given, ring.rounds)
    yield Figure(
        key="timeouts",
        name="small programs with 5 % timeouts that must be killed over none, tier kernel",
        unit="",
        samples=ratios(turns["troubled"], turns["calm"]),
        at_least=_AT_LEAST,
    )
