"""Checking step, stages: defines the values that a check's stages hand on, and the facts of failed stages.

`farm_workers.checking.checker` has the stages in their order. A stage only adds facts to the report;
`farm.judging.verdict` alone judges the proof.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace

from farm.assembly.challenge import Challenge
from farm.judging.assurance import Assurance
from farm.judging.audit import Audit
from farm.judging.ending import needs_seal
from farm.judging.job import Check
from farm.judging.report import Execution, Report
from farm.judging.tiers import Tier
from farm.lean_text.scanner import sorry_tokens
from farm_workers.box import once as box
from farm_workers.box.supervisor import BoxFailed
from farm_workers.checking.bans import Bans
from farm_workers.checking.candidates import Settling
from farm_workers.checking.challenges import BadChallenge, BadTask
from farm_workers.checking.contexts import TIMES, Shared
from farm_workers.checking.seals import KernelLimit
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.lean.way import Question, Reply

_LEAN_ALONE = Assurance(tier=Tier.LEAN)


@dataclass(frozen=True, kw_only=True, slots=True)
class AskedCandidate:
    """The first candidate of a check, with its question.

    `shared` is the context, if the question shares it; `bans` are what the check forbids, if it forbids
    anything. `keep` is called with the whole module that the seal has made, if the seal accepts it. `misfit`
    says why an answer does not fit into its hole, None if it does or if there is no hole.
    """

    check: Check
    question: Question
    shared: Shared | None = None
    keep: Callable[[bytes], None] | None = None
    bans: Bans | None = None
    misfit: str | None = None

    @classmethod
    def of(
        cls, check: Check, environment: LeanEnvironment, cancelled: box.Cancelled, way: str | None
    ) -> AskedCandidate:
        """Return the candidate of a check's own program, within the check's limits."""
        question = replace(
            Question.of(check.program, environment, check.limits, cancelled),
            way=way,
            context_end=check.context_end,
            goals=check.goals,
            keeps_examples=check.challenge is None and check.assurance is not None,
            moved=None if check.task.fills is None else check.task.fills.moved(check.program),
        )
        return cls(check=check, question=question)

    @property
    def assurance(self) -> Assurance:
        """The requirements for a *proved*; a check without any has the tier lean."""
        return self.check.assurance or _LEAN_ALONE

    @property
    def needs_second_kernel(self) -> bool:
        """Whether checkers of the environment must accept the module as well as the seal."""
        return self.assurance.tier == Tier.KERNEL and bool(self.question.environment.other_kernels)

    @property
    def needs_whole_module(self) -> bool:
        """Whether the sealed module must leave the seal, with its context: others read it."""
        return self.needs_second_kernel or self.keep is not None

    def instead(self, check: Check) -> AskedCandidate:
        """Return the candidate of another check in the same environment and way."""
        question = self.question
        return replace(self.of(check, question.environment, question.cancelled, question.way), keep=self.keep)

    def stopping(self) -> AskedCandidate:
        """Return the candidate, to be stopped at an error that none of the later candidates can avoid."""
        check = self.check
        if not check.stop_at_error or check.goals:  # goals are written at the end
            return self
        return replace(self, question=replace(self.question, stops_at=Settling(check)))

    def below(self, shared: Shared) -> AskedCandidate:
        """Return the candidate, to be compiled below a shared context."""
        return replace(self, question=replace(self.question, shares_context=True), shared=shared)

    def allowing(self, reading: Execution) -> AskedCandidate:
        """Return the candidate with time to read its context, which does not count against the limits."""
        return replace(self, question=self.question.allowing(reading, TIMES))


@dataclass(frozen=True, kw_only=True, slots=True)
class Compiled:
    """A candidate after Lean's run: the reply with the module, and the report without an audit."""

    candidate: AskedCandidate
    reply: Reply
    report: Report

    @property
    def needs_seal(self) -> bool:
        """Whether the verdict depends on the module."""
        check = self.candidate.check
        return needs_seal(
            self.report, reads_open=check.task.reads_open_modules or _has_sorry(check.challenge)
        )

    def audited(self, audit: Callable[[], Audit]) -> Report:
        """Return the report with the audit that `audit` returns, or with the failure that it raises."""
        try:
            return replace(self.report, audit=audit())
        except (BadChallenge, KernelLimit, BoxFailed, OSError) as error:
            return failed(self.report, error)


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgedCandidate:
    """The report of a candidate; its question has the limits within which Lean ran, if Lean ran."""

    candidate: AskedCandidate
    report: Report


def failed(report: Report, error: Exception) -> Report:
    """Return a report with the failure of a stage: a statement's fault, the kernel's limit or the farm's."""
    if isinstance(error, BadTask):
        return replace(report, task_error=str(error))
    if isinstance(error, BadChallenge):
        return replace(report, challenge_error=str(error))
    if isinstance(error, KernelLimit):
        return replace(report, kernel_limit=str(error))
    return replace(report, run=replace(report.run, box_error=str(error)))


@functools.lru_cache(maxsize=8)  # many proofs of one statement are checked in a row
def _has_sorry(challenge: Challenge | None) -> bool:
    """Return whether a challenge has a sorry besides the one in the place of its proof."""
    return challenge is not None and len(sorry_tokens(challenge.program)) > 1
