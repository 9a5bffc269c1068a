"""Claim step: leases the checks that this worker will begin next, for all its threads together.

A transaction for each check would cost more than the rest of a small check's bookkeeping. So checks are
prefetched: as many as the recent durations let begin within `AHEAD_SECONDS`. A check that has not begun after
`UNBEGUN_SECONDS` is given back, because another worker may be idle.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from types import MappingProxyType

from farm import tracing
from farm.judging.states import Priority
from farm.store.attempt import Claim
from farm.store.transitions import Kinds, Store, Tiers
from farm.store.watermark import Front
from farm.store.wish import Alike
from farm_workers.loop.image_affinity import ImageAffinity
from farm_workers.loop.leases import Leases
from farm_workers.metrics import events

#: Checks that are expected to begin within this many seconds are claimed together.
AHEAD_SECONDS = 0.1
#: The most checks of one claim.
MOST = 64
#: A prefetched check that has not begun after this many seconds is given back.
UNBEGUN_SECONDS = 0.5
#: While checks are prefetched, a worker looks for checks of higher classes at most this often.
_LOOK_SECONDS = 0.02
#: The weight of the newest check in the mean duration of checks.
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
        kinds: Kinds = MappingProxyType({}),
        lease_seconds: float,
        is_fit: Callable[[str], bool] = bool,
    ) -> None:
        """Claim checks of the `environments`, made for their `kinds`, while each of them `is_fit`."""
        self._store, self._leases, self._worker = store, leases, worker
        self._lease_seconds, self._is_fit = lease_seconds, is_fit
        self._environments, self._tiers = deque(environments), environments
        self._kinds = kinds
        # The heartbeat reads the prefetched checks; it must not wait for a claim, which may hang with
        # PostgreSQL.
        self._claiming = threading.Lock()
        self._lock = threading.Lock()
        self._front, self._affinity = Front(), ImageAffinity()
        self._prefetched: deque[tuple[Claim, float]] = deque()  # with the time of the claim
        self._looked_at = 0.0
        self._mean_seconds: float | None = None

    def serve(self, environment: str, tiers: Sequence[str], kind: str) -> None:
        """Claim checks of this environment as well from now on."""
        with self._claiming:
            self._tiers = {**self._tiers, environment: tiers}
            self._kinds = {**self._kinds, environment: kind}
            if environment not in self._environments:
                self._environments.append(environment)

    def take(self, busy: int) -> Claim | None:
        """Return a check to begin now; None when none waits. `busy` is the number of occupied worker slots.

        Raises `ServerDown`.
        """
        with self._claiming:
            if self._are_prefetched_overtaken():
                self._claim(self._by_turn(1))
            if (claim := self._next()) is None:
                self._claim(self._claimed(self._how_many(busy)))
                claim = self._next()
            return claim

    def _next(self) -> Claim | None:
        with self._lock:
            fit = (
                place for place, (claim, _) in enumerate(self._prefetched) if self._is_fit(claim.environment)
            )
            claim, claimed_at = self._taken(next(fit, None))
        if claim is not None:
            self._leases.begin(claim)
            if not claim.failures:  # the wait of a retried check was not all for a worker
                since = time.monotonic() - claimed_at
                events.begun(claim, waited_seconds=claim.waited_seconds + since)
        return claim

    def _taken(self, place: int | None) -> tuple[Claim | None, float]:
        """Take out what was claimed ahead, by its place."""
        if place is None:
            return None, 0.0
        taken = self._prefetched[place]
        del self._prefetched[place]
        return taken

    def note(self, seconds: float) -> None:
        """Note the duration of a check."""
        mean = self._mean_seconds
        self._mean_seconds = seconds if mean is None else (1 - _NEWEST) * mean + _NEWEST * seconds

    def prefetched(self) -> set[str]:
        """Return the environments of prefetched checks, which have not begun."""
        with self._lock:
            return {claim.environment for claim, _ in self._prefetched}

    def unbegun(self, *, all_of_them: bool = False) -> list[Claim]:
        """Remove and return the checks that were prefetched too early, or all prefetched ones."""
        with self._lock:
            oldest = self._prefetched[-1][1] if self._prefetched else math.inf
            if not (time.monotonic() - oldest > UNBEGUN_SECONDS or all_of_them):
                return []
            claims, self._prefetched = [claim for claim, _ in self._prefetched], deque()
            return claims

    def _claim(self, claims: Sequence[Claim]) -> None:
        """Hold these checks, and begin them before those that were prefetched earlier."""
        self._leases.hold(claims)
        now = time.monotonic()
        with self._lock:
            # A check that may crash this worker begins first, so that no other check waits beside it.
            in_order = sorted(claims, key=lambda claim: claim.ahead)
            self._prefetched.extendleft((claim, now) for claim in reversed(in_order))

    def _claimed(self, most: int) -> list[Claim]:
        """Claim checks that need an image which this worker has, or else the next checks by turn.

        A check of a higher class always comes first, whether or not its image is loaded.
        """
        if not self._fit():
            return []
        looked = set[int]()
        for wish in self._affinity.wishes():
            if wish.priority not in looked and self._is_overtaken(wish.priority):
                break
            looked.add(wish.priority)
            claims = self._claim_once(most, wish) if self._is_fit(wish.environment) else []
            self._affinity.found(wish, claims)
            if claims:
                return claims
        else:
            if not looked:
                self._is_overtaken(Priority.BATCH)  # so that the next claim finds it
        return self._by_turn(most)

    def _by_turn(self, most: int) -> list[Claim]:
        claims = self._claim_once(most)
        self._affinity.took_by_turn(claims)
        if claims:
            self._pass_turn(claims[-1].environment)
        return claims

    def _are_prefetched_overtaken(self) -> bool:
        """Return whether a check waits that goes before the prefetched ones."""
        with self._lock:
            newest = self._prefetched[-1][0] if self._prefetched else None
        if newest is None or time.monotonic() - self._looked_at < _LOOK_SECONDS:
            return False
        return self._is_overtaken(newest.priority)

    def _is_overtaken(self, priority: int) -> bool:
        """Return whether a check of a higher class waits; if one does, the next look is soon."""
        found = self._store.is_overtaken(
            self._fit(), priority, front=self._front, tiers=self._tiers, kinds=self._kinds
        )
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
            kinds=self._kinds,
        )

    def _fit(self) -> tuple[str, ...]:
        """Return the environments of which checks are claimed, in their turn."""
        return tuple(filter(self._is_fit, self._environments))

    def _how_many(self, busy: int) -> int:
        if not self._mean_seconds:
            return 1
        return max(1, min(MOST, int(AHEAD_SECONDS * busy / self._mean_seconds)))

    def _pass_turn(self, environment: str) -> None:
        """Let the other environments of the same class go first next time."""
        self._environments.remove(environment)
        self._environments.append(environment)
