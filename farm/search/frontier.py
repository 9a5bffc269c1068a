"""Search step, the frontier: the states that are not expanded yet, and the order in which they are. Pure."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

#: How much a tree's selection explores: the constant of PUCT.
EXPLORATION = 1.0


class Strategy(StrEnum):
    """The state that is expanded next.

    `BEST`: that with the highest sum of scores; `NORMALIZED`: the highest sum divided by the number of
    tactics to the power of a limit; `DEPTH`: that with the most tactics; `BREADTH`: that with the fewest;
    `TREE`: that to which a Monte Carlo tree search descends.
    """

    BEST = "best-first"
    NORMALIZED = "length-normalized"
    DEPTH = "depth-first"
    BREADTH = "breadth-first"
    TREE = "mcts"


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class Open:
    """A state to expand: its id, the tactics that lead there, the sum of their scores, and its goals."""

    state: str
    tactics: tuple[str, ...]
    score: float
    goals: tuple[str, ...]


class Frontier(Protocol):
    """States to expand."""

    def add(self, state: Open, parent: Open | None) -> None:
        """Add a state that an expansion of its parent has reached, or the root."""

    def take(self) -> Open | None:
        """Return the state to expand next, None if there is none."""

    def expanded(self, state: Open, value: float | None) -> None:
        """Note that all states below one were added; `value` is the chance of a proof, None if not known."""

    def __len__(self) -> int:
        """Return the number of states that wait."""


def frontier(strategy: Strategy, length_power: float) -> Frontier:
    """Return an empty frontier."""
    return Tree() if strategy is Strategy.TREE else Queue(strategy, length_power)


class Queue:
    """States by a rank that never changes: the lowest is expanded first."""

    def __init__(self, strategy: Strategy, length_power: float) -> None:
        self._strategy, self._length_power = strategy, length_power
        self._numbers = itertools.count()
        self._heap: list[tuple[float, int, Open]] = []

    def add(self, state: Open, parent: Open | None) -> None:
        """Add a state."""
        del parent
        heapq.heappush(self._heap, (self._rank(state), next(self._numbers), state))

    def take(self) -> Open | None:
        """Return the state of the lowest rank, of equal ones the first."""
        return heapq.heappop(self._heap)[2] if self._heap else None

    def expanded(self, state: Open, value: float | None) -> None:
        """Do nothing: ranks do not change."""

    def __len__(self) -> int:
        return len(self._heap)

    def _rank(self, state: Open) -> float:
        depth = len(state.tactics)
        match self._strategy:
            case Strategy.NORMALIZED:
                return -state.score / math.pow(max(1, depth), self._length_power)
            case Strategy.DEPTH:
                return -float(depth)
            case Strategy.BREADTH:
                return float(depth)
            case _:
                return -state.score


@dataclass(eq=False, slots=True)
class _Node:
    state: Open
    parent: _Node | None
    children: list[_Node] = field(default_factory=list)
    is_expanded: bool = False
    is_dead: bool = False
    prior: float = 1.0
    visits: int = 0
    values: float = 0.0

    def path(self) -> Iterator[_Node]:
        """Yield the node and those above it."""
        node: _Node | None = self
        while node is not None:
            yield node
            node = node.parent

    @property
    def rank(self) -> float:
        """The mean value below it, and a share for exploring it that falls with its visits."""
        above = self.parent or self
        nearest = self if self.visits else above  # a new state counts as much as its parent
        mean = nearest.values / max(1, nearest.visits)
        return mean + EXPLORATION * self.prior * math.sqrt(above.visits) / (1 + self.visits)


class Tree:
    """A Monte Carlo tree search without playouts: descends by PUCT to a state that is not expanded yet.

    A state's value comes from the prover; if it gives none, it is 1 / (goals + 1). Priors are the
    scores' probabilities among siblings. Subtrees without states to expand are skipped. Source
    of the rule: Silver and others, 2017, arXiv:1712.01815.
    """

    def __init__(self) -> None:
        self._nodes: dict[Open, _Node] = {}
        self._root: _Node | None = None
        self._waiting = 0

    def add(self, state: Open, parent: Open | None) -> None:
        """Add a state."""
        above = None if parent is None else self._nodes[parent]
        node = self._nodes[state] = _Node(state, above)
        if above is None:
            self._root = node
        else:
            above.children.append(node)
        self._waiting += 1

    def take(self) -> Open | None:
        """Return the state to which the tree's values lead."""
        node = self._root
        if node is None or node.is_dead:
            return None
        while node.is_expanded:
            node = max((each for each in node.children if not each.is_dead), key=lambda each: each.rank)
        node.is_expanded, self._waiting = True, self._waiting - 1
        return node.state

    def expanded(self, state: Open, value: float | None) -> None:
        """Set the priors of the new states, and add the value to all states above."""
        node = self._nodes[state]
        scores = [each.state.score for each in node.children]
        weights = [math.exp(each - max(scores)) for each in scores]
        for each, weight in zip(node.children, weights, strict=True):
            each.prior = weight / sum(weights)
        found = 1 / (1 + len(state.goals)) if value is None else value
        for each in node.path():
            each.visits, each.values = each.visits + 1, each.values + found
            each.is_dead = each.is_expanded and all(child.is_dead for child in each.children)

    def __len__(self) -> int:
        return self._waiting
