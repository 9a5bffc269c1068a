"""Searches a proof over a session of the HTTP client, best-first, within limits of expansions and time."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from farm.client import AsyncSession, Result
from farm.client.states import State, Step
from farm.search.best_first import Found, Limits, Search
from farm.search.provers import Suggestion

#: A search ends after the seal has refused this many states without goals.
_MOST_REFUSED = 4
#: Threads of searches, apart from those in which the event loop looks up hosts.
_THREADS = ThreadPoolExecutor(64, thread_name_prefix="search")


@dataclass(frozen=True, kw_only=True, slots=True)
class Searched:
    """A search's numbers, why it ended, and the result of the last seal, None where no state lost its goals.

    `ended` is ``sealed``, ``refused``, ``seconds``, ``expansions`` or ``no state left``.
    """

    found: Found
    ended: str
    result: Result | None = field(default=None)


async def search(
    session: AsyncSession, tactics: Sequence[str], *, expansions: int, seconds: float, each: float
) -> Searched:
    """Search with a list of tactics, the likeliest first, and have states without goals sealed.

    Each tactic gets at most `each` seconds, the search `seconds`; the check of a proof that it found has its
    own limit. Raises ClientError.
    """
    loop = asyncio.get_running_loop()
    steps = _Steps(session, loop, time.monotonic() + seconds)
    # By Zipf's law, so that short proofs of early tactics come first.
    suggested = [Suggestion(tactic, -math.log(2 + rank)) for rank, tactic in enumerate(tactics)]
    limits = Limits(expansions=expansions, width=len(suggested), seconds=each)
    searching = Search(steps, lambda _goals: suggested, limits=limits)
    result = None
    try:
        for _ in range(_MOST_REFUSED):
            ended = await loop.run_in_executor(_THREADS, _ended, searching, expansions)
            if ended or searching.found.step is None or searching.found.step.state is None:
                return Searched(found=searching.found, ended=ended or "no state left", result=result)
            result = await session.prove(searching.found.step.state)
            if result.proved:
                return Searched(found=searching.found, ended="sealed", result=result)
    finally:
        steps.is_over = True  # a thread whose caller has gone ends with its step
    return Searched(found=searching.found, ended="refused", result=result)


def _ended(searching: Search, expansions: int) -> str:
    """Search on until a state has no goals; return why it ended without one, "" otherwise."""
    try:
        found = searching.run()
    except _OutOfTime:
        return "seconds"
    if found.step is not None:
        return ""
    return "expansions" if found.expansions >= expansions else "no state left"


class _OutOfTime(Exception):
    """The search's time is over."""


class _Steps:
    """A session as a search uses it, in a thread beside the event loop that carries out its requests."""

    def __init__(self, session: AsyncSession, loop: asyncio.AbstractEventLoop, until: float) -> None:
        self._session, self._loop, self._until = session, loop, until
        self.is_over = False

    @property
    def root(self) -> State:
        """The first state."""
        return self._session.root

    def step(
        self, state: str, tactics: Sequence[str], *, seconds: float, heartbeats: int | None
    ) -> list[Step]:
        """Return the outcomes of tactics. Raises `_OutOfTime` and ClientError."""
        left = self._until - time.monotonic()
        if left <= 0 or self.is_over:
            raise _OutOfTime
        asked = asyncio.run_coroutine_threadsafe(
            self._session.step(state, tactics, seconds=min(seconds, left), heartbeats=heartbeats), self._loop
        )
        try:
            return asked.result(left)
        except TimeoutError:
            asked.cancel()
            raise _OutOfTime from None
