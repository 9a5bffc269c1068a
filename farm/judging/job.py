"""Defines a worker's unit of work, the check: a program and all other input of its verdict."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from farm.assembly.challenge import Challenge
from farm.judging.assurance import Assurance
from farm.limits import Limits
from farm.task import Task


@dataclass(frozen=True, kw_only=True, slots=True)
class Fallback:
    """Another candidate program of a check, and the spans of it that the submission wrote.

    With a `challenge` of its own it is held against that one, and not against the check's.
    """

    program: str
    submitted: tuple[tuple[int, int], ...]
    challenge: Challenge | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """One unit of work: a program with its challenge, its assurance and its limits.

    `submitted` are the spans (start, end) of the program that the submission wrote, in order; None means the
    whole program. `challenge` is None for a line without a statement. Without an `assurance` the worker only
    runs Lean, and no policy reads the program. The worker checks `restated`, then `fallback`, if Lean refuses
    the program before for text above its proof, or if that program proves another statement; None stands for
    a candidate that equals an earlier one. With `goals` the report lists the goals at errors and sorries,
    where Lean can print them. With `stop_at_error` Lean is ended at the first error that decides. All
    programs begin with the dataset's context up to `context_end`, 0 without one; the limits do not include
    the reading of that context. `task` is what the proof has to show beyond the usual. For the task
    ``either``, `fallback` is the disproof: always judged, against the negation.
    """

    program: str
    limits: Limits = field(default_factory=Limits)
    submitted: tuple[tuple[int, int], ...] | None = None
    challenge: Challenge | None = None
    assurance: Assurance | None = None
    fallback: Fallback | None = None
    restated: Fallback | None = None
    goals: bool = False
    stop_at_error: bool = False
    context_end: int = 0
    task: Task = field(default_factory=Task)

    @property
    def others(self) -> tuple[Fallback, ...]:
        """The other candidate programs, in the order in which the worker checks them."""
        return tuple(each for each in (self.restated, self.fallback) if each is not None)

    @property
    def negation(self) -> Fallback | None:
        """The candidate that is held against the negation, None unless the task allows either."""
        is_other = self.fallback is not None and self.fallback.challenge is not None
        return self.fallback if is_other else None

    def of(self, other: Fallback) -> Check:
        """Return the check of another candidate program alone."""
        return replace(
            self,
            program=other.program,
            submitted=other.submitted,
            challenge=other.challenge or self.challenge,
            restated=None,
            fallback=None,
        )
