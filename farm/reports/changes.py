"""Report step: finds the changes of a recheck, line by line. Pure.

A failure of the farm, a cancelled line and one without a verdict are no facts about a proof: such changes are
unknown. An exceeded limit is a weak fact, because a new Lean may be slower: it is counted apart.
"""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import NamedTuple

from farm.judging.judgement import Judgement


class Change(StrEnum):
    """The change of a line, from the worst to the best, then no change."""

    BROKEN = "broken"
    OVER_LIMIT = "over_limit"
    UNKNOWN = "unknown"
    OTHER = "other"
    WITHIN_LIMIT = "within_limit"
    MENDED = "mended"
    SAME = "same"


def change_of(before: Judgement, now: Judgement) -> Change:
    """Return the change of a line."""
    if not (before.is_known and now.is_known):
        return Change.UNKNOWN
    if before.verdict == now.verdict and (before.is_limit or before.reason == now.reason):
        return Change.SAME
    if before.is_proved:
        return Change.OVER_LIMIT if now.is_limit else Change.BROKEN
    if now.is_proved:
        return Change.WITHIN_LIMIT if before.is_limit else Change.MENDED
    return Change.OTHER


class Count(NamedTuple):
    """How many lines went from one judgement to another."""

    change: Change
    before: str
    now: str
    lines: int


class Changes:
    """Counts the changes of lines."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[Change, str, str]] = Counter()
        self._unjudged = self._lost = 0

    def add(self, before: Judgement, now: Judgement) -> Change:
        """Count a line, and return its change."""
        change = change_of(before, now)
        self._counts[change, before.words, now.words] += 1
        self._unjudged += not now.is_known
        self._lost += change in (Change.BROKEN, Change.OVER_LIMIT)
        return change

    @property
    def lost(self) -> int:
        """How many lines were proved and are not any more."""
        return self._lost

    @property
    def unjudged(self) -> int:
        """How many lines the recheck could not judge."""
        return self._unjudged

    @property
    def lines(self) -> int:
        """All lines of the recheck."""
        return sum(self._counts.values())

    def of(self, change: Change) -> int:
        """Return how many lines became this."""
        return sum(number for (each, _, _), number in self._counts.items() if each is change)

    def counts(self) -> list[Count]:
        """Return the numbers of lines by change: the worst changes first, then by number."""
        order = {change: place for place, change in enumerate(Change)}
        found = [Count(*key, lines) for key, lines in self._counts.items()]
        return sorted(found, key=lambda each: (order[each.change], -each.lines, each.before, each.now))
