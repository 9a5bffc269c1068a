"""Checking step, answers: finds what a statement leaves open, for the seal to compare the proof up to it."""

from __future__ import annotations

import functools

from farm.lean_text.positions import line_and_column
from farm.task import Task
from farm_workers.audit.answers import AnswersAsked, open_definitions
from farm_workers.audit.declarations import opened_module
from farm_workers.audit.names import dotted
from farm_workers.audit.olean import MalformedOlean
from farm_workers.checking.challenges import BadChallenge


def asked(task: Task, challenge: bytes | None, stated: str, context_end: int) -> AnswersAsked | None:
    """Return the definitions that a compiled challenge leaves open, and the task's demands on them.

    `stated` is the challenge's program; what its context leaves open is not for a submission to give. Raises
    BadChallenge if answers are demanded and nothing is open.
    """
    if challenge is None or task.answers is False:
        return None
    found = _left_open(challenge, line_and_column(stated, context_end))
    if not found:
        if task.demands_answers:
            raise BadChallenge("the task demands an answer, but no definition of the statement is a sorry")
        return None
    form = task.answer_must
    return AnswersAsked(
        open=found,
        required=task.demands_answers,
        form=None if form is None else form.form,
        without=() if form is None else form.without,
        compared=task.expected_answer is not None,
    )


@functools.lru_cache(maxsize=64)  # many proofs of one statement are checked in a row
def _left_open(challenge: bytes, above: tuple[int, int]) -> tuple[str, ...]:
    try:
        with opened_module(challenge) as module:
            return tuple(sorted(map(dotted, open_definitions(module, above))))
    except MalformedOlean:
        return ()  # the audit says so
