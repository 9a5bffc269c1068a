"""Checking step, questions: makes the check of a manifest line on this machine, without a store."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from farm.assembly.challenge import challenge_to
from farm.assembly.negation import as_negation
from farm.assembly.program import AssemblyOptions, Program, assemble
from farm.assembly.tasked import program_of, stated_by
from farm.judging.assurance import Assurance
from farm.judging.job import Check, Fallback
from farm.limits import Limits
from farm.manifest.entry import Entry
from farm.task import Kind, Task


def check_of(entry: Entry, limits: Limits, assurance: Assurance) -> Check:
    """Return the check of a line, with the programs that are tried if its first one does not compile."""
    assembled = partial(assemble, options=AssemblyOptions())
    program, asks = assembled(entry), entry.task.kind
    if entry.task.axioms is not None:
        assurance = replace(assurance, axioms=entry.task.axioms)
    challenge = challenge_to(entry.header, entry.formal_statement, entry.context)
    fallback = _other(program.fallback)
    task = entry.task_in(Task())
    if challenge is not None and task.negates:
        challenge = as_negation(challenge)
    if asks is not Kind.PROVE:
        program = program_of(entry, asks, assembled)
        stated, negation = stated_by(entry, asks)
        challenge = negation if asks is Kind.DISPROVE else stated
        fallback = _other(program.fallback)
        if asks is Kind.EITHER and fallback is not None:
            fallback = replace(fallback, challenge=negation)
    return Check(
        program=program.text,
        limits=limits,
        submitted=program.submitted,
        challenge=challenge,
        assurance=assurance,
        restated=_other(program.restated),
        fallback=fallback,
        context_end=challenge.context_end if challenge else 0,
        task=task,
    )


def _other(program: Program | None) -> Fallback | None:
    return None if program is None else Fallback(program=program.text, submitted=program.submitted)
