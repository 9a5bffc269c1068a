"""Turns of tenants: who is served next, and how much, however many runs each has."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from farm.store.rounds import FIRST, LAST, Round, Span, Taken


def served(weights: dict[int, int], waiting: dict[int, int], *, most: int, claims: int) -> Counter[int]:
    """Return how many checks each tenant gets in so many claims, out of the spans that the round names."""
    tenants, left, got = Round(), dict(waiting), Counter[int]()
    for _ in range(claims):
        taken: list[Taken] = []
        for span in tenants.spans():
            for tenant in sorted(each for each in left if span.first <= each <= span.last):
                number = min(left[tenant], most - len(taken))
                taken += [Taken(tenant=tenant, weight=weights[tenant])] * number
                left[tenant] -= number
        got.update(each.tenant for each in taken)
        tenants.took(taken, most)
    return got


@pytest.mark.parametrize("most", [1, 7, 64])
@pytest.mark.parametrize("tenants", [(FIRST, LAST), (-5, 0, 9), tuple(range(20))])
def test_tenants_get_equal_parts_however_much_each_has(most: int, tenants: tuple[int, ...]) -> None:
    waiting = {tenant: 10_000 * (1 + at) for at, tenant in enumerate(tenants)}
    got = served(dict.fromkeys(tenants, 1), waiting, most=most, claims=5 * len(tenants))
    assert got == dict.fromkeys(tenants, 5 * most)


@pytest.mark.parametrize("most", [1, 7])
def test_a_tenant_with_a_weight_gets_so_many_times_as_much(most: int) -> None:
    got = served({1: 3, 2: 1, 3: 2}, dict.fromkeys((1, 2, 3), 10_000), most=most, claims=60)
    assert got == {1: 30 * most, 2: 10 * most, 3: 20 * most}


def test_one_claim_takes_of_many_tenants_with_little_each() -> None:
    tenants = range(40)
    assert served(dict.fromkeys(tenants, 1), dict.fromkeys(tenants, 1), most=40, claims=1).total() == 40


def test_a_tenant_that_had_little_waits_for_no_other_a_second_time() -> None:
    assert served({1: 1, 2: 1}, {1: 1, 2: 50}, most=10, claims=2) == {1: 1, 2: 19}


def test_one_that_was_passed_over_comes_next() -> None:
    tenants = Round()
    tenants.took([Taken(tenant=1, weight=1), Taken(tenant=4, weight=1, in_order=False)], 2)
    assert tenants.spans()[0] == Span(1, 0, 1)  # it has one more of its two
    tenants.took([Taken(tenant=1, weight=1)], 1)
    assert tenants.spans()[0] == Span(first=2)


@pytest.mark.parametrize("known", [{}, {4: 7}, {FIRST: 1, 4: 7, 5: 8, LAST: 9}])
@pytest.mark.parametrize("span", [Span(), Span(4, 0, 4), Span(4, 0, 8), Span(first=5), Span(last=4)])
def test_the_parts_are_the_span_without_what_is_known_to_be_gone(span: Span, known: dict[int, int]) -> None:
    parts = span.parts(known)
    assert (parts[0].first, parts[-1].last) == (span.first, span.last)
    assert all(part.last + 1 == behind.first for part, behind in pairwise(parts))
    inside = {tenant: turn for tenant, turn in known.items() if span.first <= tenant <= span.last}
    assert {part.first: part.turn for part in parts if part.turn} == inside


def test_the_spans_are_the_whole_queue_once_with_the_last_tenant_from_its_turn_on() -> None:
    tenants = Round()
    assert tenants.spans(5) == [Span()]
    tenants.took([Taken(tenant=4, weight=2)], 1)
    assert tenants.spans(5) == [Span(4, 5, 4), Span(first=5), Span(last=3)]
    tenants.took([Taken(tenant=4, weight=2)], 1)
    assert tenants.spans(5) == [Span(first=5), Span(last=3), Span(4, 5, 4)]
