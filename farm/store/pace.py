"""How fast the farm decides: the verdicts of the last minutes, counted by who looks again and again.

Each look asks PostgreSQL only for the seconds since the last one, and for a few before them: a verdict bears
the time at which its transaction began, and is seen when that has ended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from farm.store.overview import Overview

#: For how many seconds it is remembered what was decided.
REMEMBERED_SECONDS = 300
#: A verdict is seen so many seconds after the time that it bears at the latest, or is not counted.
_LATE_SECONDS = 10


class Pace:
    """What was decided in the last minutes, by the second and the verdict."""

    def __init__(self, overview: Overview) -> None:
        self._overview = overview
        self._now = 0.0
        self._seconds: dict[int, Counter[str]] = {}

    def look(self) -> None:
        """Find out what was decided since the last look; raises `ServerDown`."""
        since = max(0, int(self._now) - _LATE_SECONDS)
        self._now, decided = self._overview.decided(since=since, most_seconds=REMEMBERED_SECONDS)
        oldest = self._now - REMEMBERED_SECONDS
        self._seconds = {
            second: counts for second, counts in self._seconds.items() if oldest < second < since
        }
        for each in decided:
            self._seconds.setdefault(each.second, Counter())[each.verdict] += each.checks

    def verdicts(self, *, seconds: int) -> Mapping[str, int]:
        """Return how many checks came to each verdict in so many last seconds."""
        total: Counter[str] = Counter()
        for second, counts in self._seconds.items():
            if second >= self._now - seconds:
                total.update(counts)
        return total
