"""Statement step: has the statements of a benchmark compiled without a proof, and says which are wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import MappingProxyType

from farm.assembly.challenge import challenge_to
from farm.datasets.problem import Problem
from farm.judging.assurance import Assurance
from farm.judging.job import Check
from farm.judging.report import Report
from farm.judging.tiers import Tier
from farm.judging.verdict import Outcome, Reason, Verdict, judge
from farm.limits import Limits
from farm_workers.checking.machine import Machine
from farm_workers.environments.lean_environment import LeanEnvironment

#: What a statement may take: a slow one is slow, not wrong, and so is the first to read its header.
_LIMITS = Limits(wall_seconds=300.0, cpu_seconds=600.0, memory_mib=Limits().memory_mib)


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


def tried(
    problems: Iterable[Problem],
    ask: Callable[[Problem], Tried],
    *,
    at_once: int,
    done: Callable[[], None],
) -> Iterator[Tried]:
    """Yield what comes of each statement, in their order; `done` is called after each."""
    with ThreadPoolExecutor(at_once) as pool:
        for each in pool.map(ask, problems):
            done()
            yield each


def _of_lean(machine: Machine, environment: LeanEnvironment, problem: Problem) -> Tried:
    """Return what Lean says of a statement: with a ``sorry`` for its proof nothing else may be wrong."""
    challenge = challenge_to(problem.context or problem.header, problem.statement)
    if challenge is None or not challenge.name:
        return Tried(problem=problem, reason="no_theorem", wrong="it declares no theorem")
    check = Check(
        program=challenge.program, limits=_LIMITS, challenge=challenge, assurance=Assurance(tier=Tier.LEAN)
    )
    report = machine.checker.check(check, environment)
    verdict = judge(report)
    return Tried(problem=problem, reason=verdict.reason, wrong=_wrong(report, verdict), detail=verdict.detail)


def _wrong(report: Report, verdict: Verdict) -> str | None:
    if verdict.reason is Reason.HAS_SORRY:
        return ""
    if verdict.outcome is Outcome.JUDGE_ERROR:
        return None
    error = report.answer.first_error
    return verdict.detail if error is None else error.text


#: How the statements of each proof system are tried.
TRIED: Mapping[str, Callable[[Machine, LeanEnvironment, Problem], Tried]] = MappingProxyType(
    {"lean": _of_lean}
)
