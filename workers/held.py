"""What a worker holds: checks, from their claim until the database knows what became of them."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from farm.store import Claim


class Held:
    """The checks this worker holds, shared between the threads that run them and those beside them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._claims: dict[int, Claim] = {}
        self._lost: set[int] = set()
        self._recalled = False

    def hold(self, claims: Iterable[Claim]) -> None:
        """Hold these as well."""
        with self._lock:
            self._claims |= {claim.check_id: claim for claim in claims}

    def let_go(self, claims: Iterable[Claim]) -> None:
        """Hold these no longer."""
        with self._lock:
            for claim in claims:
                if self._claims.get(claim.check_id) is claim:
                    del self._claims[claim.check_id]
                    self._lost.discard(claim.check_id)

    def attempts(self) -> dict[int, int]:
        """Return the attempt held of each check."""
        with self._lock:
            return {check_id: claim.attempt for check_id, claim in self._claims.items()}

    def lose(self, attempts: Iterable[tuple[int, int]]) -> None:
        """Say which attempts (check, number) are no longer this worker's, so that their boxes end."""
        with self._lock:
            for check_id, attempt in attempts:
                claim = self._claims.get(check_id)
                if claim is not None and claim.attempt == attempt:
                    self._lost.add(check_id)

    def recall(self) -> None:
        """Say that all checks are to be given back at once."""
        self._recalled = True

    def is_lost(self, claim: Claim) -> bool:
        """Whether somebody else decides about this check now."""
        return claim.check_id in self._lost

    @property
    def is_recalled(self) -> bool:
        """Whether all checks are to be given back at once."""
        return self._recalled

    def has_suspect(self) -> bool:
        """Whether one of these was lost, or failed, with a worker before."""
        with self._lock:
            return any(claim.failures for claim in self._claims.values())

    def __len__(self) -> int:
        return len(self._claims)
