"""Checking step, answers: finds what a statement leaves open, and has Lean read the expected answers."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import replace

from farm.assembly.challenge import Challenge
from farm.judging.audit import Answer, Finding
from farm.lean_text.positions import line_and_column
from farm.task import Task
from farm_workers.audit.answer_forms import expected_fault
from farm_workers.audit.answers import DECIDED, EXPECTED, AnswersAsked, equation, open_definitions
from farm_workers.audit.declarations import opened_module
from farm_workers.audit.digest import value_digest
from farm_workers.audit.names import dotted, parsed
from farm_workers.audit.olean import MalformedOlean, Name
from farm_workers.audit.terms import Reading, Terms
from farm_workers.cache import Cache
from farm_workers.checking.challenges import BadChallenge, BadTask, Challenges
from farm_workers.checking.seals import Sealed
from farm_workers.checking.stages import AskedCandidate, Compiled

#: The most texts of answers whose digests are kept.
_MOST_TEXTS = 10_000
_NOTHING_OPEN = (
    "There is an expected_answer, but no definition of the formal_statement has a sorry for its value."
)


def asked(task: Task, challenge: bytes | None, stated: Challenge | None) -> AnswersAsked | None:
    """Return the definitions that a compiled challenge leaves open, and the task's demands on them.

    What the context leaves open is not for a submission to give. Returns None if nothing is open.
    """
    if challenge is None or stated is None:
        return None
    found = _left_open(challenge, line_and_column(stated.program, stated.context_end))
    if not found:
        return None
    if task.answers is False:
        return AnswersAsked(open=(), required=False, form=None, without=(), expected=(), closed=found)
    form = task.answer_must
    names = found if task.expected_answer is None else _expected(task.expected_answer, found)
    return AnswersAsked(
        open=found,
        required=task.demands_answers,
        form=None if form is None else form.form,
        without=() if form is None else form.without,
        expected=[] if task.expected_answer is None else list(names),
        closed=(),
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

    def added(self, candidate: AskedCandidate) -> AskedCandidate:
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
            compiled = self._challenges.compiled(decided, question)
        except BadChallenge:
            compiled = self._challenges.compiled(stated, question)
        else:
            stated = decided
        if fault := _expected_fault(compiled, tuple(name for name, _ in pairs)):
            raise BadTask(fault)
        return replace(candidate, check=check.against(stated))


@functools.lru_cache(maxsize=64)
def _expected_fault(challenge: bytes, names: tuple[str, ...]) -> str | None:
    """Return the sentence about an expected answer that no answer can be compared with, None without one."""
    try:
        with opened_module(challenge) as module:
            reading = Reading(module.olean, Terms())
            propositions = [(EXPECTED, f"of_{number}") for number in range(len(names))]
            faults = (
                expected_fault(module, reading, parsed(name), proposition)
                for name, proposition in zip(names, propositions, strict=True)
            )
            return next((each.sentence for each in faults if each), None)
    except MalformedOlean:
        return None  # the audit says so


class AnswerTexts:
    """Has Lean read the texts of answers below the statement, where no submission has a part; thread-safe."""

    def __init__(self, challenges: Challenges) -> None:
        self._challenges = challenges
        self._kept: Cache[tuple[str, str], str] = Cache(most=_MOST_TEXTS)

    def held(self, compiled: Compiled, sealed: Sealed) -> Sealed:
        """Return a sealed module with each answer in full whose text Lean reads as another value, or not.

        Such an answer has not the form that a task demands. Raises BoxFailed when the farm fails.
        """
        audit, candidate = sealed.audit, compiled.candidate
        if not audit.accepted or not sealed.texts or candidate.check.challenge is None:
            return sealed
        answers, findings = list[Answer](), list[Finding]()
        for answer, said in zip(audit.answers, sealed.texts, strict=True):
            if answer.text is not None and not answer.text_by_submission:
                read = self._read(candidate, candidate.check.challenge, answer.name, answer.text)
                answer = replace(answer, text_by_submission=read != said.value_sha256)
                if answer.text_by_submission and read is not None and _has_form(candidate):
                    findings.append(_of_another_meaning(answer.name))
            answers.append(replace(answer, text=said.full) if answer.text_by_submission else answer)
        audit = replace(audit, answers=tuple(answers), findings=tuple(findings), accepted=not findings)
        return replace(sealed, audit=audit, module=sealed.module if audit.accepted else None)

    def _read(self, candidate: AskedCandidate, challenge: Challenge, name: str, text: str) -> str | None:
        """Return the digest of the value that a text has below the statement, "" if it has none.

        None if Lean exceeds a limit.
        """
        asked = replace(challenge, beyond="".join(_stated([(name, text)])))
        key = candidate.question.environment.digest, asked.sha256
        found = self._kept.get(key)
        if found is None:
            try:
                module = self._challenges.read(asked, candidate.question)
            except BadChallenge:
                module = b""
            if module is None:
                return None
            found = _value(module, parsed(name)) if module else ""
            self._kept.put(key, found)
        return found


def _value(challenge: bytes, answer: Name) -> str:
    """Return the digest of the value that a challenge states for its first answer, "" without one."""
    try:
        with opened_module(challenge) as module:
            holder = module.constant((EXPECTED, "of_0"))
            says = None if holder is None else equation(module.olean, holder, answer)
            if says is None:
                return ""
            return value_digest(Reading(module.olean, Terms()), says.holder.parameters, says.value)
    except MalformedOlean:
        return ""


def _has_form(candidate: AskedCandidate) -> bool:
    form = candidate.check.task.answer_must
    return form is not None and form.form is not None


def _of_another_meaning(name: str) -> Finding:
    sentence = (
        f"The answer {name} is a numeral only by instances that Lean does not find below the statement."
    )
    return Finding(word="answer_shape", sentence=sentence, name=name)


def _stated(pairs: Sequence[tuple[str, str]]) -> Iterator[str]:
    for number, pair in enumerate(pairs):
        yield f"\nnoncomputable def _root_.{EXPECTED}.of_{number} : Prop :=\n  {_equal(*pair)}\n"


def _decided(pairs: Sequence[tuple[str, str]]) -> Iterator[str]:
    for number, pair in enumerate(pairs):
        decision = f"@_root_.Decidable.decide ({_equal(*pair)}) _root_.inferInstance"
        yield f"\nnoncomputable def _root_.{DECIDED}.of_{number} : _root_.Bool :=\n  {decision}\n"


def _equal(name: str, text: str) -> str:
    return f"@_root_.Eq (type_of% @_root_.{name}) @_root_.{name} (\n{text}\n)"
