"""Contact with PostgreSQL: whether expired leases mean that workers are dead."""

from __future__ import annotations

import math
import time


class Contact:
    """How long PostgreSQL has answered without a break; answers further apart than `gap_seconds` are one.

    After an outage longer than a lease all leases have expired, though every worker is alive. So a sweep
    waits until each worker has had the time to extend its leases.
    """

    def __init__(self, gap_seconds: float) -> None:
        self._gap_seconds = gap_seconds
        self._since = self._last = -math.inf

    def answered(self) -> None:
        """Record that PostgreSQL answered now."""
        now = time.monotonic()
        if now - self._last > self._gap_seconds:
            self._since = now
        self._last = now

    @property
    def seconds(self) -> float:
        """Duration of the unbroken contact, in seconds."""
        now = time.monotonic()
        return 0.0 if now - self._last > self._gap_seconds else now - self._since
