"""Mending step, attempts: the texts to try in place of a failing part of a proof, in order. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from farm.judging.report import Goal
from farm_workers.lean.edits import SORRY, Edit

CLOSED, ADMITTED = "closed", "sorry"


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt:
    """An edit of a proof, and its effect on the goals there. `is_whole`: it replaces the whole proof."""

    edit: Edit
    what: str
    is_whole: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Hole:
    """A part of a proof that fails, from offset to offset, and the number of goals that are open there.

    Where both offsets are one, a proof goes on a line of its own, at the column `indent`.
    """

    start: int
    end: int
    goals: int
    indent: int

    @classmethod
    def of(cls, goal: Goal, base: int, length: int) -> Hole | None:
        """Return the place of goals in a proof that begins at an offset; None if it is not in it."""
        if goal.start is None or goal.end is None or not base <= goal.start <= goal.end <= base + length:
            return None
        start, end = goal.start - base, goal.end - base
        return cls(start=start, end=end, goals=goal.open_goals, indent=goal.indent or 0)

    def filled(self, words: str) -> Edit:
        """Return the edit that puts tactics in place of the part."""
        behind = "\n" + " " * self.indent if self.start == self.end else ""
        return Edit(start=self.start, end=self.end, text=behind + words)


def attempts(value: str, hole: Hole | None, tactics: Sequence[str], *, sorry: bool) -> Iterator[Attempt]:
    """Yield the attempts: each tactic in the hole, then as the whole proof, then a sorry in either place."""
    whole = Hole(start=0, end=len(value), goals=1, indent=0)
    if hole is not None:
        closing = tactics if hole.goals == 1 else _for_all(tactics)
        yield from (Attempt(edit=hole.filled(words), what=CLOSED) for words in closing)
    for words in tactics:
        yield Attempt(edit=whole.filled(f":= by {words}"), what=CLOSED, is_whole=True)
    if sorry and hole is not None:
        yield Attempt(edit=hole.filled("; ".join(["sorry"] * hole.goals)), what=ADMITTED)
    if sorry:
        yield Attempt(edit=whole.filled(SORRY), what=ADMITTED, is_whole=True)


def _for_all(tactics: Sequence[str]) -> list[str]:
    """Return tactics for several goals: each under ``all_goals``, and last ``all_goals first | ...``."""
    return [*(f"all_goals {words}" for words in tactics), f"all_goals first | {' | '.join(tactics)}"]
