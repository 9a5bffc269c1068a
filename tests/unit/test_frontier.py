"""The order in which a search expands states."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farm.search.frontier import Frontier, Open, Strategy, Tree, frontier


def state(*tactics: str, score: float = 0.0, goals: int = 1) -> Open:
    return Open(state="/".join(tactics), tactics=tactics, score=score, goals=("g",) * goals)


def taken(frontier_: Frontier) -> list[str]:
    """Take all states, none of which has others below it."""
    found = []
    while (each := frontier_.take()) is not None:
        found.append(each.state)
        frontier_.expanded(each, None)
    return found


@pytest.mark.parametrize(
    ("strategy", "order"),
    [
        (Strategy.BEST, ["b", "c/c", "a"]),
        (Strategy.NORMALIZED, ["c/c", "b", "a"]),
        (Strategy.DEPTH, ["c/c", "a", "b"]),
        (Strategy.BREADTH, ["a", "b", "c/c"]),
    ],
)
def test_a_queue_is_ordered_by_its_strategy(strategy: Strategy, order: list[str]) -> None:
    queue = frontier(strategy, 0.5)
    for each in (state("a", score=-3), state("b", score=-1), state("c", "c", score=-1.2)):
        queue.add(each, None)
    assert len(queue) == 3
    assert taken(queue) == order


@settings(max_examples=20)
@given(st.data())
@pytest.mark.parametrize("strategy", Strategy)
def test_every_state_is_taken_once(strategy: Strategy, data: st.DataObject) -> None:
    found, added, waiting = list[str](), ["root"], frontier(strategy, 0.5)
    waiting.add(state("root"), None)
    while (each := waiting.take()) is not None:
        found.append(each.state)
        below = data.draw(st.integers(0, 3)) if len(added) < 12 else 0
        for number in range(below):
            score = data.draw(st.floats(-1e6, 0))
            new = state(*each.tactics, str(number), score=score, goals=data.draw(st.integers(1, 5)))
            waiting.add(new, each)
            added.append(new.state)
        waiting.expanded(each, data.draw(st.none() | st.floats(0, 1)))
        assert len(waiting) == len(added) - len(found)
    assert sorted(found) == sorted(added)


def test_a_tree_prefers_where_proofs_are_likely_and_comes_back_to_the_others() -> None:
    tree, root = Tree(), state("root")
    good, poor = state("good", score=-1), state("poor", score=-1)
    tree.add(root, None)
    assert tree.take() is root
    tree.add(good, root)
    tree.add(poor, root)
    tree.expanded(root, 0.5)
    values = {"good": 0.9, "poor": 0.1}
    visits = []
    for number in range(60):
        each = tree.take()
        assert each is not None
        visits.append(each.tactics[0])
        tree.add(state(*each.tactics, str(number)), each)
        tree.expanded(each, values[each.tactics[0]])
    assert set(visits[:2]) == {"good", "poor"}
    assert 2 < visits.count("poor") < visits.count("good") / 2


def test_a_tree_follows_the_scores_of_siblings() -> None:
    tree, root = Tree(), state("root")
    tree.add(root, None)
    tree.take()
    scored = [state(str(each), score=-each) for each in range(4)]
    for each in scored:
        tree.add(each, root)
    tree.expanded(root, None)
    assert taken(tree) == ["0", "1", "2", "3"]
