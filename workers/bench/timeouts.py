"""Bench step: what checks that time out cost the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from workers.bench.contest import Ring
from workers.bench.engine import asked
from workers.bench.figures import Figure
from workers.bench.programs import ENDLESS, GOES_ON, STOPS, Program, program, programs, with_endless
from workers.bench.turns import Turn
from workers.ways.way import RESIDENT

#: One check of so many never ends.
_EVERY = 20
#: Seconds after which it is stopped.
WALL_SECONDS = 0.5
#: The bar is for programs that stop when told. A process that must be killed is replaced, and its successor's
#: header takes processor time, which on a machine whose cores are all busy is missing elsewhere.
_AT_LEAST = {STOPS: 0.90}
_KEYS = {STOPS: "stop", GOES_ON: "killed"}


def cost(ring: Ring, header: str, *, timeouts: int, rounds: int) -> Iterator[Figure]:
    """Yield, for each kind of endless programs, the engine's rate with 5 % of them over its rate without.

    Both rates are of the checks that end by themselves, resident, and the timeouts' limits are taken out as
    `Turn.per_second` says. A turn has `timeouts` of them; turns with and without alternate. Beside it stands
    how much longer than others the check takes that follows a timeout on its lane.
    """
    check = [asked(ring.checker, ring.environment, RESIDENT)] * ring.crew.lanes
    ring.crew.turn(check, programs(header, 0, 10 * ring.crew.lanes))
    size = timeouts * _EVERY
    for place, kind in enumerate(ENDLESS):
        pairs: list[tuple[Turn, Turn]] = []
        for number in range(rounds):
            ring.say(f"timeouts {kind}: round {number + 1} of {rounds}")
            first = (place * rounds + number + 1) * 10 * size
            troubled = with_endless(kind, header, first, size, every=_EVERY, wall_seconds=WALL_SECONDS)
            calm = _calm(header, first + size, troubled)
            pairs.append((ring.crew.turn(check, troubled), ring.crew.turn(check, calm)))
        yield from _figures(kind, pairs)


def _calm(header: str, first: int, troubled: Sequence[Program]) -> list[Program]:
    """Return as many programs that end, of the same mixture, none of which was seen before."""
    places = [place for place, each in enumerate(troubled) if each.wall_seconds is None]
    return [program(header, first + place) for place in places]


def _figures(kind: str, pairs: Sequence[tuple[Turn, Turn]]) -> Iterator[Figure]:
    yield Figure(
        key=f"timeouts_{_KEYS[kind]}",
        name=f"resident checks/s with 5 % timeouts over without, of programs {kind}",
        unit="",
        samples=tuple(troubled.per_second / calm.per_second for troubled, calm in pairs),
        at_least=_AT_LEAST.get(kind),
    )
    yield Figure(
        key=f"after_timeout_{_KEYS[kind]}",
        name=f"delay of the check after a timeout, of programs {kind}",
        unit="ms",
        samples=tuple(
            (median(troubled.after_timeouts) - median(calm.latencies)) * 1000 for troubled, calm in pairs
        ),
    )
