"""Statement step, for `farm dataset --check`: checks a benchmark's statements, and names the wrong ones."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from types import MappingProxyType

from farm.assembly.faults import StatementFault
from farm.assembly.kinds import assembling
from farm.datasets.problem import Problem
from farm.errors import UsageError
from farm.judging.assurance import Assurance
from farm.judging.job import Check
from farm.judging.report import Report
from farm.judging.tiers import Tier
from farm.judging.verdict import Outcome, Reason, Verdict, judge
from farm.kinds import Kind
from farm.lean_text.policy.rules import RULES, Action
from farm.lean_text.policy.screen import Policy
from farm.limits import Limits
from farm_workers.checking.judge import Judge
from farm_workers.checking.systems import Judges
from farm_workers.environments.environment import Environment

#: The limits of a statement: ample, since a slow statement is not wrong, and the first one loads the header.
_LIMITS = Limits(wall_seconds=300.0, cpu_seconds=600.0, memory_mib=Limits().memory_mib)
#: The policy restricts submissions, not datasets.
_NO_POLICY = Policy(actions=dict.fromkeys(RULES, Action.OFF))


@dataclass(frozen=True, kw_only=True, slots=True)
class Tried:
    """The result for one statement: `wrong` is its fault, "" for a sound one, None if it was not judged."""

    problem: Problem
    reason: str
    wrong: str | None
    detail: str = ""

    @property
    def is_wrong(self) -> bool:
        """Whether the statement has a fault, so that its proofs cannot be accepted."""
        return bool(self.wrong)

    @property
    def is_unjudged(self) -> bool:
        """Whether the judge failed to judge the statement."""
        return self.wrong is None

    def cells(self) -> tuple[str, str, str, str]:
        """Return the cells of a table's row: name, split, reason, first line of the error."""
        said = (self.wrong or self.detail).partition("\n")[0]
        return self.problem.name, self.problem.split, self.reason, said

    def facts(self) -> dict[str, object]:
        """Return the result as a JSON object for scripts."""
        return {
            "name": self.problem.name,
            "split": self.problem.split,
            "place": str(self.problem.place),
            "reason": self.reason,
            "detail": self.wrong or self.detail,
        }


def require_kind(environment: Environment, system: str) -> None:
    """Raise UsageError if an environment has another proof system than a benchmark."""
    if environment.kind != system:
        raise UsageError(
            f"--check: {environment.name!r} is an environment of {environment.kind.system}, and the "
            f"statements are of {Kind(system).system}; name one of that with --environment"
        )


def tried(
    problems: Iterable[Problem],
    judges: Judges | Judge,
    environment: Environment,
    *,
    at_once: int,
    done: Callable[[], None],
) -> Iterator[Tried]:
    """Yield the result of each statement, in their order, and call `done` after each.

    A caller that closes the iterator early waits for no check: the running checks are cancelled.
    """
    left = threading.Event()

    def ask(problem: Problem) -> Tried:
        return _tried(problem, judges, environment, left.is_set)

    pool = ThreadPoolExecutor(at_once)
    try:
        for each in pool.map(ask, problems):
            done()
            yield each
    finally:
        left.set()
        pool.shutdown(cancel_futures=True)


def _tried(
    problem: Problem, judges: Judges | Judge, environment: Environment, cancelled: Callable[[], bool]
) -> Tried:
    """Return the judge's result for a problem's challenge, submitted as its own proof."""
    system = assembling(environment.kind)
    try:
        challenge = system.challenge(problem.header, problem.context or "", problem.statement)
    except StatementFault as fault:
        return Tried(problem=problem, reason=Reason.BAD_CHALLENGE, wrong=f"{fault}; {fault.remedy}")
    if challenge is None or not challenge.name:
        return Tried(problem=problem, reason=Reason.BAD_CHALLENGE, wrong="it states no theorem with a name")
    # Lean's errors alone show the faults of a statement, so its module is not sealed.
    tier = Tier.LEAN if environment.kind is Kind.LEAN else environment.tiers[0]
    check = Check(
        program=system.unproved(challenge),
        limits=_LIMITS,
        challenge=challenge,
        assurance=Assurance(tier=tier, policy=_NO_POLICY),
        submitted=(),
        context_end=challenge.context_end,
    )
    answer = judges.check(check, environment, cancelled=cancelled)
    report = answer.result() if isinstance(answer, Future) else answer
    verdict = judge(report)
    is_unknown = verdict.outcome is Outcome.JUDGE_ERROR and verdict.reason is not Reason.BAD_CHALLENGE
    wrong = None if is_unknown else _WRONG[environment.kind](report, verdict)
    return Tried(problem=problem, reason=verdict.reason, wrong=wrong, detail=verdict.detail)


def _wrong_in_lean(report: Report, verdict: Verdict) -> str:
    """Return the fault of a statement of Lean, "" if Lean reports nothing but the ``sorry`` in it."""
    if verdict.reason is Reason.HAS_SORRY:
        return ""
    error = report.answer.first_error
    return report.challenge_error or (verdict.detail if error is None else error.text)


def _wrong_in_metamath(report: Report, verdict: Verdict) -> str:
    """Return the fault of a statement of Metamath, "" if its only fault is the incomplete proof."""
    return "" if verdict.reason is Reason.HAS_SORRY else report.challenge_error or verdict.detail


def _wrong_in_hol_light(report: Report, verdict: Verdict) -> str:
    """Return the fault of a term of HOL Light, "" if HOL Light reads it and reaches the end of its proof."""
    is_read = verdict.reason in {Reason.OK, Reason.ERROR} and report.answer.reached_end
    return "" if is_read else report.challenge_error or verdict.detail


#: For each proof system, the function that returns the fault of a statement, "" for none.
_WRONG: Mapping[Kind, Callable[[Report, Verdict], str]] = MappingProxyType(
    {Kind.LEAN: _wrong_in_lean, Kind.METAMATH: _wrong_in_metamath, Kind.HOL_LIGHT: _wrong_in_hol_light}
)
