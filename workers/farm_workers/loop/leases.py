"""The leases of a worker: checks from their claim until the database has recorded their outcome."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable

from farm.store.attempt import Claim, Hold
from farm_workers.metrics import events


class Leases:
    """The attempts that this worker holds; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._claims: dict[Hold, Claim] = {}
        self._lost: set[Hold] = set()
        self._untold: dict[Hold, float] = {}
        self._recalled = False

    def hold(self, claims: Iterable[Claim]) -> None:
        """Add these leases."""
        with self._lock:
            self._claims |= {claim.hold: claim for claim in claims}

    def release(self, claims: Iterable[Claim]) -> None:
        """Release these leases."""
        with self._lock:
            for claim in claims:
                self._claims.pop(claim.hold, None)
                self._lost.discard(claim.hold)
                self._untold.pop(claim.hold, None)

    def begin(self, claim: Claim) -> None:
        """Note that a thread begins this check now."""
        if claim.ahead:
            with self._lock:
                self._untold[claim.hold] = time.monotonic()

    def begun(self, *, seconds: float) -> list[Hold]:
        """Return prefetched checks that began `seconds` ago and still run, each of them once."""
        latest = time.monotonic() - seconds
        with self._lock:
            found = [hold for hold, began in self._untold.items() if began <= latest]
            for hold in found:
                del self._untold[hold]
            return found

    def all(self) -> list[Hold]:
        """Return the holds of all leases."""
        with self._lock:
            return list(self._claims)

    def lose(self, holds: Iterable[Hold]) -> None:
        """Note that these leases were lost, so that their boxes end."""
        with self._lock:
            self._lost |= self._claims.keys() & set(holds)

    def give_up(self, claim: Claim) -> None:
        """Release a lost lease and count it: another worker decides about the check.

        A check in `_lost` may be recorded at this moment and is not counted: the recorder releases its lease.
        """
        self.release([claim])
        events.lease_lost()

    def recall(self) -> None:
        """Note that all checks are to be given back at once."""
        self._recalled = True

    def is_lost(self, claim: Claim) -> bool:
        """Whether this lease was lost, so that another worker decides about the check."""
        return claim.hold in self._lost

    @property
    def is_recalled(self) -> bool:
        """Whether all checks are to be given back at once."""
        return self._recalled

    def has_suspect(self) -> bool:
        """Whether one of the leased checks is suspected of crashing workers."""
        with self._lock:
            return any(claim.suspect for claim in self._claims.values())

    def __len__(self) -> int:
        return len(self._claims)
