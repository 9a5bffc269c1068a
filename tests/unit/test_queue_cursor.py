"""Where queues begin: what a worker may pass over, and until when."""

from __future__ import annotations

import pytest

from farm.judging.states import Priority
from farm.store.rounds import Span
from farm.store.watermark import Front, Head, Place

BATCH, ONLINE = ("core", Priority.BATCH), ("core", Priority.ONLINE)
BOTH = [ONLINE, BATCH]
Asked = tuple[Place, Span]


class Clock:
    """A clock that shows what it is set to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def front(clock: Clock) -> Front:
    return Front(clock)


A, B = 3, 8  # tenants


def look(front: Front, clock: Clock, found: dict[tuple[Place, int], int], *, seconds: float) -> list[Asked]:
    """Look into both queues, which takes so long, and see these tenants' first; returns where it looked."""
    spans = front.spans(BOTH)
    clock.now += seconds
    heads = [Head(place=place, tenant=tenant, turn=turn) for (place, tenant), turn in found.items()]
    front.saw(spans, heads, is_all=True)
    return spans


def whole() -> list[Asked]:
    return [(place, Span()) for place in BOTH]


def turns(spans: list[Asked]) -> dict[tuple[Place, int], int]:
    """Return the turns from which tenants are looked for, where that is not the beginning."""
    return {(place, span.first): span.turn for place, span in spans if span.turn}


def test_what_costs_little_is_looked_through_every_time(front: Front, clock: Clock) -> None:
    for _ in range(3):
        assert look(front, clock, {(BATCH, A): 7}, seconds=0.005) == whole()


def test_what_costs_much_is_looked_through_again_after_a_pause(front: Front, clock: Clock) -> None:
    look(front, clock, {(BATCH, A): 7}, seconds=0.1)
    assert turns(look(front, clock, {(BATCH, A): 9}, seconds=0.1)) == {(BATCH, A): 7}
    assert turns(look(front, clock, {(BATCH, A): 9}, seconds=1.9)) == {(BATCH, A): 9}
    assert look(front, clock, {(BATCH, A): 3, (BATCH, B): 1}, seconds=0.1) == whole()
    assert turns(look(front, clock, {}, seconds=0.1)) == {(BATCH, A): 3, (BATCH, B): 1}


def test_tenants_that_are_not_known_are_looked_for_from_their_beginning(front: Front, clock: Clock) -> None:
    look(front, clock, {(BATCH, A): 7}, seconds=0.1)
    spans = [(ONLINE, Span()), (BATCH, Span(last=A - 1)), (BATCH, Span(A, 7, A)), (BATCH, Span(first=A + 1))]
    assert front.spans(BOTH) == spans


def test_a_tenant_whose_part_a_claim_did_not_reach_begins_where_it_did(front: Front, clock: Clock) -> None:
    look(front, clock, {(BATCH, A): 4, (BATCH, B): 7}, seconds=0.1)
    spans = front.spans(BOTH)
    part = next(number for number, (_, span) in enumerate(spans) if span.first == A)
    front.saw(spans, [Head(place=BATCH, tenant=A, turn=5, part=part)], is_all=False)
    assert turns(front.spans(BOTH)) == {(BATCH, A): 5, (BATCH, B): 7}


@pytest.mark.parametrize("is_all", [True, False])
def test_a_tenant_of_which_nothing_was_found_may_begin_anywhere(
    front: Front, clock: Clock, is_all: bool
) -> None:
    look(front, clock, {(BATCH, A): 4, (BATCH, B): 7}, seconds=0.1)
    spans = front.spans(BOTH)
    part = next(number for number, (_, span) in enumerate(spans) if span.first == B)
    front.saw(spans, [Head(place=BATCH, tenant=B, turn=8, part=part)], is_all=is_all)
    assert turns(front.spans(BOTH)) == {(BATCH, B): 8}


def test_who_finds_nothing_looks_through_all_unless_that_was_just_done(front: Front, clock: Clock) -> None:
    look(front, clock, {(BATCH, A): 7}, seconds=0.1)
    look(front, clock, {}, seconds=0.05)
    assert front.gives_up()
    look(front, clock, {}, seconds=0.1)
    assert not front.gives_up()
    assert look(front, clock, {}, seconds=0.1) == whole()
    assert front.gives_up()


def test_a_look_at_the_classes_before_sees_the_whole_queue_and_pauses_in_proportion_to_its_cost(
    front: Front, clock: Clock
) -> None:
    look(front, clock, {(BATCH, A): 7}, seconds=0.1)
    assert front.look([ONLINE]) == [0]
    clock.now += 0.1
    front.looked([ONLINE], [Head(place=ONLINE, tenant=B, turn=3)])
    assert turns(front.spans(BOTH)) == {(ONLINE, B): 3, (BATCH, A): 7}
    assert front.look([ONLINE]) == [3]
    clock.now += 0.5
    assert front.look([ONLINE]) == [0]
