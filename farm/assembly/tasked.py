"""Assembly step, tasks: the candidate programs of a line whose answer has to do something else. Pure.

- *disprove*: each program is an answer to the negation, below the statement itself.
- *either*: the first two answers to the statement, then one to the negation.
- *statement*: the program is the challenge; there is no answer.

An answer to the negation has a challenge of its own; no other program has one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from farm.assembly.above import STATEMENT, above
from farm.assembly.challenge import Challenge, challenge_to
from farm.assembly.faults import StatementFault
from farm.assembly.negation import negation_to
from farm.assembly.program import Program
from farm.assembly.segments import Segment
from farm.manifest.entry import Entry
from farm.task import Kind

#: Returns the candidate programs of a line.
Assemble = Callable[[Entry], tuple[Program, ...]]

_ANSWER = ("generation", "predicted_proof")


class NoTask(StatementFault):
    """A statement of which the line's task cannot be asked, for which the farm refuses the manifest."""


def programs_of(entry: Entry, asks: Kind, assemble: Assemble) -> tuple[Program, ...]:
    """Return the candidate programs of a line, in the order in which a worker tries them; raises NoTask."""
    if asks is Kind.PROVE:
        return assemble(entry)
    stated = challenge_to(entry.header, entry.formal_statement, entry.context)
    if stated is None:
        raise NoTask(f"the task {asks} needs a statement", "write the theorem")
    if asks is Kind.STATEMENT:
        return (_placed(entry, stated, Program(text=stated.program, segments=(), warnings=())),)
    disproofs = _disproofs(entry, stated, assemble)
    return disproofs if asks is Kind.DISPROVE else (*assemble(entry)[:2], disproofs[0])


def _disproofs(entry: Entry, stated: Challenge, assemble: Assemble) -> tuple[Program, ...]:
    """Return the answers to the negation of what is stated."""
    negation = negation_to(stated)
    if negation is None:
        problem = "it names no theorem, so Lean cannot be asked for its negation"
        raise NoTask(problem, "name the theorem")
    challenge = replace(negation.challenge, context_end=stated.context_end)
    negated = replace(entry, header="", context=negation.context, formal_statement=negation.formal_statement)
    return tuple(replace(_placed(entry, stated, each), challenge=challenge) for each in assemble(negated))


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
