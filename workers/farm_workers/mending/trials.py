"""Mending step, trials: judges other texts of a file, within a budget of seconds and of checks."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from farm.assembly.challenge import Challenge
from farm.judging.assurance import Assurance
from farm.judging.job import Check
from farm.judging.report import Message, Report
from farm.judging.verdict import Outcome, Verdict, judge
from farm.lean_text.policy.screen import NO_POLICY
from farm.lean_text.positions import Positions
from farm.limits import Limits
from farm.task import Task
from farm_workers.box import once as box
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.lean.edits import SORRY
from farm_workers.lean.outlined import Outline, Proof
from farm_workers.mending.texts import Draft

#: Spans (start, end) of a text.
Spans = Sequence[tuple[int, int]]
#: With less than this remaining no check begins.
_LEAST_SECONDS = 0.05


class BudgetSpent(Exception):
    """There is no time, or no check, left for another text."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """One change of a file: its kind, its line in the text of before, and the texts of before and after.

    `theorem` is the theorem in which it is, None for a change of the file as such.
    """

    what: str
    theorem: str | None
    line: int
    was: str
    now: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Mended:
    """The text that came of a file, and the verdicts before and after.

    `left` has a sentence for each thing that could not be done. With `cut_short` the budget was spent.
    """

    text: str
    before: Verdict
    after: Verdict
    changes: tuple[Change, ...] = ()
    left: tuple[str, ...] = ()
    cut_short: bool = False


class Trials:
    """Judges texts in one environment, and counts."""

    def __init__(
        self,
        checker: Checker,
        environment: LeanEnvironment,
        limits: Limits,
        *,
        seconds: float,
        most: int,
        show: Callable[[str], None] = lambda _: None,
        submitted: Spans | None = None,
        cancelled: box.Cancelled = box.never,
    ) -> None:
        """Begin to count; each text has the limits, and `show` is called with the progress.

        Once it is `cancelled` the budget is spent. Only proofs in the spans `submitted` of the first text may
        be changed, all of them if it is None.
        """
        self._checker, self._environment, self._limits = checker, environment, limits
        self._seconds, self._most, self._show = seconds, most, show
        self._began = time.monotonic()
        self._submitted, self._cancelled = submitted, cancelled
        self.checks = 0

    @property
    def seconds(self) -> float:
        """The seconds since the beginning."""
        return time.monotonic() - self._began

    def may_change(self, proof: Proof) -> bool:
        """Return whether a proof of the first text may be changed."""
        spans = self._submitted
        return spans is None or any(start < proof.end and proof.value < end for start, end in spans)

    def outline(self, text: str) -> Outline:
        """Return the outline of a text. Raises NoOutline."""
        return self._checker.outline(text, self._environment, limits=self._limits, cancelled=self._cancelled)

    def alone(self, text: str) -> tuple[Report, Verdict]:
        """Return the report and the verdict on a whole text, as `farm check` gives them; for no budget."""
        check = Check.of(program=text, limits=self._limits, assurance=self._assurance())
        return self._judged(check)

    def lean(self, text: str) -> Report:
        """Return Lean's report on a text, without a seal. Raises BudgetSpent."""
        return self._within(Check.of(program=text, limits=self._limits))[0]

    def line(self, draft: Draft, number: int, above: str, value: str) -> tuple[Report, Verdict]:
        """Return the report and the verdict on a theorem with a value, below a text. Raises BudgetSpent.

        The theorem must have the file's own statement. Lean reads the same text above it once.
        """
        statement = draft.statement(number)
        name = draft.proofs[number].name
        challenge = Challenge(program=f"{above}{statement}{SORRY}\n", name=name, context_end=len(above))
        check = self._against(f"{above}{statement}{value}\n", challenge)
        return self._within(replace(check, context_end=len(above), goals=True))

    def whole(
        self, text: str, challenge: Challenge, *, all_parts: bool = True, permits_sorry: bool = False
    ) -> tuple[Report, Verdict]:
        """Return the report and the verdict on a text that has to prove a challenge's last theorem.

        With `all_parts` it has to prove every theorem that this leaves open. The budget does not count: a
        result is judged at any time.
        """
        task = Task(permit_sorry=("*",)) if permits_sorry else Task()
        assurance = replace(self._assurance(), requires_all_parts=all_parts)
        return self._judged(replace(self._against(text, challenge), task=task, assurance=assurance))

    def proves(self, text: str, challenge: Challenge, target: str | None) -> bool:
        """Return whether a text proves a challenge by a theorem of this full name. Raises BudgetSpent."""
        report, verdict = self._within(self._against(text, challenge))
        return verdict.outcome is Outcome.PROVED and target_of(report) == target

    def _against(self, text: str, challenge: Challenge) -> Check:
        return Check.of(
            program=text,
            limits=self._limits,
            submitted=(),
            challenge=challenge,
            assurance=self._assurance(),
        )

    def _assurance(self) -> Assurance:
        return Assurance(tier=self._environment.tiers[0], policy=NO_POLICY)

    def _within(self, check: Check) -> tuple[Report, Verdict]:
        left = self._seconds - self.seconds
        if left < _LEAST_SECONDS or self.checks >= self._most or self._cancelled():
            raise BudgetSpent
        wall = min(check.limits.wall_seconds, left)
        return self._judged(replace(check, limits=replace(check.limits, wall_seconds=wall)))

    def _judged(self, check: Check) -> tuple[Report, Verdict]:
        self.checks += 1
        self._show(f"{self.checks} checks, {self.seconds:.0f} s")
        report = self._checker.check(check, self._environment, cancelled=self._cancelled)
        return report, judge(report)


def target_of(report: Report) -> str | None:
    """Return the full name of the theorem that a report is about, None if no module was audited."""
    return None if report.audit is None else report.audit.target


def offsets(text: str, messages: Sequence[Message]) -> list[tuple[int, Message]]:
    """Return messages with their offsets in a text; without those that have none."""
    places = Positions(text)
    found = ((places.offset(each.line, each.column), each) for each in messages)
    return [(at, each) for at, each in found if at is not None]
