"""Claim step: what a worker will begin in the next moment, claimed for all its threads at once.

A transaction a check would cost more than a small check's own bookkeeping. So checks are claimed ahead, by
how long the last ones took: as many as will be begun in `AHEAD_SECONDS`. One that was not begun soon after
all is given back, for another worker may be idle.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

from farm import tracing
from farm.judging.states import Priority
from farm.store.attempt import Alike, Claim
from farm.store.transitions import Store, Tiers
from farm.store.watermark import Front
from farm_workers.loop.groups import Groups
from farm_workers.loop.leases import Leases
from farm_workers.metrics import events

#: Checks that will be begun within so many seconds are claimed together.
AHEAD_SECONDS = 0.1
#: No more than this are.
MOST = 64
#: What was claimed and is not begun after so many seconds is given back.
UNBEGUN_SECONDS = 0.5
#: While some are claimed ahead, a worker looks no more often than this for a check of a class before them.
_LOOK_SECONDS = 0.02
#: How much the newest check counts in the mean time of a check.
_NEWEST = 0.1


class Claims:
    """Claims checks for the threads of one worker."""

    def __init__(
        self,
        store: Store,
        leases: Leases,
        *,
        worker: str,
        environments: Tiers,
        lease_seconds: float,
        is_fit: Callable[[str], bool] = bool,
    ) -> None:
        """Claim checks of the `environments`, while each of them `is_fit`."""
        self._store, self._leases, self._worker = store, leases, worker
        self._lease_seconds, self._is_fit = lease_seconds, is_fit
        self._environments, self._tiers = deque(environments), environments
        # The heartbeat asks for what is ahead, and must not wait for a claim, which may hang with PostgreSQL.
        self._claiming = threading.Lock()
        self._lock = threading.Lock()
        self._front, self._groups = Front(), Groups()
        self._ahead: deque[tuple[Claim, float]] = deque()  # with the moment of the claim
        self._looked_at = 0.0
        self._mean_seconds: float | None = None

    def serve(self, environment: str, tiers: Sequence[str]) -> None:
        """Claim checks of this environment, too, from now on."""
        with self._claiming:
            self._tiers = {**self._tiers, environment: tiers}
            if environment not in self._environments:
                self._environments.append(environment)

    def take(self, busy: int) -> Claim | None:
        """Return a check to begin now; None when none waits. `busy` threads of this worker are at work.

        Raises `ServerDown`.
        """
        with self._claiming:
            if self._is_ahead_overtaken():
                self._claim(self._by_turn(1))
            if (claim := self._next()) is None:
                self._claim(self._claimed(self._how_many(busy)))
                claim = self._next()
            return claim

    def _next(self) -> Claim | None:
        with self._lock:
            fit = (place for place, (claim, _) in enumerate(self._ahead) if self._is_fit(claim.environment))
            claim, claimed_at = self._taken(next(fit, None))
        if claim is not None:
            self._leases.begin(claim)
            if not claim.failures:  # what begins again did not wait for a worker all the time
                since = time.monotonic() - claimed_at
                events.begun(claim, waited_seconds=claim.waited_seconds + since)
        return claim

    def _taken(self, place: int | None) -> tuple[Claim | None, float]:
        """Take out what was claimed ahead, by its place."""
        if place is None:
            return None, 0.0
        taken = self._ahead[place]
        del self._ahead[place]
        return taken

    def note(self, seconds: float) -> None:
        """Say how long a check took."""
        mean = self._mean_seconds
        self._mean_seconds = seconds if mean is None else (1 - _NEWEST) * mean + _NEWEST * seconds

    def ahead(self) -> set[str]:
        """Return the environments of what was claimed and is not begun."""
        with self._lock:
            return {claim.environment for claim, _ in self._ahead}

    def unbegun(self, *, all_of_them: bool = False) -> list[Claim]:
        """Return the checks that were claimed too far ahead, or all of them; they are not begun any more."""
        with self._lock:
            oldest = self._ahead[-1][1] if self._ahead else math.inf
            if not (time.monotonic() - oldest > UNBEGUN_SECONDS or all_of_them):
                return []
            claims, self._ahead = [claim for claim, _ in self._ahead], deque()
            return claims

    def _claim(self, claims: Sequence[Claim]) -> None:
        """Hold these, and begin them before what was claimed ahead of them."""
        self._leases.hold(claims)
        now = time.monotonic()
        with self._lock:
            # What may bring this worker down is begun first: nothing waits beside it.
            in_order = sorted(claims, key=lambda claim: claim.ahead)
            self._ahead.extendleft((claim, now) for claim in reversed(in_order))

    def _claimed(self, most: int) -> list[Claim]:
        """Claim what needs an image that this worker has, or what is next by turn.

        A check of a class before is always next: no image that is at hand holds it up.
        """
        if not self._fit():
            return []
        looked = set[int]()
        for wish in self._groups.wishes():
            if wish.priority not in looked and self._is_overtaken(wish.priority):
                break
            looked.add(wish.priority)
            claims = self._claim_once(most, wish) if self._is_fit(wish.environment) else []
            self._groups.found(wish, claims)
            if claims:
                return claims
        else:
            if not looked:
                self._is_overtaken(Priority.BATCH)  # so that the next claim finds it
        return self._by_turn(most)

    def _by_turn(self, most: int) -> list[Claim]:
        claims = self._claim_once(most)
        self._groups.took_by_turn(claims)
        if claims:
            self._pass_turn(claims[-1].environment)
        return claims

    def _is_ahead_overtaken(self) -> bool:
        """Return whether a check waits that comes before those that were claimed ahead."""
        with self._lock:
            newest = self._ahead[-1][0] if self._ahead else None
        if newest is None or time.monotonic() - self._looked_at < _LOOK_SECONDS:
            return False
        return self._is_overtaken(newest.priority)

    def _is_overtaken(self, priority: int) -> bool:
        """Return whether a check of a class before this one waits; when one does, the next look is soon."""
        found = self._store.is_overtaken(self._fit(), priority, front=self._front, tiers=self._tiers)
        self._looked_at = 0.0 if found else time.monotonic()
        return found

    def _claim_once(self, most: int, alike: Alike | None = None) -> list[Claim]:
        return self._store.claim(
            self._fit(),
            worker=self._worker,
            lease_seconds=self._lease_seconds,
            most=most,
            suspects=not self._leases.has_suspect(),
            front=self._front,
            tiers=self._tiers,
            traced=tracing.is_on(),
            alike=alike,
        )

    def _fit(self) -> tuple[str, ...]:
        """Return the environments of which checks are claimed, in their turn."""
        return tuple(filter(self._is_fit, self._environments))

    def _how_many(self, busy: int) -> int:
        if not self._mean_seconds:
            return 1
        return max(1, min(MOST, int(AHEAD_SECONDS * busy / self._mean_seconds)))

    def _pass_turn(self, environment: str) -> None:
        """Have the other environments of the same class come first next time."""
        self._environments.remove(environment)
        self._environments.append(environment)
