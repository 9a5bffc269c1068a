"""Systems step, canaries: judges checks of known verdict before a worker serves an environment."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future
from dataclasses import dataclass

from farm.errors import FarmError
from farm.judging.job import Check
from farm.judging.verdict import Reason, judge
from farm_workers.environments.environment import Environment
from farm_workers.metrics import events
from farm_workers.systems.system import Judge


@dataclass(frozen=True, kw_only=True, slots=True)
class Canary:
    """A check, and the reason that its verdict must have."""

    name: str
    check: Check
    expected: Reason


def wrong(canaries: Iterable[Canary], judges: Judge, environment: Environment) -> tuple[str, ...]:
    """Return a sentence for each canary with a wrong verdict."""
    answers = [(canary, judges.check(canary.check, environment)) for canary in canaries]
    found = []
    for canary, answer in answers:
        verdict = judge(answer.result() if isinstance(answer, Future) else answer)
        is_right = verdict.reason is canary.expected
        events.canary_judged(environment.name, passed=is_right)
        if not is_right:
            found.append(f"{canary.name} came out as {verdict.reason}: {verdict.detail}")
    return tuple(found)


def require_none(sentences: Iterable[str], environment: Environment) -> None:
    """Raise FarmError if there is a sentence about a wrong verdict in an environment."""
    if found := "; ".join(sentences):
        raise FarmError(
            f"environment {environment.name!r} ({environment.toolchain}) is not fit to judge: {found}"
        )
