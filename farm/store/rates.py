"""Rolling verdict rates of the last minutes, polled incrementally.

Each poll reads only the seconds since the last one, and a few before them: a verdict has the time at which
its transaction began, and becomes visible when the transaction ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from farm.store.overview import Overview

#: Verdicts of this many seconds are kept.
REMEMBERED_SECONDS = 300
#: A verdict that becomes visible later than this after its time is not counted.
_LATE_SECONDS = 10


class Rates:
    """The verdicts of the last minutes, by second and verdict."""

    def __init__(self, overview: Overview) -> None:
        self._overview = overview
        self._now = 0.0
        self._seconds: dict[int, Counter[str]] = {}

    def look(self) -> None:
        """Read the verdicts since the last look; raises `ServerDown`."""
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
