"""The grace of leases after an outage: no worker is taken for dead before it could extend its leases."""

from __future__ import annotations

import math
import time


class LeaseGrace:
    """Measures how long PostgreSQL has answered without a gap of more than `gap_seconds`.

    After an outage longer than a lease all leases have expired, though every worker is alive. So a sweep
    waits until each worker has had the time to extend its leases.
    """

    def __init__(self, gap_seconds: float) -> None:
        self._gap_seconds = gap_seconds
        self._since = self._last = -math.inf

    def answered(self) -> None:
        """Note that PostgreSQL has just answered."""
        now = time.monotonic()
        if now - self._last > self._gap_seconds:
            self._since = now
        self._last = now

    @property
    def is_answering(self) -> bool:
        """Whether the last answer is no longer ago than the gap."""
        return time.monotonic() - self._last <= self._gap_seconds

    @property
    def seconds(self) -> float:
        """The seconds since the first answer after the last gap."""
        return time.monotonic() - self._since if self.is_answering else 0.0
