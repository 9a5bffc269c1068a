"""The estimators of a report, beside what enumeration and hand-made numbers say."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.reports.statistics import (
    all_of,
    binomial,
    bootstrap,
    mean_and_interval,
    pass_at_k,
    sizes,
    student_quantile,
    wilson,
)


@st.composite
def samples(draw: st.DrawFn) -> tuple[int, int, int]:
    n = draw(st.integers(1, 9))
    return n, draw(st.integers(0, n)), draw(st.integers(1, n))


@given(samples())
def test_pass_at_k_is_the_share_of_draws_with_a_proof(drawn: tuple[int, int, int]) -> None:
    n, c, k = drawn
    draws = list(combinations([True] * c + [False] * (n - c), k))
    assert pass_at_k(n, c, k) == pytest.approx(float(Fraction(sum(map(any, draws)), len(draws))), abs=1e-12)
    assert all_of(n, c, k) == pytest.approx(float(Fraction(sum(map(all, draws)), len(draws))), abs=1e-12)


def test_pass_at_k_of_many_samples_agrees_with_whole_numbers() -> None:
    for n, c, k in ((1000, 3, 500), (1000, 997, 2), (100_000, 1, 65_536), (4096, 40, 64)):
        exact = 1 - Fraction(math.comb(n - c, k), math.comb(n, k))
        assert pass_at_k(n, c, k) == pytest.approx(float(exact), rel=1e-9)


def test_pass_at_k_of_known_problems() -> None:
    assert pass_at_k(4, 0, 2) == 0.0
    assert pass_at_k(4, 1, 4) == 1.0
    assert pass_at_k(4, 1, 1) == pytest.approx(0.25)
    assert pass_at_k(4, 2, 2) == pytest.approx(5 / 6)


def test_the_powers_of_two_and_the_usual_number_are_reported() -> None:
    assert sizes(1, 1) == [1]
    assert sizes(100, 100) == [1, 2, 4, 8, 16, 32, 64, 100]
    assert sizes(9, 8) == [1, 2, 4, 8]
    assert sizes(0, 0) == []


def test_wilsons_interval_is_the_published_one() -> None:
    # Newcombe 1998, Statistics in Medicine 17, table I: 81 of 263, 15 of 148, 0 of 20, 1 of 29.
    published = {
        (81, 263): (0.2553, 0.3662),
        (15, 148): (0.0624, 0.1605),
        (0, 20): (0.0000, 0.1611),
        (1, 29): (0.0061, 0.1718),
    }
    for (hits, trials), bounds in published.items():
        assert wilson(hits / trials, trials) == pytest.approx(bounds, abs=5e-5)


def test_an_interval_of_yes_and_no_is_wilsons_over_problems() -> None:
    mean, low, high = mean_and_interval({1.0: 81, 0.0: 182}, 263)
    assert (mean, low, high) == pytest.approx((81 / 263, *wilson(81 / 263, 263)))


def test_an_interval_is_never_of_no_width_and_holds_its_mean() -> None:
    for values, lines in (({0.0: 20}, 20), ({1.0: 3}, 12), ({0.5: 4}, 8), ({0.25: 1}, 4)):
        mean, low, high = mean_and_interval(values, lines)
        assert 0 <= low <= mean <= high <= 1
        assert high - low > 0.05


@pytest.mark.parametrize("problems", [1, 2, 10, 100])
def test_samples_of_problems_that_agree_are_no_further_problems(problems: int) -> None:
    for samples in (1, 8, 64):
        for share in (0.0, 0.25, 1.0):
            found = mean_and_interval({share: problems}, problems * samples)
            assert found == pytest.approx((share, *wilson(share, problems)))


def _of_a_tenth(random: Random) -> float:
    return float(random.random() < 0.1)


def _of_any(random: Random) -> float:
    return sum(random.random() < chance for chance in [random.random()] * 32) / 32


def _of_mostly_hard(random: Random) -> float:
    chance = random.betavariate(2, 5)
    return sum(random.random() < chance for _ in range(8)) / 8


@pytest.mark.parametrize("problems", [2, 3, 5, 10, 20])
@pytest.mark.parametrize(
    ("problem", "samples", "truth"), [(_of_a_tenth, 64, 0.1), (_of_any, 32, 0.5), (_of_mostly_hard, 8, 2 / 7)]
)
def test_an_interval_covers_the_truth_about_as_often_as_it_says(
    problem: Callable[[Random], float], samples: int, truth: float, problems: int
) -> None:
    random = Random(7)
    hits = 0
    for _ in range(1000):
        drawn = Counter(problem(random) for _ in range(problems))
        _, low, high = mean_and_interval(drawn, problems * samples)
        hits += low <= truth <= high
    assert hits >= 890


def test_students_quantile_is_the_published_one() -> None:
    published = {3: 3.182, 4: 2.776, 5: 2.571, 10: 2.228, 30: 2.042, 1000: 1.962}
    for freedom, quantile in published.items():
        assert student_quantile(freedom) == pytest.approx(quantile, rel=0.01)


def test_more_agreement_between_problems_makes_a_narrower_interval() -> None:
    _, low, high = mean_and_interval({0.4: 50, 0.6: 50}, 1000)
    _, wide_low, wide_high = mean_and_interval({0.0: 50, 1.0: 50}, 1000)
    assert high - low < (wide_high - wide_low) / 2


@given(st.integers(0, 6), st.integers(1, 7), st.data())
def test_a_binomial_of_few_trials_has_its_exact_probabilities(
    trials: int, whole: int, data: st.DataObject
) -> None:
    part = data.draw(st.integers(0, whole))
    random = Random(7)
    found = Counter(binomial(random, trials, part, whole) for _ in range(2000))
    p = part / whole
    for hits in range(trials + 1):
        expected = math.comb(trials, hits) * p**hits * (1 - p) ** (trials - hits)
        assert abs(found[hits] / 2000 - expected) < 5 * math.sqrt(expected * (1 - expected) / 2000) + 1e-9


def test_a_bootstrap_of_few_problems_is_that_of_all_resamples() -> None:
    rows = {(0.5,): 2, (-0.25,): 1, (0.0,): 1}
    each = [0.5, 0.5, -0.25, 0.0]
    means = sorted(sum(drawn) / 4 for drawn in product(each, repeat=4))
    exact = means[int(0.025 * len(means))], means[-1 - int(0.025 * len(means))]
    (found,) = bootstrap(rows)
    assert found == pytest.approx(exact, abs=1e-8)


def test_many_equal_problems_are_resampled_like_different_ones() -> None:
    # As many rows a hair apart are drawn one by one; equal ones by how often.
    kinds = ((0.9, 300), (0.0, 500), (-0.9, 200))
    many = bootstrap({(value,): number for value, number in kinds})
    one_by_one = bootstrap({(value + 2e-9 * each,): 1 for value, number in kinds for each in range(number)})
    assert many[0] == pytest.approx(one_by_one[0], abs=0.004)
    normal = 1.96 * math.sqrt((0.9**2 * 0.5 - 0.09**2) / 1000)
    assert many[0] == pytest.approx((0.09 - normal, 0.09 + normal), abs=0.004)


def test_a_place_counts_only_the_problems_that_have_it() -> None:
    found = bootstrap({(1.0, None, None): 10, (1.0, 0.5, None): 10})
    assert found[0] == pytest.approx((1.0, 1.0))
    assert found[1] == pytest.approx((0.5, 0.5))
    assert found[2] is None


def test_the_same_rows_give_the_same_bounds_in_any_order() -> None:
    rows = {(0.5, 1.0): 60, (-0.5, 0.0): 30, (0.0, 0.0): 41, (1.0, None): 7, (0.25, 0.5): 3}
    assert bootstrap(rows) == bootstrap(dict(reversed(rows.items()))) == bootstrap(rows)
