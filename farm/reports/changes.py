"""Report step: what a recheck changed, line by line. Pure.

A failure of the farm, a cancelled line and one without a verdict say nothing about a proof: what they changed
is not known. A limit that was exceeded says little, for a new Lean may be slower: it is told apart.
"""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import NamedTuple

from farm.judging.judgement import Judgement


class Change(StrEnum):
    """What became of a line, from the worst to the best to the least."""

    BROKEN = "broken"
    OVER_LIMIT = "over_limit"
    UNKNOWN = "unknown"
    OTHER = "other"
    WITHIN_LIMIT = "within_limit"
    MENDED = "mended"
    SAME = "same"


def change_of(before: Judgement, now: Judgement) -> Change:
    """Return what became of a line."""
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
    """Counts what became of lines."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[Change, str, str]] = Counter()
        self._unjudged = self._lost = 0

    def add(self, before: Judgement, now: Judgement) -> Change:
        """Count a line, and return what became of it."""
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
        """Return how many lines went from what to what: the worst changes first, the most lines first."""
        order = {change: place for place, change in enumerate(Change)}
        found = [Count(*key, lines) for key, lines in self._counts.items()]
        return sorted(found, key=lambda each: (order[each.change], -each.lines, each.before, each.now))
