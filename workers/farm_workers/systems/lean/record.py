"""Systems step: the record of Lean."""

from __future__ import annotations

from pathlib import Path

from farm.judging.report import Report
from farm.judging.verdict import Reason, Verdict
from farm.settings import Settings
from farm_workers.box.isolation import Isolation
from farm_workers.environments.configured import Table
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.systems.lean.judge import LeanJudge, checker
from farm_workers.systems.system import System


def environment(name: str, table: object, home: Path) -> LeanEnvironment:
    """Return the environment of a table; raises SettingsError that names the key and the remedy."""
    return Table(name, table).environment(home)


def judge(isolation: Isolation, settings: Settings, concurrency: int) -> LeanJudge:
    """Return a judge with a checker of its own."""
    return LeanJudge(checker(isolation, settings, concurrency))


def fault(report: Report, verdict: Verdict) -> str:
    """Return the fault of a statement, "" if Lean reports nothing but the ``sorry`` in it."""
    if verdict.reason is Reason.HAS_SORRY:
        return ""
    return report.challenge_error or verdict.detail


LEAN = System(environment=environment, judge=judge, fault=fault)
