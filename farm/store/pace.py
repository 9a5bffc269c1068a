"""Rolling rate of verdicts over the last minutes, polled incrementally.

Each poll reads only the seconds since the last one and a few before them: a verdict bears the time at which
its transaction began, and is visible when the transaction has ended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from farm.store.overview import Overview

#: Length of the window, in seconds.
REMEMBERED_SECONDS = 300
#: A verdict that becomes visible later than this after its own time is not counted, in seconds.
_LATE_SECONDS = 10


class Pace:
    """Counts of the last minutes' verdicts, by second and verdict."""

    def __init__(self, overview: Overview) -> None:
        self._overview = overview
        self._now = 0.0
        self._seconds: dict[int, Counter[str]] = {}

    def look(self) -> None:
        """Read the verdicts since the last poll; raises `ServerDown`."""
        since = max(0, int(self._now) - _LATE_SECONDS)
        self._now, decided = self._overview.decided(since=since, most_seconds=REMEMBERED_SECONDS)
        oldest = self._now - REMEMBERED_SECONDS
        self._seconds = {
            second: counts for second, counts in self._seconds.items() if oldest < second < since
        }
        for each in decided:
            self._seconds.setdefault(each.second, Counter())[each.verdict] += each.checks

    def verdicts(self, *, seconds: int) -> Mapping[str, int]:
        """Return the number of checks by verdict in the last `seconds`."""
        total: Counter[str] = Counter()
        for second, counts in self._seconds.items():
            if second >= self._now - seconds:
                total.update(counts)
        return total
