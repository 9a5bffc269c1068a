"""Bench step: each way to run Lean, through the engine and bare, side by side on the same programs."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from workers.bench import bare
from workers.bench.engine import asked
from workers.bench.figures import Figure, quantile, rounded
from workers.bench.processes import private_kib
from workers.bench.programs import programs
from workers.bench.turns import Ask, Crew, Turn
from workers.box.launch import descendants
from workers.checker import Checker
from workers.environments import LeanEnvironment
from workers.lean import REPORT_DELAY_MS
from workers.ways.way import COLD, RESIDENT, SNAPSHOT

#: Who checks: the farm's engine; bare Lean, told to report at once; and bare Lean that reports when the
#: farm's does, which is resident only.
ENGINE, BARE, TUNED = "farm", "bare", "tuned"
#: The headers' names.
LIGHT, HEAVY = "light", "heavy"

#: The share of bare Lean's checks per second that the engine has to reach. A cold check without a library to
#: load is over before a box around it is worth anything to compare: that bar is for the heavy header.
_BARS = {(RESIDENT, LIGHT): 0.90, (RESIDENT, HEAVY): 0.90, (COLD, HEAVY): 0.85}
#: How many times as fast as a cold one a resident check has to be, with the heavy header.
_RESIDENT_OVER_COLD = 15.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Contest:
    """The turns of one header: by way and by who checked; the nth turns of all stand side by side.

    `memory_mib` is the private memory of one resident Lean, by who keeps it.
    """

    header: str
    turns: Mapping[tuple[str, str], Sequence[Turn]]
    memory_mib: Mapping[str, float]

    @property
    def ways(self) -> list[str]:
        """The ways that took part in it."""
        return [way for way, who in self.turns if who == BARE]

    def rows(self) -> Iterator[dict[str, object]]:
        """Yield what each contender achieved, for scripts and for the table."""
        for (way, who), turns in self.turns.items():
            latencies = [seconds for turn in turns for seconds in turn.latencies]
            yield {
                "header": self.header,
                "way": way,
                "by": who,
                "checks": len(latencies),
                "checks_per_second": rounded(median(turn.per_second for turn in turns)),
                "cpu_seconds_per_check": rounded(median(turn.cpu_per_check for turn in turns)),
                **{
                    f"p{share}_ms": rounded(quantile(latencies, share / 100) * 1000) for share in (50, 95, 99)
                },
            }

    def figures(self) -> Iterator[Figure]:
        """Yield the ratios: of the engine to bare Lean, and of the ways to each other."""
        for way in self.ways:
            yield Figure(
                key=f"{way}_over_bare_{self.header}",
                name=f"{way} checks/s over bare {way} Lean, {self.header} header",
                unit="",
                samples=self._ratios((way, ENGINE), (way, BARE)),
                at_least=_BARS.get((way, self.header)),
            )
        if RESIDENT in self.ways:
            yield Figure(
                key=f"resident_over_tuned_{self.header}",
                name=f"resident checks/s over tuned resident Lean, {self.header} header",
                unit="",
                samples=self._ratios((RESIDENT, ENGINE), (RESIDENT, TUNED)),
            )
        for way in (RESIDENT, SNAPSHOT):
            if {way, COLD} <= set(self.ways):
                yield self._over_cold(way)
        for who, memory_mib in self.memory_mib.items():
            yield Figure(
                key=f"resident_memory_{who}_{self.header}",
                name=f"private memory of a resident Lean, {who}, {self.header} header",
                unit="MiB",
                samples=(memory_mib,),
            )

    def _over_cold(self, way: str) -> Figure:
        barred = way == RESIDENT and self.header == HEAVY
        return Figure(
            key=f"{way}_over_cold_{self.header}",
            name=f"{way} over cold, {self.header} header",
            unit="times",
            samples=self._ratios((way, ENGINE), (COLD, ENGINE)),
            at_least=_RESIDENT_OVER_COLD if barred else None,
        )

    def _ratios(self, one: tuple[str, str], other: tuple[str, str]) -> tuple[float, ...]:
        pairs = zip(self.turns[one], self.turns[other], strict=True)
        return tuple(mine.per_second / its.per_second for mine, its in pairs)


@dataclass(frozen=True, kw_only=True, slots=True)
class Rules:
    """How a contest is held: `ways` take part, for `seconds` per contender, in turns of `turn_seconds`."""

    ways: Sequence[str]
    seconds: float
    turn_seconds: float

    @property
    def rounds(self) -> int:
        """How often each contender has its turn; three times at least, so that a median means something."""
        return max(3, round(self.seconds / self.turn_seconds))


@dataclass(frozen=True, kw_only=True, slots=True)
class Ring:
    """What a contest is held with; `folder` takes the snapshot, `say` is told what is being done."""

    environment: LeanEnvironment
    checker: Checker
    crew: Crew
    folder: Path
    say: Callable[[str], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Contender:
    """One that checks in one way: what its lanes do, and its own resident processes."""

    way: str
    who: str
    checks: Sequence[Ask]
    residents: Sequence[int] = ()


def hold(ring: Ring, name: str, header: str, rules: Rules) -> Contest:
    """Let the engine and bare Lean check the same programs in turns, in each way, with one header."""
    with contextlib.ExitStack() as kept:
        contenders = _contenders(ring, header, rules.ways, kept)
        ring.say(f"{name} header: warming up")
        sizes = _sizes(ring.crew, contenders, header, rules.turn_seconds)
        turns: dict[tuple[str, str], list[Turn]] = {(each.way, each.who): [] for each in contenders}
        number = _FIRST
        for place in range(rules.rounds):
            ring.say(f"{name} header: round {place + 1} of {rules.rounds}")
            for each in contenders if place % 2 == 0 else reversed(contenders):
                given = programs(header, number, sizes[each.way])
                turns[each.way, each.who].append(ring.crew.turn(each.checks, given))
            number += max(sizes.values())
        return Contest(header=name, turns=turns, memory_mib=_memory_mib(contenders, ring.crew.lanes))


#: The numbers before it are those of the programs that warm up.
_FIRST = 1_000_000


def _contenders(ring: Ring, header: str, ways: Sequence[str], kept: contextlib.ExitStack) -> list[_Contender]:
    """Return who takes part; what they keep open is closed with `kept`."""
    found = []
    for way in ways:
        floor = _bare(ring, header, way, kept)
        if floor:
            checks = [asked(ring.checker, ring.environment, way)] * ring.crew.lanes
            found += [*floor, _Contender(way=way, who=ENGINE, checks=checks)]
    return found


def _bare(ring: Ring, header: str, way: str, kept: contextlib.ExitStack) -> list[_Contender]:
    """Return the bare contenders of a way; none where Lean has no such way."""
    if way == RESIDENT:
        return [
            _bare_resident(ring, header, who, delay_ms, kept)
            for who, delay_ms in ((BARE, 0), (TUNED, REPORT_DELAY_MS))
        ]
    snapshot = bare.save_snapshot(ring.environment, header, ring.folder) if way == SNAPSHOT else None
    if way == SNAPSHOT and snapshot is None:
        return []
    checks = [bare.Processes(ring.environment, snapshot).check] * ring.crew.lanes
    return [_Contender(way=way, who=BARE, checks=checks)]


def _bare_resident(
    ring: Ring, header: str, who: str, delay_ms: int, kept: contextlib.ExitStack
) -> _Contender:
    held = [
        kept.enter_context(bare.resident(ring.environment, header, delay_ms)) for _ in range(ring.crew.lanes)
    ]
    pids = [each.pid for each in held]
    return _Contender(way=RESIDENT, who=who, checks=[each.check for each in held], residents=pids)


#: A turn has at least so many programs per lane: fewer would not show the mixture.
_FEWEST = 4


def _sizes(crew: Crew, contenders: Sequence[_Contender], header: str, turn_seconds: float) -> dict[str, int]:
    """Return how many programs make a turn, by way, after letting every contender get ready."""
    sizes: dict[str, int] = {}
    for each in contenders:
        crew.turn(each.checks, programs(header, 0, crew.lanes))  # it gets to know the header
        warm = crew.turn(each.checks, programs(header, crew.lanes, _FEWEST * crew.lanes))
        if each.who == BARE:
            sizes[each.way] = max(_FEWEST * crew.lanes, round(turn_seconds * warm.per_second))
    return sizes


def _memory_mib(contenders: Sequence[_Contender], lanes: int) -> dict[str, float]:
    """Return the private memory of a resident Lean, by who keeps it.

    The engine's are the largest processes below this one that are not bare, one for each lane.
    """
    bares = [pid for each in contenders for pid in each.residents]
    if not bares:
        return {}
    others = set(descendants(os.getpid())) - set(bares)
    largest = sorted(map(private_kib, others))[-lanes:]
    return {BARE: _median_mib(map(private_kib, bares)), ENGINE: _median_mib(largest)}


def _median_mib(sizes_kib: Iterable[int]) -> float:
    return median(sizes_kib) / 1024
