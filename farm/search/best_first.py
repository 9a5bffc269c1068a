"""Search step, the loop: expands the most promising state by all of a prover's tactics at once.

With the usual strategy this is the loop of GPT-f and of miniF2F's *tidy* baseline: a queue of states, ordered
by the sum of the scores of the tactics that led there; an expansion tries a list of tactics on the first of
them. States whose goals were reached before are skipped. Sources: Polu and Sutskever, 2020, arXiv:2009.03393;
Zheng, Han and Polu, 2021, arXiv:2109.00110.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from farm.client.states import State, Step
from farm.search.frontier import Open, Strategy, frontier
from farm.search.provers import Answer, Prover, Suggestion


class Session(Protocol):
    """The part of a session that a search uses: `farm.api.Session`, or that of a client."""

    @property
    def root(self) -> State:
        """The first state."""

    def step(
        self, state: str, tactics: Sequence[str], *, seconds: float, heartbeats: int | None
    ) -> list[Step]:
        """Return the outcomes of tactics."""


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
        self._limits = limits or Limits()
        self._frontier = frontier(strategy, self._limits.length_power)
        self._seen: set[tuple[str, ...]] = set()
        self.found = Found()
        root = session.root
        self._add(Open(state=root.id, tactics=(), score=0.0, goals=root.goals), None)

    def run(self) -> Found:
        """Search until a state has no goals, or a limit is reached.

        A further call goes on, for example after the seal has refused the last state without goals.
        """
        self.found.step = None
        while self.found.expansions < self._limits.expansions and (state := self._frontier.take()):
            if self._expanded(state):
                break
        return self.found

    def _expanded(self, state: Open) -> bool:
        """Try the prover's tactics on a state; return whether one leaves no goals."""
        limits = self._limits
        said = self._prover(state.goals)
        answer = said if isinstance(said, Answer) else Answer(said)
        suggested = {each.tactic: each for each in answer.suggestions[: limits.width]}
        self.found.expansions += 1
        done = self._tried(state, suggested) if suggested else None
        self._frontier.expanded(state, answer.value)
        if done is not None:
            self.found.step, self.found.tactics = done, (*state.tactics, done.tactic)
        return done is not None

    def _tried(self, state: Open, suggested: Mapping[str, Suggestion]) -> Step | None:
        """Try tactics, and add the states that they lead to; return the first step that leaves no goals."""
        limits, done = self._limits, None
        steps = self._session.step(
            state.state, list(suggested), seconds=limits.seconds, heartbeats=limits.heartbeats
        )
        self.found.steps += len(steps)
        for step in steps:
            self.found.outcomes[step.outcome] = self.found.outcomes.get(step.outcome, 0) + 1
            if step.outcome == "no_goals":
                done = done or step
            elif step.state is not None and len(state.tactics) + 1 < limits.depth:
                score = state.score + suggested[step.tactic].score
                tactics = (*state.tactics, step.tactic)
                self._add(Open(state=step.state, tactics=tactics, score=score, goals=step.goals), state)
        return done

    def _add(self, state: Open, parent: Open | None) -> None:
        if state.goals not in self._seen and len(self._frontier) < self._limits.queue:
            self._seen.add(state.goals)
            self._frontier.add(state, parent)
