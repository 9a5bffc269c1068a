"""Checking step, questions: makes the check of a manifest line on this machine, without a store."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from farm.assembly.challenge import challenge_to
from farm.assembly.negation import as_negation
from farm.assembly.program import AssemblyOptions, assemble
from farm.assembly.tasked import programs_of
from farm.judging.assurance import Assurance
from farm.judging.job import Check, candidates_of
from farm.limits import Limits
from farm.manifest.entry import Entry
from farm.task import Task


def check_of(entry: Entry, limits: Limits, assurance: Assurance) -> Check:
    """Return the check of a line, with all its candidates."""
    programs = programs_of(entry, entry.task.kind, partial(assemble, options=AssemblyOptions()))
    if entry.task.axioms is not None:
        assurance = replace(assurance, axioms=entry.task.axioms)
    challenge = challenge_to(entry.header, entry.formal_statement, entry.context)
    task = entry.task_in(Task())
    if challenge is not None and task.negates:
        challenge = as_negation(challenge)
    return Check(
        candidates=candidates_of(programs, challenge),
        limits=limits,
        assurance=assurance,
        context_end=challenge.context_end if challenge else 0,
        task=task,
    )
