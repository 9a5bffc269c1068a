"""Defines a worker's unit of work, the check: its candidate programs and all other input of its verdict."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from farm.assembly.challenge import Challenge
from farm.assembly.program import Program
from farm.judging.assurance import Assurance
from farm.limits import Limits
from farm.task import Task

Spans = tuple[tuple[int, int], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """A program of a check, with the challenge that it is held against, None for a line without a statement.

    `submitted` are the spans (start, end) of the program that the submission wrote, in order; None means the
    whole program.
    """

    program: str
    submitted: Spans | None = None
    challenge: Challenge | None = None


class Disproof(Candidate):
    """A candidate that has to prove the negation of the line's statement, which its challenge states."""

    __slots__ = ()


def candidates_of(programs: Iterable[Program], stated: Challenge | None) -> tuple[Candidate, ...]:
    """Return assembled programs as candidates; one without a challenge of its own has that of the line."""
    return tuple(
        Candidate(program=each.text, submitted=each.submitted, challenge=stated)
        if each.challenge is None
        else Disproof(program=each.text, submitted=each.submitted, challenge=each.challenge)
        for each in programs
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """One unit of work: candidate programs with their challenges, the assurance and the limits.

    The worker judges the first of the `candidates`, and the next one if Lean refuses that one for text above
    its proof, or if it proves another statement. Where the list has both proofs and disproofs, it judges each
    of the two kinds in this way, whatever became of the other. Without an `assurance` the worker only runs
    Lean, and no policy reads the program. With `goals` the report lists the goals at errors and sorries,
    where Lean can print them. With `stop_at_error` Lean is ended at the first error that decides. All
    programs begin with the dataset's context up to `context_end`, 0 without one; the limits do not include
    the reading of that context. `task` is what the proof has to show beyond the usual.
    """

    candidates: tuple[Candidate, ...]
    limits: Limits = field(default_factory=Limits)
    assurance: Assurance | None = None
    goals: bool = False
    stop_at_error: bool = False
    context_end: int = 0
    task: Task = field(default_factory=Task)

    @classmethod
    def of(
        cls,
        *,
        program: str,
        submitted: Spans | None = None,
        challenge: Challenge | None = None,
        **conditions: Any,
    ) -> Check:
        """Return the check of one program; `conditions` are the fields of the check."""
        only = Candidate(program=program, submitted=submitted, challenge=challenge)
        return cls(candidates=(only,), **conditions)

    @property
    def program(self) -> str:
        """The program of the first candidate."""
        return self.candidates[0].program

    @property
    def submitted(self) -> Spans | None:
        """The spans of the first candidate that the submission wrote."""
        return self.candidates[0].submitted

    @property
    def challenge(self) -> Challenge | None:
        """The challenge of the first candidate."""
        return self.candidates[0].challenge

    @property
    def is_disproof(self) -> bool:
        """Whether the first candidate has to prove the negation."""
        return isinstance(self.candidates[0], Disproof)

    @property
    def proofs(self) -> tuple[Candidate, ...]:
        """The candidates that have to prove the statement."""
        return tuple(each for each in self.candidates if not isinstance(each, Disproof))

    @property
    def disproofs(self) -> tuple[Disproof, ...]:
        """The candidates that have to prove its negation."""
        return tuple(each for each in self.candidates if isinstance(each, Disproof))

    def against(self, challenge: Challenge) -> Check:
        """Return the check with this challenge for all its candidates."""
        held = tuple(replace(each, challenge=challenge) for each in self.candidates)
        return replace(self, candidates=held)
