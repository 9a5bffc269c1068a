"""Claims step: judges the theorems that claim to prove a benchmark's problems, on this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Any

from farm.assembly.challenge import Challenge, challenge_to
from farm.datasets.claims import Asked, Claim, Pair, PairedBy, left, pairs
from farm.errors import ManifestError
from farm.judging.assurance import Assurance
from farm.judging.job import Check
from farm.judging.report import Report
from farm.judging.reward import worth
from farm.judging.tiers import Tier
from farm.judging.verdict import Outcome, Reason, Verdict, judge
from farm.lean_text.scanner import sorry_tokens
from farm.limits import Limits
from farm.manifest.entry import Entry
from farm.task import Kind, Task
from farm_workers.box import once as box
from farm_workers.checking.asked import check_of
from farm_workers.checking.checker import Checker
from farm_workers.checking.side_by_side import side_by_side
from farm_workers.checking.verdict_fields import verdict_fields
from farm_workers.environments.lacking import lacking
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.lean.edits import Edit, edited
from farm_workers.lean.outlined import NoOutline

_RESTING = frozenset({Reason.HAS_SORRY, Reason.AXIOM, Reason.NATIVE_DECIDE})
#: Weaknesses of a proof that this machine or its environment has, not the proof.
_WEAKER = {
    "forgeable": "the isolation of this machine is weak",
    "unrebuilt": "a checker read the program's own module, because this Lean cannot be forked",
    Tier.AUDIT: "no kernel checked it: the environment has none",
}
#: The fields of a line that are about its own answer, which is no claim of the repository.
_OF_ANSWERS = frozenset({"generation", "predicted_proof", "proof_status", "proved_in_file", "farm", "claim"})
#: The field of a line for a program that is judged as it is, and that for an answer, which is put below the
#: benchmark's own header.
AS_IT_IS, AS_ANSWER = "predicted_proof", "generation"


class Result(StrEnum):
    """The result for a problem with claims, the best first."""

    PROVED = "proved"
    RESTS_ON = "rests on"
    OTHER_STATEMENT = "another statement"
    NOT_PROVED = "not proved"
    UNJUDGED = "not judged"
    MISSING = "missing"


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """A line of a benchmark without its answer and the verdict on that; and the line, validated."""

    fields: Mapping[str, Any]
    entry: Entry

    @classmethod
    def of(cls, fields: Mapping[str, Any], entry: Entry) -> Problem:
        """Return the problem of a line. Raises ManifestError if it asks for no proof of a statement."""
        if entry.hole is not None or entry.task.kind is not Kind.PROVE:
            field = "task" if entry.hole is None else "hole"
            raise ManifestError(
                entry.path,
                "a claim is judged as a proof of a whole statement",
                remedy=f"leave out the field {field}, or the line",
                line=entry.line,
                field=field,
            )
        own = {name: value for name, value in fields.items() if name not in _OF_ANSWERS}
        alone = replace(entry, generation="", predicted_proof="", lacks_answer=True)
        return cls(fields=own, entry=alone)

    @property
    def key(self) -> str:
        """A text that is equal for equal problems, such as the samples of one."""
        return repr(replace(self.entry, path="", line=0))


@dataclass(frozen=True, kw_only=True, slots=True)
class Judged:
    """A problem with the best of its claims, and the report on that; `detail` says more of the result.

    `text` is the text that was judged, and `field` the field of a line in which it was.
    """

    problem: Problem
    result: Result
    pair: Pair | None = None
    report: Report | None = None
    text: str = ""
    field: str = AS_IT_IS
    detail: str = ""
    others: int = 0

    def cells(self) -> tuple[str, str, str, str, str]:
        """Return the cells of a table's row: problem, result, place of the claim, kind of pair, details."""
        place, by = ("", "") if self.pair is None else (self.pair.claim.place, str(self.pair.by))
        return self.problem.entry.name, self.result, place, by, self.detail.partition("\n")[0]

    def claim(self) -> dict[str, object]:
        """Return the facts of the claim."""
        if self.pair is None:
            return {"result": self.result}
        return {
            "result": self.result,
            "detail": self.detail,
            "file": self.pair.claim.file,
            "line": self.pair.claim.line,
            "name": self.pair.claim.name,
            "paired_by": self.pair.by,
            "other_claims": self.others,
        }

    def line(self, environment: LeanEnvironment, isolation: str) -> dict[str, object]:
        """Return the problem as a line with its claim, the text of that, and the farm's verdict."""
        told = {**self.problem.fields, "claim": self.claim()}
        if self.pair is None or self.report is None:
            return told
        return {**told, self.field: self.text, **verdict_fields(self.report, environment, isolation)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Verifying:
    """Judges claims in one environment, several at once."""

    checker: Checker
    environment: LeanEnvironment
    limits: Limits
    at_once: int

    def paired(self, problems: Sequence[Problem], found: Sequence[Claim], *, by_type: bool) -> list[Pair]:
        """Return the claims to each problem; with `by_type` also those that only Lean finds to state it."""
        asked = [
            Asked.of(number, each.entry.name, each.entry.formal_statement)
            for number, each in enumerate(problems)
        ]
        made = pairs(asked, found)
        if not by_type:
            return made
        open_problems, others = left(asked, found, made)
        if not open_problems or not others:
            return made
        digests = self._digests([_stated(each) for each in others])
        asks = self._digests([_challenge(problems[each.number].entry) for each in open_problems])
        return made + [
            Pair(number=problem.number, claim=claim, by=PairedBy.TYPE)
            for problem, asks_for in zip(open_problems, asks, strict=True)
            for claim, states in zip(others, digests, strict=True)
            if asks_for is not None and asks_for == states
        ]

    def judged(
        self, problems: Sequence[Problem], made: Sequence[Pair], done: Callable[[], None]
    ) -> Iterator[Judged]:
        """Yield each problem with the best of its claims, in the order given, and call `done` after each.

        A caller that closes the iterator early waits for no check: the running ones are cancelled.
        """
        of_problem: dict[int, list[Pair]] = {}
        for pair in made:
            of_problem.setdefault(pair.number, []).append(pair)
        with side_by_side(self.at_once) as (pool, cancelled):

            def best(number: int) -> Judged:
                return self._best(problems[number], of_problem.get(number, []), cancelled)

            for each in pool.map(best, range(len(problems))):
                done()
                yield each

    def _best(self, problem: Problem, made: Sequence[Pair], cancelled: box.Cancelled) -> Judged:
        found = list[Judged]()
        for pair in made:
            found.append(self._judged(problem, pair, cancelled))
            if found[-1].result is Result.PROVED:
                break
        order = list(Result)
        best = min(found, key=lambda each: order.index(each.result), default=None)
        if best is None:
            return Judged(problem=problem, result=Result.MISSING)
        return replace(best, others=len(made) - 1)

    def _judged(self, problem: Problem, pair: Pair, cancelled: box.Cancelled) -> Judged:
        """Return the result for a claim.

        The file's text up to the theorem is judged as it is; then, until a proof is found, without the faults
        above the theorem, with the rest of the file, as a mutual block needs it, and as a model's answer
        below the benchmark's own header.
        """
        claim = pair.claim
        first = self._as_it_is(problem, claim.text, cancelled)
        for text, field, report in () if _is_proved(first) else self._otherwise(problem, claim, cancelled):
            if _is_proved(report):
                return replace(self._told(problem, pair, report), field=field, text=text)
        told = replace(self._told(problem, pair, first), text=claim.text)
        if told.result in (Result.NOT_PROVED, Result.UNJUDGED) and self._lacking(claim.text):
            return replace(told, result=Result.UNJUDGED, detail=first.remedy or told.detail)
        return told

    def _otherwise(
        self, problem: Problem, claim: Claim, cancelled: box.Cancelled
    ) -> Iterator[tuple[str, str, Report]]:
        """Yield other texts of a claim with the field that each is for, and the report on it."""
        cleaned = "" if self._lacking(claim.text) else self._without_faults(claim)
        whole = claim.source if claim.source.strip() != claim.text.strip() else ""
        for text in filter(None, (cleaned, whole)):
            yield text, AS_IT_IS, self._as_it_is(problem, text, cancelled)
        for text in filter(None, (claim.text, cleaned)):
            yield text, AS_ANSWER, self._checked(_filled(problem, AS_ANSWER, text), cancelled)

    def _as_it_is(self, problem: Problem, text: str, cancelled: box.Cancelled) -> Report:
        return self._checked(_filled(problem, AS_IT_IS, text), cancelled)

    def _told(self, problem: Problem, pair: Pair, report: Report) -> Judged:
        result, detail = self._result(report, judge(report))
        return Judged(problem=problem, result=result, pair=pair, report=report, detail=detail)

    def _checked(self, entry: Entry, cancelled: box.Cancelled) -> Report:
        check = check_of(entry, self.limits, self._assurance())
        return self.checker.check(check, self.environment, cancelled=cancelled)

    def _assurance(self) -> Assurance:
        return Assurance(tier=self.environment.tiers[0])

    def _without_faults(self, claim: Claim) -> str:
        """Return the text of a claim without the open theorems and the faulty commands above it.

        "" where it has none.
        """
        try:
            outline = self.checker.outline(claim.text, self.environment, limits=self.limits)
        except NoOutline:
            return ""
        theorems = {each.start for each in outline.proofs}
        faulty = [
            Edit(start=each.start, end=each.end)
            for each in outline.commands[:-1]
            if each.failed or (each.start in theorems and sorry_tokens(claim.text[each.start : each.end]))
        ]
        return edited(claim.text, faulty) if faulty else ""

    def _result(self, report: Report, verdict: Verdict) -> tuple[Result, str]:
        """Return the result for a claim, and a sentence about it."""
        detail = verdict.detail
        if verdict.outcome is Outcome.PROVED:
            weaker = worth(
                verdict.outcome,
                tier=report.tier,
                statement=report.statement,
                trusts=report.trusts,
                isolation=self.checker.isolation,
            ).weaker
            said = [words for word, words in _WEAKER.items() if word in weaker]
            if set(weaker) <= _WEAKER.keys():
                return Result.PROVED, "; ".join(said)
            return Result.RESTS_ON, ", ".join([*report.trusts, *report.rests_on_sorry_of]) or detail
        if verdict.outcome is Outcome.JUDGE_ERROR:
            return Result.UNJUDGED, detail
        if verdict.reason is Reason.STATEMENT_MISMATCH:
            return Result.OTHER_STATEMENT, detail
        return Result.RESTS_ON if verdict.reason in _RESTING else Result.NOT_PROVED, detail

    def _lacking(self, text: str) -> list[str]:
        """Return the modules that a text imports and that the environment does not have."""
        return lacking(text, self.environment)

    def _digests(self, stated: Sequence[Challenge | None]) -> list[str | None]:
        """Return the digest of each statement's type, None for one that Lean refuses."""
        with side_by_side(self.at_once) as (pool, cancelled):
            return list(pool.map(partial(self._digest, cancelled=cancelled), stated))

    def _digest(self, stated: Challenge | None, cancelled: box.Cancelled) -> str | None:
        if stated is None or self._lacking(stated.program):
            return None
        check = Check.of(
            program=stated.program,
            limits=self.limits,
            submitted=(),
            challenge=stated,
            assurance=self._assurance(),
            task=Task(task="statement"),
        )
        audit = self.checker.stated(check, self.environment, cancelled=cancelled).audit
        return None if audit is None or audit.stated is None else audit.stated.type_sha256


def _filled(problem: Problem, field: str, text: str) -> Entry:
    """Return the line of a problem with a text for its answer, in one of two fields."""
    whole, answer = (text, "") if field == AS_IT_IS else ("", text)
    return replace(problem.entry, lacks_answer=False, predicted_proof=whole, generation=answer)


def _is_proved(report: Report) -> bool:
    return judge(report).outcome is Outcome.PROVED


def _stated(claim: Claim) -> Challenge | None:
    return Challenge(program=claim.stated, name=claim.name) if claim.stated else None


def _challenge(entry: Entry) -> Challenge | None:
    return challenge_to(entry.header, entry.formal_statement, entry.context)
