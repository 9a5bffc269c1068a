"""Report step: tests whether two runs solve different shares of the problems that both have. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from farm.reports.pools import LinePool


@dataclass(frozen=True, kw_only=True, slots=True)
class PairedTest:
    """Two runs over the problems that are decided in both: solved, or all judged and none proved.

    `p` is of McNemar's test in its exact form, two-sided: the chance of numbers of problems that only one run
    solves at least as uneven as these, if both are equally good. `adjusted` is corrected for the number of
    pairs by Holm's method. Both are None without a decided problem.
    """

    first: str
    second: str
    problems: int
    both: int
    only_first: int
    only_second: int
    p: float | None
    adjusted: float | None = None


def paired_tests(runs: Sequence[tuple[str, LinePool]]) -> tuple[PairedTest, ...]:
    """Return the test of each pair of runs, in the order of the runs."""
    found = [_tested(*pair) for pair in combinations(runs, 2)]
    adjusted = iter(holm([each.p for each in found if each.p is not None]))
    return tuple(each if each.p is None else replace(each, adjusted=next(adjusted)) for each in found)


def _tested(first: tuple[str, LinePool], second: tuple[str, LinePool]) -> PairedTest:
    (name, pool), (other_name, other) = first, second
    counts = {(True, True): 0, (True, False): 0, (False, True): 0, (False, False): 0}
    for number, here in pool.problems.items():
        there = other.problems.get(number)
        if there is not None and all(each.is_solved or each.is_unsolved for each in (here, there)):
            counts[here.is_solved, there.is_solved] += 1
    problems = sum(counts.values())
    only_first, only_second = counts[True, False], counts[False, True]
    return PairedTest(
        first=name,
        second=other_name,
        problems=problems,
        both=counts[True, True],
        only_first=only_first,
        only_second=only_second,
        p=mcnemar(only_first, only_second) if problems else None,
    )


def mcnemar(only_first: int, only_second: int) -> float:
    """Return the two-sided p of McNemar's exact test: a fair coin for each problem that one alone solves."""
    tosses = only_first + only_second
    tail = sum(math.comb(tosses, heads) for heads in range(min(only_first, only_second) + 1))
    return min(1.0, 2 * tail / (1 << tosses))


def holm(values: Sequence[float]) -> list[float]:
    """Return p values corrected for their number, in the given order (Holm, 1979)."""
    adjusted, least = [0.0] * len(values), 0.0
    for rank, place in enumerate(sorted(range(len(values)), key=values.__getitem__)):
        least = max(least, min(1.0, (len(values) - rank) * values[place]))
        adjusted[place] = least
    return adjusted
