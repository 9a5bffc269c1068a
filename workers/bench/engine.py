"""Bench step: the farm's engine, as one contender among those that are bare."""

from __future__ import annotations

from dataclasses import replace

from farm.errors import FarmError
from farm.job import Check, Limits
from farm.verdict import Outcome, Reason, judge
from workers.bench.programs import Program, Worth
from workers.bench.turns import Ask
from workers.checker import Checker
from workers.environments import LeanEnvironment

_WORTH = {
    Reason.OK: Worth.PROVED,
    Reason.ERROR: Worth.ERROR,
    Reason.HAS_SORRY: Worth.SORRY,
    Reason.WALL_LIMIT: Worth.TIMEOUT,
}


def asked(checker: Checker, environment: LeanEnvironment, way: str, limits: Limits | None = None) -> Ask:
    """Return what checks and judges one program, in one of the ways to run Lean.

    It raises FarmError when the program was checked in another way than asked, or could not be judged: then
    the figures would be of something else.
    """
    usual = limits or Limits()

    def check(program: Program) -> Worth:
        mine = usual
        if program.wall_seconds is not None:
            mine = replace(usual, wall_seconds=program.wall_seconds)
        report = checker.check(Check(program=program.text, limits=mine), environment, way=way)
        verdict = judge(report)
        if report.way != way or verdict.outcome is Outcome.JUDGE_ERROR or verdict.reason not in _WORTH:
            raise FarmError(
                f"the bench's program was checked {report.way}, not {way}, and judged "
                f"{verdict.reason}: {verdict.detail}\n{program.text}"
            )
        return _WORTH[verdict.reason]

    return check
