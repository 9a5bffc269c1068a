"""Checking step, statement stage: examines a statement alone, and tries a few tactics on it.

The statement is the submission here: its errors are its own. Each tactic is the proof of a program of its
own, sealed as any proof is: a tactic that closes a statement proves it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from farm.assembly.challenge import Challenge
from farm.assembly.negation import negation_to
from farm.judging import job
from farm.judging.audit import Audit
from farm.judging.ending import needs_seal
from farm.judging.job import Check
from farm.judging.report import Execution, Report
from farm.judging.verdict import Outcome, Reason, judge
from farm.limits import Limits
from farm.task import Task
from farm_workers.box.supervisor import BoxFailed
from farm_workers.checking.challenges import makes_errors_of_sorries, without_warning
from farm_workers.checking.compiling import Compiling
from farm_workers.checking.policy import screened
from farm_workers.checking.stages import AskedCandidate, Compiled, failed
from farm_workers.checking.trying import LEAST_SECONDS, both

#: The tactics that are tried, in this order; one that the environment does not have closes nothing.
TACTICS = (
    *("rfl", "trivial", "assumption", "decide", "simp", "omega"),
    *("norm_num", "ring", "linarith", "tauto", "aesop"),
)
#: The most that one tactic may take of a line's time.
_SHARE = 0.25


class Statements:
    """Examines statements; thread-safe. `audited` seals a compiled one, and `judged` judges a proof."""

    def __init__(
        self,
        compiling: Compiling,
        audited: Callable[[Compiled], Audit],
        judged: Callable[[AskedCandidate], Report],
    ) -> None:
        self._compiling, self._audited, self._judged = compiling, audited, judged

    def examined(self, own: AskedCandidate) -> Report:
        """Return the report of a statement, with its facts if Lean accepts it."""
        read = screened(own)
        if read.text_error is not None or read.refused is not None:
            return replace(read, states=True)
        report = replace(self.stated(own), states=True, hits=read.hits)
        if judge(report).outcome is not Outcome.STATED:
            return report
        return self._tried(own, report)

    def stated(self, own: AskedCandidate) -> Report:
        """Return the report of the statement itself, with its context as a part of it; no tactic is tried.

        Its sorries are facts, so they are no errors where its text makes errors of warnings.
        """
        check = replace(own.check, context_end=0)
        with self._compiling.compiled(own.instead(check)) as compiled:
            if not makes_errors_of_sorries(compiled.report):
                return self._facts(compiled)
        (stated,) = check.candidates
        quiet = replace(stated, program=without_warning(stated.program))
        with self._compiling.compiled(own.instead(replace(check, candidates=(quiet,)))) as compiled:
            return self._facts(compiled)

    def _facts(self, compiled: Compiled) -> Report:
        if not needs_seal(compiled.report, reads_open=True):
            return compiled.report
        return compiled.audited(lambda: self._audited(compiled))

    def _tried(self, own: AskedCandidate, report: Report) -> Report:
        """Return the report with the tactics that close the statement or its negation, in the line's time."""
        audit, spent = report.audit, _Spent(own.check.limits, report.run)
        assert audit is not None  # noqa: S101 - it is stated
        assert audit.stated is not None  # noqa: S101 - it is stated
        stated = audit.stated
        try:
            for tactic in TACTICS:
                proof, disproof = (self._closes(own, check, spent) for check in _proofs(own.check, tactic))
                if None in (proof, disproof):
                    stated = replace(stated, cut_short=True)
                else:
                    stated = replace(stated, tried=(*stated.tried, tactic))
                if proof or disproof:
                    closed_by, refuted_by = (tactic if closes else None for closes in (proof, disproof))
                    stated = replace(stated, closed_by=closed_by, negation_closed_by=refuted_by)
                    break
        except BoxFailed as error:
            return failed(report, error)
        return replace(report, run=spent.run, audit=replace(audit, stated=stated))

    def _closes(self, own: AskedCandidate, check: Check | None, spent: _Spent) -> bool | None:
        """Return whether a proof is accepted, None if the time does not allow an answer.

        Raises BoxFailed when the farm fails.
        """
        left = spent.left
        if check is None:
            return False
        if left is None:
            return None
        report = self._judged(own.instead(replace(check, limits=left)))
        spent.add(report.run)
        verdict = judge(report)
        if report.negates and verdict.reason is Reason.BAD_CHALLENGE:
            return False  # the statement has no negation below its own text
        if verdict.outcome is Outcome.JUDGE_ERROR:
            raise BoxFailed(verdict.detail)
        if verdict.by_chance:
            return None
        return verdict.outcome in (Outcome.PROVED, Outcome.DISPROVED) and not report.rests_on_sorry_of


class _Spent:
    """The time that a statement has taken of its limits; `run` is its own run with the time of all."""

    def __init__(self, limits: Limits, run: Execution) -> None:
        self._limits, self.run = limits, run

    def add(self, run: Execution) -> None:
        """Count another run."""
        self.run = both(run, self.run)

    @property
    def left(self) -> Limits | None:
        """The limits of the next tactic, None if the time is spent."""
        limits, run = self._limits, self.run
        wall = min(limits.wall_seconds - run.counted_seconds, _SHARE * limits.wall_seconds)
        cpu = min(limits.cpu_seconds - run.cpu_seconds, _SHARE * limits.cpu_seconds)
        if min(wall, cpu) < LEAST_SECONDS:
            return None
        return replace(limits, wall_seconds=wall, cpu_seconds=cpu)


def _proofs(check: Check, tactic: str) -> tuple[Check | None, Check | None]:
    """Return the checks of a tactic as a proof of the statement, and of its negation if it has one."""

    def proved(kind: type[job.Candidate], challenge: Challenge) -> Check:
        closing = kind(program=_closing(challenge, tactic), submitted=(), challenge=challenge)
        return replace(check, candidates=(closing,), task=Task(), goals=False)

    stated = check.challenge
    if stated is None:
        return None, None
    negation = negation_to(stated)
    if negation is None:
        return proved(job.Candidate, stated), None
    negated = replace(negation.challenge, context_end=stated.context_end)
    return proved(job.Candidate, stated), proved(job.Disproof, negated)


def _closing(challenge: Challenge, tactic: str) -> str:
    """Return a challenge's program with a tactic for a proof."""
    stated = challenge.program.removesuffix("sorry\n")
    return f"{stated}by\n  {tactic}\n"
