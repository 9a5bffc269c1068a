"""Search step, the loop: expands the most promising state by all of a prover's tactics at once.

This is the loop of GPT-f and of miniF2F's *tidy* baseline: a queue of states, ordered by the sum of the
scores of the tactics that led there; an expansion tries a list of tactics on the first of them. States whose
goals were reached before are skipped. Sources: Polu and Sutskever, 2020, arXiv:2009.03393; Zheng, Han and
Polu, 2021, arXiv:2109.00110.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from farm.client.states import State, Step
from farm.search.provers import Prover, Suggestion


class Session(Protocol):
    """The part of a session that a search uses: `farm.api.Session`, or that of a client."""

    @property
    def root(self) -> State:
        """The first state."""

    def step(
        self, state: str, tactics: Sequence[str], *, seconds: float, heartbeats: int | None
    ) -> list[Step]:
        """Return the outcomes of tactics."""


class Strategy(StrEnum):
    """The state that is expanded next.

    `BEST`: that with the highest sum of scores; `NORMALIZED`: the highest sum divided by the number of
    tactics to the power of `Limits.length_power`; `DEPTH`: that with the most tactics; `BREADTH`: that with
    the fewest.
    """

    BEST = "best-first"
    NORMALIZED = "length-normalized"
    DEPTH = "depth-first"
    BREADTH = "breadth-first"


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """When a search ends, and how far it looks: `width` is the most tactics that are tried on a state."""

    expansions: int = 128
    width: int = 32
    depth: int = 32
    queue: int = 4096
    seconds: float = 5.0
    heartbeats: int | None = None
    length_power: float = 0.5


@dataclass(kw_only=True, slots=True)
class Found:
    """The result of a search: the last step, whose state has no goals, and the numbers of attempts.

    `step` is None where the search ended without such a state.
    """

    step: Step | None = None
    tactics: tuple[str, ...] = ()
    expansions: int = 0
    steps: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, order=True, slots=True)
class _Open:
    """A state in the queue, by its rank: the lowest is expanded first."""

    rank: float
    number: int
    state: str = field(compare=False)
    tactics: tuple[str, ...] = field(compare=False)
    score: float = field(compare=False)
    goals: tuple[str, ...] = field(compare=False)


class Search:
    """One search for a proof of a session's first goal."""

    def __init__(
        self,
        session: Session,
        prover: Prover,
        *,
        strategy: Strategy = Strategy.BEST,
        limits: Limits | None = None,
    ) -> None:
        self._session, self._prover = session, prover
        self._strategy, self._limits = strategy, limits or Limits()
        self._numbers = itertools.count()
        self._queue: list[_Open] = []
        self._seen: set[tuple[str, ...]] = set()
        self.found = Found()

    def run(self) -> Found:
        """Search until a state has no goals, or a limit is reached."""
        return self.resume() if self._queue or self.found.expansions else self._begun()

    def _begun(self) -> Found:
        root = self._session.root
        self._add(root.id, (), 0.0, root.goals)
        return self.resume()

    def resume(self) -> Found:
        """Go on, for example after the last state without goals was refused by the seal."""
        self.found.step = None
        while self._queue and self.found.expansions < self._limits.expansions:
            if self._expanded(heapq.heappop(self._queue)):
                break
        return self.found

    def _expanded(self, state: _Open) -> bool:
        """Try the prover's tactics on a state; return whether one leaves no goals."""
        limits = self._limits
        suggested = {each.tactic: each for each in self._prover(state.goals)[: limits.width]}
        self.found.expansions += 1
        if not suggested:
            return False
        steps = self._session.step(
            state.state, list(suggested), seconds=limits.seconds, heartbeats=limits.heartbeats
        )
        self.found.steps += len(steps)
        done = None
        for step in steps:
            self.found.outcomes[step.outcome] = self.found.outcomes.get(step.outcome, 0) + 1
            if step.outcome == "no_goals":
                done = done or step
            elif step.state is not None:
                self._add_after(state, suggested[step.tactic], step)
        if done is not None:
            self.found.step, self.found.tactics = done, (*state.tactics, done.tactic)
        return done is not None

    def _add_after(self, before: _Open, suggestion: Suggestion, step: Step) -> None:
        tactics = (*before.tactics, suggestion.tactic)
        if step.state is not None and len(tactics) < self._limits.depth:
            self._add(step.state, tactics, before.score + suggestion.score, step.goals)

    def _add(self, state: str, tactics: tuple[str, ...], score: float, goals: tuple[str, ...]) -> None:
        if goals in self._seen or len(self._queue) >= self._limits.queue:
            return
        self._seen.add(goals)
        rank = self._rank(len(tactics), score)
        heapq.heappush(self._queue, _Open(rank, next(self._numbers), state, tactics, score, goals))

    def _rank(self, depth: int, score: float) -> float:
        match self._strategy:
            case Strategy.BEST:
                return -score
            case Strategy.NORMALIZED:
                return -score / math.pow(max(1, depth), self._limits.length_power)
            case Strategy.DEPTH:
                return -float(depth)
            case Strategy.BREADTH:
                return float(depth)
