"""Statement step: has the statements of a benchmark checked without a proof, and says which are wrong."""

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

#: What a statement may take: a slow one is slow, not wrong, and so is the first to read its header.
_LIMITS = Limits(wall_seconds=300.0, cpu_seconds=600.0, memory_mib=Limits().memory_mib)
#: A dataset may say what an answer may not.
_NO_POLICY = Policy(actions=dict.fromkeys(RULES, Action.OFF))


@dataclass(frozen=True, kw_only=True, slots=True)
class Tried:
    """What came of one statement: `wrong` is why it is wrong, "" for a sound one, None where nobody knows."""

    problem: Problem
    reason: str
    wrong: str | None
    detail: str = ""

    @property
    def is_wrong(self) -> bool:
        """Whether the statement cannot be what is to be proved."""
        return bool(self.wrong)

    @property
    def is_unjudged(self) -> bool:
        """Whether the statement could not be tried."""
        return self.wrong is None

    def cells(self) -> tuple[str, str, str, str]:
        """Return it for a row of a table: name, split, reason, first error."""
        said = (self.wrong or self.detail).partition("\n")[0]
        return self.problem.name, self.problem.split, self.reason, said

    def facts(self) -> dict[str, object]:
        """Return it for scripts."""
        return {
            "name": self.problem.name,
            "split": self.problem.split,
            "place": str(self.problem.place),
            "reason": self.reason,
            "detail": self.wrong or self.detail,
        }


def require_kind(environment: Environment, system: str) -> None:
    """Raise UsageError where an environment is not one of a benchmark's proof system."""
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
    """Yield what comes of each statement, in their order; `done` is called after each.

    Whoever stops asking waits for no check: those that run are cancelled.
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
    """Return what the judge says of a problem's challenge, handed in as if it were the answer."""
    system = assembling(environment.kind)
    try:
        challenge = system.challenge(problem.header, problem.context or "", problem.statement)
    except StatementFault as fault:
        return Tried(problem=problem, reason=Reason.BAD_CHALLENGE, wrong=f"{fault}; {fault.remedy}")
    if challenge is None or not challenge.name:
        return Tried(problem=problem, reason=Reason.BAD_CHALLENGE, wrong="it states no theorem with a name")
    # Lean says by itself what is wrong with a statement; nothing of it is to be sealed.
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
    """Return what is wrong with a statement of Lean: with a ``sorry`` for its proof, nothing else may be."""
    if verdict.reason is Reason.HAS_SORRY:
        return ""
    error = report.answer.first_error
    return report.challenge_error or (verdict.detail if error is None else error.text)


def _wrong_in_metamath(report: Report, verdict: Verdict) -> str:
    """Return what is wrong with a statement of Metamath: it is incomplete, as it was handed in."""
    return "" if verdict.reason is Reason.HAS_SORRY else report.challenge_error or verdict.detail


def _wrong_in_hol_light(report: Report, verdict: Verdict) -> str:
    """Return what is wrong with a term of HOL Light, whose proof comes to an end and leaves it open."""
    is_read = verdict.reason in {Reason.OK, Reason.ERROR} and report.answer.reached_end
    return "" if is_read else report.challenge_error or verdict.detail


#: What is wrong with a statement of each proof system, "" for nothing.
_WRONG: Mapping[Kind, Callable[[Report, Verdict], str]] = MappingProxyType(
    {Kind.LEAN: _wrong_in_lean, Kind.METAMATH: _wrong_in_metamath, Kind.HOL_LIGHT: _wrong_in_hol_light}
)
