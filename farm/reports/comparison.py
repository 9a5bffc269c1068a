"""Report step: what is reported beside another run, over the problems that both have. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from farm.reports.pools import Pool, Samples
from farm.reports.statistics import Row, bootstrap, pass_at_k, sizes


@dataclass(frozen=True, kw_only=True, slots=True)
class PassDifference:
    """pass@k of both over the problems of which both have at least k judged samples, and its difference.

    `low` and `high` bound the difference, what is reported minus what it is compared with.
    """

    k: int
    problems: int
    value: float
    against: float
    difference: float
    low: float
    high: float

    @property
    def differs(self) -> bool:
        """Whether the interval leaves zero out."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """What is reported beside another run.

    `gained` problems are solved here, and all judged and not solved there; `lost` ones the other way round.
    Of `undecided` ones that cannot be said, for a side without a proof has unknown lines.
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


def compare(pool: Pool, other: Pool, names: Sequence[str], *, run: str) -> Comparison | None:
    """Return what distinguishes a pool from that of another run, None without a common problem."""
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


#: The samples judged and proved here, then there.
_Kind = tuple[int, int, int, int]


def _differences(pairs: Iterable[Pair]) -> tuple[PassDifference, ...]:
    kinds: Counter[_Kind] = Counter((a.judged, a.proved, b.judged, b.proved) for a, b in pairs)
    both: Counter[int] = Counter()
    for (here, _, there, _), number in kinds.items():
        both[min(here, there)] += number
    ks = sizes(max(both), max(both, key=lambda samples: (both[samples], samples)))
    rows: Counter[Row] = Counter()
    for kind, number in kinds.items():
        rows[tuple(_difference(kind, k) for k in ks)] += number
    found = bootstrap(rows) if ks else []
    return tuple(
        _of_k(kinds, k, interval) for k, interval in zip(ks, found, strict=True) if interval is not None
    )


def _difference(kind: _Kind, k: int) -> float | None:
    here, proved_here, there, proved_there = kind
    if min(here, there) < k:
        return None
    return pass_at_k(here, proved_here, k) - pass_at_k(there, proved_there, k)


def _of_k(kinds: Counter[_Kind], k: int, interval: tuple[float, float]) -> PassDifference:
    enough = [(kind, number) for kind, number in kinds.items() if min(kind[0], kind[2]) >= k]
    problems = sum(number for _, number in enough)
    value = sum(pass_at_k(kind[0], kind[1], k) * number for kind, number in enough) / problems
    against = sum(pass_at_k(kind[2], kind[3], k) * number for kind, number in enough) / problems
    return PassDifference(
        k=k,
        problems=problems,
        value=value,
        against=against,
        difference=value - against,
        low=interval[0],
        high=interval[1],
    )
