"""The unit of work: a program that is to be checked, and all that its verdict depends on."""

from __future__ import annotations

from dataclasses import dataclass, field

from farm.assembly.challenge import Challenge
from farm.judging.assurance import Assurance
from farm.limits import Limits


@dataclass(frozen=True, kw_only=True, slots=True)
class Fallback:
    """Another program of a check, and the spans of it that are the submission's."""

    program: str
    submitted: tuple[tuple[int, int], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """One unit of work: a program, what it has to prove, how sure that must be, and what it may use.

    `submitted` are the spans (start, end) of the program that are the submission's own, in order; None for
    all of it. `challenge` is None where nothing says what is to be proved. Without an `assurance` a program
    is only given to Lean: nothing looks at its text. `restated`, then `fallback`, are checked where the
    program before is refused for what stands before its proof, or proves another statement; None where that
    would be the same program. With `goals` the report tells the goals at errors and sorries, where they can
    be had. All programs begin with the dataset's context up to `context_end`, 0 without one: reading that is
    no part of what the limits hold for.
    """

    program: str
    limits: Limits = field(default_factory=Limits)
    submitted: tuple[tuple[int, int], ...] | None = None
    challenge: Challenge | None = None
    assurance: Assurance | None = None
    fallback: Fallback | None = None
    restated: Fallback | None = None
    goals: bool = False
    context_end: int = 0

    @property
    def others(self) -> tuple[Fallback, ...]:
        """The programs that may be checked after the first, in order."""
        return tuple(each for each in (self.restated, self.fallback) if each is not None)
