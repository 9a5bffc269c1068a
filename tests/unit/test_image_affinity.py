"""What a worker asks for before what is next by turn."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from farm_workers.loop.image_affinity import UNFAIR_SECONDS, ImageAffinity

from farm.judging.job import Check
from farm.pauses import MOST_SECONDS
from farm.store.attempt import Claim
from farm.store.wish import Alike


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def groups(clock: Clock) -> ImageAffinity:
    return ImageAffinity(clock, lambda most: most // 2)


def claim(image: int, turn: int = 7, environment: str = "core", priority: int = 2) -> Claim:
    return Claim(
        check_id=turn,
        attempt=1,
        claimed_at=datetime.now(UTC),
        failures=0,
        suspect=False,
        environment=environment,
        check=Check.of(program=""),
        priority=priority,
        image=image,
        turn=turn,
    )


def test_at_first_it_asks_by_turn_alone(groups: ImageAffinity) -> None:
    assert list(groups.wishes()) == []


def test_it_goes_on_with_the_image_of_the_last_claim_then_with_one_at_random(groups: ImageAffinity) -> None:
    groups.took_by_turn([claim(3, 7), claim(3, 9)])
    group, other = groups.wishes()
    assert group == Alike(environment="core", priority=2, image=3, turn=9)
    assert (other.exact, other.turn, other.environment) == (False, 0, "core")
    assert 1 < other.image < 1 << 56


def test_what_is_found_no_more_is_not_asked_for_again(groups: ImageAffinity) -> None:
    groups.took_by_turn([claim(3)])
    for wish in groups.wishes():
        groups.found(wish, [])
    assert list(groups.wishes()) == []


def test_a_group_goes_on_from_where_it_stands(groups: ImageAffinity) -> None:
    groups.took_by_turn([claim(3, 7)])
    wish = next(groups.wishes())
    groups.found(wish, [claim(3, 8), claim(3, 30)])
    assert next(groups.wishes()) == Alike(environment="core", priority=2, image=3, turn=30)


def test_after_some_seconds_what_is_next_by_turn_comes_and_then_what_is_like_it(
    groups: ImageAffinity, clock: Clock
) -> None:
    groups.took_by_turn([claim(3)])
    clock.now += UNFAIR_SECONDS
    assert list(groups.wishes()) == []
    groups.took_by_turn([claim(5, 1)])
    assert [wish.image for wish in groups.wishes() if wish.exact] == [5, 3]


@pytest.mark.parametrize("other", [{"environment": "next", "priority": 1}, {"priority": 2}])
def test_another_queue_that_comes_by_turn_keeps_its_turn(
    groups: ImageAffinity, other: dict[str, object]
) -> None:
    groups.took_by_turn([claim(3, priority=1)])
    groups.took_by_turn([claim(5, **other)])  # type: ignore[arg-type]
    assert [wish.image for wish in groups.wishes() if wish.exact] == [5]


def test_a_class_before_interrupts_and_neither_ends_a_group_nor_postpones_the_head_of_the_queue(
    groups: ImageAffinity, clock: Clock
) -> None:
    groups.took_by_turn([claim(3)])
    clock.now += UNFAIR_SECONDS - 1
    groups.took_by_turn([claim(5, priority=0)])
    assert [wish.image for wish in groups.wishes() if wish.exact] == [5, 3]
    clock.now += 1
    assert [wish.image for wish in groups.wishes() if wish.exact] == [5]


def test_what_has_no_image_is_asked_for_by_turn(groups: ImageAffinity) -> None:
    groups.took_by_turn([claim(0)])
    assert list(groups.wishes()) == []


def test_looks_that_take_long_are_not_repeated_soon_and_one_of_many_may(
    groups: ImageAffinity, clock: Clock
) -> None:
    groups.took_by_turn([claim(3)])
    for seconds in (0.001, 0.05, 0.001, 0.08):
        wish = next(groups.wishes())
        clock.now += seconds
        groups.found(wish, [claim(3, 8)])
    assert list(groups.wishes()) == []
    clock.now += 1.7
    assert next(groups.wishes()).image == 3


def test_a_look_that_waited_for_a_server_is_no_reason_for_a_longer_pause(
    groups: ImageAffinity, clock: Clock
) -> None:
    groups.took_by_turn([claim(3, 7)])
    for wish in groups.wishes():
        clock.now += 60.0
        groups.found(wish, [claim(3, 9)])
        break
    assert not list(groups.wishes())
    groups.took_by_turn([claim(3, 9)])  # its next head of the queue is due later
    clock.now += MOST_SECONDS
    groups.took_by_turn([claim(3, 11)])
    assert list(groups.wishes())
