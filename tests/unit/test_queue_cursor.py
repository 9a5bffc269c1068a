"""Where queues begin: what a worker may pass over, and until when."""

from __future__ import annotations

import pytest

from farm.judging.states import Priority
from farm.store.watermark import Front

BATCH, ONLINE = ("core", Priority.BATCH), ("core", Priority.ONLINE)
BOTH = [ONLINE, BATCH]


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


def look(front: Front, clock: Clock, first: dict[tuple[str, Priority], int], *, seconds: float) -> list[int]:
    """Look into both queues, which takes so long, and see the first there; returns the turns asked from."""
    turns = front.turns(BOTH)
    clock.now += seconds
    front.saw(BOTH, first)
    return turns


def test_what_costs_little_is_looked_through_every_time(front: Front, clock: Clock) -> None:
    for _ in range(3):
        assert look(front, clock, {BATCH: 7}, seconds=0.005) == [0, 0]


def test_what_costs_much_is_looked_through_again_after_a_pause(front: Front, clock: Clock) -> None:
    look(front, clock, {BATCH: 7}, seconds=0.1)
    nothing, seven = look(front, clock, {BATCH: 9}, seconds=0.1)
    assert (nothing, seven) == (2**63 - 1, 7)
    assert look(front, clock, {}, seconds=0.1)[1] == 9
    assert look(front, clock, {}, seconds=1.9)[1] == 9
    assert look(front, clock, {BATCH: 3}, seconds=0.1) == [0, 0]
    assert look(front, clock, {BATCH: 3}, seconds=0.1)[1] == 3


def test_a_queue_in_which_nothing_was_found_this_time_begins_where_it_did(front: Front, clock: Clock) -> None:
    look(front, clock, {ONLINE: 4, BATCH: 7}, seconds=0.1)
    look(front, clock, {ONLINE: 5}, seconds=0.1)
    assert front.turns(BOTH) == [5, 7]


def test_who_finds_nothing_looks_through_all_unless_that_was_just_done(front: Front, clock: Clock) -> None:
    look(front, clock, {BATCH: 7}, seconds=0.1)
    look(front, clock, {}, seconds=0.05)
    assert front.gives_up()
    look(front, clock, {}, seconds=0.1)
    assert not front.gives_up()
    assert look(front, clock, {}, seconds=0.1) == [0, 0]
    assert front.gives_up()


def test_a_look_at_the_classes_before_sees_the_whole_queue_and_pauses_in_proportion_to_its_cost(
    front: Front, clock: Clock
) -> None:
    look(front, clock, {BATCH: 7}, seconds=0.1)
    assert front.look([ONLINE]) == [0]
    clock.now += 0.1
    front.looked({ONLINE: 3})
    assert front.turns(BOTH) == [3, 7]
    assert front.look([ONLINE]) == [3]
    clock.now += 0.5
    assert front.look([ONLINE]) == [0]
