"""Runs compared two by two, against numbers computed by hand."""

from __future__ import annotations

import pytest

from farm.reports.pairs import holm, mcnemar, paired_tests
from farm.reports.pools import LinePool
from tests.evaluations import JUDGE_ERROR, PROVED, REJECTED
from tests.unit.test_report_figures import Line, pool


@pytest.mark.parametrize(
    ("first", "second", "p"),
    [(0, 0, 1.0), (1, 0, 1.0), (5, 5, 1.0), (5, 0, 2 / 32), (0, 6, 2 / 64), (7, 2, 2 * (1 + 9 + 36) / 512)],
)
def test_p_is_the_chance_of_so_uneven_tosses_of_a_coin(first: int, second: int, p: float) -> None:
    assert mcnemar(first, second) == pytest.approx(p)


def test_thousands_of_problems_have_a_p() -> None:
    assert 0 < mcnemar(2000, 2200) < 0.003


@pytest.mark.parametrize(
    ("values", "adjusted"),
    [
        ([], []),
        ([0.02], [0.02]),
        ([0.01, 0.04, 0.03], [0.03, 0.06, 0.06]),  # 3 x 0.01, then 2 x 0.03, and no less for 1 x 0.04
        ([0.5, 0.9], [1.0, 1.0]),
    ],
)
def test_p_values_are_corrected_for_their_number(values: list[float], adjusted: list[float]) -> None:
    assert holm(values) == pytest.approx(adjusted)


def run(*verdicts: Line) -> LinePool:
    return pool(*[[each] for each in verdicts])


def test_each_two_runs_are_compared_over_the_problems_that_both_decided() -> None:
    a = run(*[PROVED] * 6, REJECTED, REJECTED, JUDGE_ERROR)
    b = run(PROVED, *[REJECTED] * 5, PROVED, "queued", PROVED)
    c = run(*[REJECTED] * 6)
    found = {(each.first, each.second): each for each in paired_tests([("a", a), ("b", b), ("c", c)])}
    assert list(found) == [("a", "b"), ("a", "c"), ("b", "c")]
    ab, ac, bc = found.values()
    assert (ab.problems, ab.both, ab.only_first, ab.only_second) == (7, 1, 5, 1)
    assert (ac.problems, ac.both, ac.only_first, ac.only_second) == (6, 0, 6, 0)
    assert (bc.problems, bc.both, bc.only_first, bc.only_second) == (6, 0, 1, 0)
    assert [each.p for each in found.values()] == pytest.approx([2 * 7 / 64, 2 / 64, 1.0])
    assert [each.adjusted for each in found.values()] == pytest.approx([4 * 7 / 64, 6 / 64, 1.0])


def test_runs_without_a_problem_that_both_decided_have_no_p() -> None:
    (found,) = paired_tests([("a", run(PROVED)), ("b", run("queued"))])
    assert (found.problems, found.p, found.adjusted) == (0, None, None)
