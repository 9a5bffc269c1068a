"""Statement step, for `farm dataset --check`: checks a benchmark's statements, and names the wrong ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass

from farm.assembly.faults import StatementFault
from farm.datasets.problem import Problem
from farm.errors import UsageError
from farm.judging.assurance import Assurance
from farm.judging.job import Check
from farm.judging.verdict import Outcome, Reason, judge
from farm.lean_text.policy.screen import NO_POLICY
from farm.limits import Limits
from farm.systems import known
from farm_workers.checking.side_by_side import side_by_side
from farm_workers.environments.environment import Environment
from farm_workers.machine.judges import Judges
from farm_workers.systems.known import system
from farm_workers.systems.system import Judge

#: The limits of a statement: ample, since a slow statement is not wrong, and the first one loads the header.
LIMITS = Limits(wall_seconds=300.0, cpu_seconds=600.0, memory_mib=Limits().memory_mib)


@dataclass(frozen=True, kw_only=True, slots=True)
class TriedStatement:
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


def require_kind(environment: Environment, wanted: str) -> None:
    """Raise UsageError if an environment has another proof system than a benchmark."""
    if environment.kind != wanted:
        there, here = known.system(environment.kind).name, known.system(wanted).name
        raise UsageError(
            f"--check: {environment.name!r} is an environment of {there}, and the statements are of {here}; "
            "name one of that with --environment"
        )


def tried(
    problems: Iterable[Problem],
    judges: Judges | Judge,
    environment: Environment,
    *,
    at_once: int,
    done: Callable[[], None],
) -> Iterator[TriedStatement]:
    """Yield the result of each statement, in their order, and call `done` after each.

    A caller that closes the iterator early waits for no check: the running checks are cancelled.
    """
    with side_by_side(at_once) as (pool, cancelled):

        def ask(problem: Problem) -> TriedStatement:
            return _tried(problem, judges, environment, cancelled)

        for each in pool.map(ask, problems):
            done()
            yield each


def _tried(
    problem: Problem, judges: Judges | Judge, environment: Environment, cancelled: Callable[[], bool]
) -> TriedStatement:
    """Return the judge's result for a problem's challenge, submitted as its own proof."""
    lines = known.system(environment.kind)
    try:
        challenge = lines.challenge(problem.header, problem.context or "", problem.statement)
    except StatementFault as fault:
        return TriedStatement(problem=problem, reason=Reason.BAD_CHALLENGE, wrong=f"{fault}; {fault.remedy}")
    if challenge is None or not challenge.name:
        return TriedStatement(
            problem=problem, reason=Reason.BAD_CHALLENGE, wrong="it states no theorem with a name"
        )
    # The errors of the prover alone show the faults of a statement, so the weakest tier is enough.
    tier = environment.tiers[-1]
    check = Check.of(
        program=lines.unproved(challenge),
        limits=LIMITS,
        challenge=challenge,
        assurance=Assurance(tier=tier, policy=NO_POLICY),
        submitted=(),
        context_end=challenge.context_end,
    )
    answer = judges.check(check, environment, cancelled=cancelled)
    report = answer.result() if isinstance(answer, Future) else answer
    verdict = judge(report)
    is_unknown = verdict.outcome is Outcome.JUDGE_ERROR and verdict.reason is not Reason.BAD_CHALLENGE
    wrong = None if is_unknown else system(environment.kind).fault(report, verdict)
    return TriedStatement(problem=problem, reason=verdict.reason, wrong=wrong, detail=verdict.detail)
