"""Assembly step, tasks: the program and the challenge of a line whose answer has to do something else. Pure.

- *disprove*: the program is an answer to the negation, below the statement itself.
- *either*: the program's last candidate is such an answer, with a challenge of its own.
- *statement*: the program is the challenge; there is no answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from farm.assembly.above import STATEMENT, above
from farm.assembly.challenge import Challenge, challenge_to
from farm.assembly.faults import StatementFault
from farm.assembly.negation import negated_entry, negation_to
from farm.assembly.program import Program
from farm.assembly.segments import Segment
from farm.manifest.entry import Entry
from farm.task import Kind

#: Returns the program of a line.
Assemble = Callable[[Entry], Program]

_ANSWER = ("generation", "predicted_proof")


class NoTask(StatementFault):
    """A statement of which the line's task cannot be asked, for which the farm refuses the manifest."""


def stated_by(entry: Entry, asks: Kind) -> tuple[Challenge, Challenge | None]:
    """Return the challenge of a line, and that of its negation where the task needs one. Raises NoTask."""
    stated = challenge_to(entry.header, entry.formal_statement, entry.context)
    if stated is None:
        raise NoTask(f"the task {asks} needs a statement", "write the theorem")
    if asks is Kind.STATEMENT:
        return stated, None
    negation = negation_to(stated)
    if negation is None:
        problem = "it names no theorem, so Lean cannot be asked for its negation"
        raise NoTask(problem, "name the theorem")
    return stated, replace(negation.challenge, context_end=stated.context_end)


def program_of(entry: Entry, asks: Kind, assemble: Assemble) -> Program:
    """Return the program of a line with a task; raises NoTask."""
    if asks is Kind.STATEMENT:
        stated, _ = stated_by(entry, asks)
        return _placed(entry, stated, Program(text=stated.program, segments=(), warnings=()))
    if asks is Kind.DISPROVE:
        return _disproof(entry, assemble)
    own = assemble(entry)
    return replace(
        own, restated=next(iter(own.candidates[1:]), None), fallback=_alone(_disproof(entry, assemble))
    )


def _disproof(entry: Entry, assemble: Assemble) -> Program:
    stated, _ = stated_by(entry, Kind.DISPROVE)
    negated = negated_entry(entry)
    assert negated is not None  # noqa: S101 - it has a challenge
    first, *others = (_placed(entry, stated, each) for each in assemble(negated).candidates)
    if not others:
        return _alone(first)
    return replace(first, fallback=others[-1], restated=others[0] if len(others) > 1 else None)


def _alone(program: Program) -> Program:
    return replace(program, fallback=None, restated=None)


def _placed(entry: Entry, stated: Challenge, program: Program) -> Program:
    """Return a program with the segments that its statement has in the line's own fields."""
    answer = [each for each in program.segments if each.origin in _ANSWER]
    begins = program.text.startswith(stated.program)
    return replace(
        program,
        segments=(*(_segments(entry, stated) if begins else ()), *answer),
        warnings=tuple(each for each in program.warnings if each.origin in _ANSWER),
        context_end=stated.context_end if begins else 0,
    )


def _segments(entry: Entry, stated: Challenge) -> list[Segment]:
    """Return the segments of a challenge's program."""
    dataset = above(entry.header, entry.context, entry.formal_statement)
    start = len(dataset.written)
    pairs = enumerate(zip(dataset.statement, stated.program[start:], strict=False))
    shorter = min(len(dataset.statement), len(stated.program) - start)
    length = next((place for place, (own, its) in pairs if own != its), shorter)
    parts = [Segment(0, len(dataset.text), dataset.origin, 0), Segment(start, length, STATEMENT, 0)]
    return [placed for part in parts if part.length for placed in dataset.placed(part)]
