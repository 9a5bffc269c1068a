"""Checking step, answers: finds what a statement leaves open, and has Lean read the expected answers."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import replace

from farm.assembly.challenge import Challenge
from farm.lean_text.positions import line_and_column
from farm.task import Task
from farm_workers.audit.answers import DECIDED, EXPECTED, AnswersAsked, open_definitions
from farm_workers.audit.declarations import opened_module
from farm_workers.audit.names import dotted
from farm_workers.audit.olean import MalformedOlean
from farm_workers.checking.challenges import BadChallenge, BadTask, Challenges
from farm_workers.checking.stages import Candidate

_NOTHING_OPEN = (
    "There is an expected_answer, but no definition of the formal_statement has a sorry for its value."
)


def asked(task: Task, challenge: bytes | None, stated: Challenge | None) -> AnswersAsked | None:
    """Return the definitions that a compiled challenge leaves open, and the task's demands on them.

    What the context leaves open is not for a submission to give. Returns None if nothing is open.
    """
    if challenge is None or stated is None or task.answers is False:
        return None
    found = _left_open(challenge, line_and_column(stated.program, stated.context_end))
    if not found:
        return None
    form = task.answer_must
    names = found if task.expected_answer is None else _expected(task.expected_answer, found)
    return AnswersAsked(
        open=found,
        required=task.demands_answers,
        form=None if form is None else form.form,
        without=() if form is None else form.without,
        expected=[] if task.expected_answer is None else list(names),
    )


@functools.lru_cache(maxsize=64)  # many proofs of one statement are checked in a row
def _left_open(challenge: bytes, above: tuple[int, int]) -> tuple[str, ...]:
    try:
        with opened_module(challenge) as module:
            return tuple(sorted(map(dotted, open_definitions(module, above))))
    except MalformedOlean:
        return ()  # the audit says so


def _expected(texts: dict[str, str], found: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the definitions whose answers are expected, in the order of the texts."""
    if "" in texts and len(found) != 1:
        raise BadTask(
            f"expected_answer is one text, but {', '.join(found)} are left open; write one text for each."
        )
    names = tuple(name or found[0] for name in texts)
    if unknown := [name for name in names if name not in found]:
        raise BadTask(
            f"expected_answer names {unknown[0]}, but the statement leaves open: {', '.join(found)}."
        )
    return names


class ExpectedAnswers:
    """Adds the expected answers of tasks to the challenges of candidates; thread-safe."""

    def __init__(self, challenges: Challenges) -> None:
        self._challenges = challenges

    def added(self, candidate: Candidate) -> Candidate:
        """Return a candidate whose challenge also states that its answers are the expected ones.

        Lean elaborates those propositions, and decides them if it finds an instance. Raises BadChallenge for
        texts that Lean refuses, and BadTask for names that are not open.
        """
        check, question = candidate.check, candidate.question
        texts, challenge = check.task.expected_answer, check.challenge
        if not texts or challenge is None or challenge.beyond or check.task.answers is False:
            return candidate
        compiled = self._challenges.compiled(challenge, question)
        found = _left_open(compiled, line_and_column(challenge.program, challenge.context_end))
        if not found:
            raise BadTask(_NOTHING_OPEN)
        pairs = list(zip(_expected(texts, found), texts.values(), strict=True))
        stated = replace(challenge, beyond="".join(_stated(pairs)))
        decided = replace(challenge, beyond="".join((stated.beyond, *_decided(pairs))))
        try:
            self._challenges.compiled(decided, question)
        except BadChallenge:
            self._challenges.compiled(stated, question)
        else:
            stated = decided
        return replace(candidate, check=replace(check, challenge=stated))


def _stated(pairs: Sequence[tuple[str, str]]) -> Iterator[str]:
    for number, pair in enumerate(pairs):
        yield f"\nnoncomputable def _root_.{EXPECTED}.of_{number} : Prop :=\n  {_equal(*pair)}\n"


def _decided(pairs: Sequence[tuple[str, str]]) -> Iterator[str]:
    for number, pair in enumerate(pairs):
        decision = f"@_root_.Decidable.decide ({_equal(*pair)}) _root_.inferInstance"
        yield f"\nnoncomputable def _root_.{DECIDED}.of_{number} : _root_.Bool :=\n  {decision}\n"


def _equal(name: str, text: str) -> str:
    return f"@_root_.Eq (type_of% @_root_.{name}) @_root_.{name} (\n{text}\n)"
