"""Search step, sessions that last: opens a lost session again, and repeats calls in which the farm failed.

A state is its program, root and tactics, so it survives its worker, the service, and the data of Redis. A
failure of the farm must never look like a failure of a proof: the call is repeated, and raises in the end.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol, TypeVar

from farm.client.errors import NotFound, Unanswered
from farm.client.results import Result
from farm.client.states import State, Step
from farm.errors import FarmError, QueueFull, ServerDown, UnknownRun
from farm.log import logger
from farm.sessions.wire import USUAL_SECONDS

_T = TypeVar("_T")

_log = logger(__name__)

#: Seconds for which the farm's failures are repeated, and the pauses between.
PATIENCE_SECONDS = 300.0
_FIRST_SECONDS, _LONGEST_SECONDS = 0.25, 5.0
#: Errors after which a call may succeed later, and those about a session or state that is not kept.
_LATER: tuple[type[Exception], ...] = (ServerDown, QueueFull, Unanswered)
_GONE: tuple[type[Exception], ...] = (UnknownRun, NotFound)
#: Outcomes of a tactic whose process ended: it, or whatever else ended it, is to blame.
_UNCERTAIN = frozenset({"crashed", "lost"})
#: A tactic with such an outcome is tried this often; if its process ends each time, the tactic is to blame.
_TURNS = 4


class Opened(Protocol):
    """The part of a session that a search uses: `farm.api.Session`, or that of `farm.client.Client`."""

    @property
    def root(self) -> State:
        """The first state."""

    def step(
        self, state: str, tactics: Sequence[str], *, seconds: float, heartbeats: int | None
    ) -> list[Step]:
        """Return the outcomes of tactics."""

    def prove(self, state: str, /) -> Result:
        """Return the verdict on a state's text."""

    def close(self) -> None:
        """End the session."""


class Lasting:
    """A session that is opened as often as it takes, on the same program; for one thread.

    Its methods raise FarmError when the farm fails for longer than `patience_seconds`.
    """

    def __init__(self, opening: Callable[[], Opened], *, patience_seconds: float = PATIENCE_SECONDS) -> None:
        """Open it. Raises the errors of `opening` for a refused program."""
        self._opening, self._patience = opening, patience_seconds
        self._session = self._repeated(opening, lost=())
        self.root = self._session.root
        #: The limits of the last step, within which the states were made.
        self._limits: tuple[float, int | None] = (USUAL_SECONDS, None)
        #: The tactics of all states, and the states that the session of now keeps.
        self._tactics: dict[str, tuple[str, ...]] = {self.root.id: ()}
        self._kept = {self.root.id}

    def step(
        self, state: str, tactics: Sequence[str], *, seconds: float, heartbeats: int | None
    ) -> list[Step]:
        """Return the outcomes of tactics on a state that the root or an earlier step led to."""

        def stepped() -> list[Step]:
            self._lead_to(state)
            return self._tried(state, tactics)

        self._limits = seconds, heartbeats
        return self._repeated(stepped)

    def prove(self, state: str) -> Result:
        """Return the verdict on a state's text, which is never `judge_error` or missing."""

        def proved() -> Result:
            self._lead_to(state)
            found = self._session.prove(state)
            if found.verdict in (None, "judge_error"):
                raise ServerDown(f"a proof has no verdict yet ({found.reason or 'it waits'}); try again")
            return found

        return self._repeated(proved)

    def close(self) -> None:
        """End the session, if it is there."""
        with suppress(*_GONE, *_LATER):
            self._session.close()

    def _repeated(self, do: Callable[[], _T], lost: tuple[type[Exception], ...] = _GONE) -> _T:
        """Do something until the farm does not fail at it; open the session again after a `lost`."""
        until, pause = time.monotonic() + self._patience, _FIRST_SECONDS
        while True:
            try:
                return do()
            except _LATER + lost as error:
                if time.monotonic() > until:
                    raise
                _log.info("A search tries again: %s", error)
                is_lost = isinstance(error, lost)
            time.sleep(random.uniform(pause / 2, pause))  # noqa: S311 - spreads load, hides nothing
            pause = min(2 * pause, _LONGEST_SECONDS)
            if is_lost:
                self._session = self._repeated(self._opening, lost=())
                self._kept = {self.root.id}

    def _lead_to(self, state: str) -> None:
        """Make a state again, tactic by tactic, where the session does not keep it."""
        if state in self._kept:
            return
        at = self.root.id
        for tactic in self._tactics[state]:
            (step,) = self._tried(at, [tactic])
            if step.state is None:
                raise FarmError(f"a state cannot be made again: {tactic!r} ended with {step.outcome} now")
            at = step.state

    def _tried(self, state: str, tactics: Sequence[str]) -> list[Step]:
        """Return the outcomes of tactics on a state that the session keeps."""
        seconds, heartbeats = self._limits
        found = self._session.step(state, tactics, seconds=seconds, heartbeats=heartbeats)
        for _ in range(_TURNS - 1):
            doubted = [place for place, each in enumerate(found) if each.outcome in _UNCERTAIN]
            if not doubted:
                break
            again = self._session.step(
                state, [tactics[place] for place in doubted], seconds=seconds, heartbeats=heartbeats
            )
            for place, step in zip(doubted, again, strict=True):
                found[place] = step
        if any(each.outcome == "lost" for each in found):
            raise ServerDown(f"a state cannot be made again: {found[0].message}; try again")
        for step in found:
            if step.state is not None:
                self._kept.add(step.state)
                self._tactics[step.state] = (*self._tactics[state], step.tactic)
        return found
