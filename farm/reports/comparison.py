"""Report step: compares the report with another run, over the problems that both have. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from farm.reports.estimates import Kinds, ProblemKind, counted
from farm.reports.pools import LinePool, Samples
from farm.reports.statistics import Row, bootstrap, sizes

#: Resamples of fewer problems vary too little, those of one problem not at all.
LEAST_PROBLEMS = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class PassDifference:
    """pass@k of both runs, and its difference, over the problems whose pass@k is known in both.

    `low` and `high` bound the difference, this report minus the other run; they are None if the problems are
    too few.
    """

    k: int
    problems: int
    value: float
    against: float
    difference: float
    low: float | None
    high: float | None

    @property
    def is_of_few(self) -> bool:
        """Whether there are too few problems for an interval."""
        return self.problems < LEAST_PROBLEMS

    @property
    def differs(self) -> bool:
        """Whether the interval leaves zero out."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """The comparison of a report with another run.

    `gained` problems are solved here, and all judged and not solved there; `lost` ones the other way round.
    For `undecided` ones neither is known, because a side without a proof has unknown lines.
    """

    run: str
    problems: int
    only_here: int
    only_there: int
    pass_at: tuple[PassDifference, ...]
    both_solved: int
    neither_solved: int
    undecided: int
    gained: tuple[str, ...]
    lost: tuple[str, ...]


Pair = tuple[Samples, Samples]


def compare(pool: LinePool, other: LinePool, names: Sequence[str], *, run: str) -> Comparison | None:
    """Return the comparison of a pool with that of another run, None without a common problem."""
    theirs = other.problems
    common = {number: (each, theirs[number]) for number, each in pool.problems.items() if number in theirs}
    if not common:
        return None
    flips = Counter(map(_flip, common.values()))
    return Comparison(
        run=run,
        problems=len(common),
        only_here=len(pool.problems) - len(common),
        only_there=len(other.problems) - len(common),
        pass_at=_differences(common.values()),
        both_solved=flips["both"],
        neither_solved=flips["neither"],
        undecided=flips["undecided"],
        gained=tuple(names[number] for number, pair in common.items() if _flip(pair) == "gained"),
        lost=tuple(names[number] for number, pair in common.items() if _flip(pair) == "lost"),
    )


def _flip(pair: Pair) -> str:
    here, there = pair
    if here.is_solved and there.is_solved:
        return "both"
    if here.is_unsolved and there.is_unsolved:
        return "neither"
    if here.is_solved and there.is_unsolved:
        return "gained"
    return "lost" if here.is_unsolved and there.is_solved else "undecided"


def _differences(pairs: Iterable[Pair]) -> tuple[PassDifference, ...]:
    kinds: Counter[tuple[ProblemKind, ...]] = Counter(
        (ProblemKind.of(here), ProblemKind.of(there)) for here, there in pairs
    )
    both: Counter[int] = Counter()
    for sides, number in kinds.items():
        both[min(each.samples for each in sides)] += number
    ks = sizes(max(both), max(both, key=lambda samples: (both[samples], samples)))
    told = {k: found for k in ks if (found := counted(kinds, k))}
    rows: Counter[Row] = Counter()
    for sides, number in kinds.items():
        rows[tuple(_difference(sides, k) if sides in found else None for k, found in told.items())] += number
    intervals = bootstrap(rows) if told else []
    return tuple(
        _of_k(found, k, interval)
        for (k, found), interval in zip(told.items(), intervals, strict=True)
        if interval is not None
    )


def _difference(sides: tuple[ProblemKind, ...], k: int) -> float:
    here, there = sides
    return here.pass_at(k) - there.pass_at(k)


def _of_k(kinds: Kinds, k: int, interval: tuple[float, float]) -> PassDifference:
    problems = sum(kinds.values())
    value, against = (
        sum(sides[side].pass_at(k) * number for sides, number in kinds.items()) / problems for side in (0, 1)
    )
    low, high = interval if problems >= LEAST_PROBLEMS else (None, None)
    return PassDifference(
        k=k,
        problems=problems,
        value=value,
        against=against,
        difference=value - against,
        low=low,
        high=high,
    )
