"""Systems step: the record of HOL Light."""

from __future__ import annotations

from farm.judging.report import Report
from farm.judging.verdict import Reason, Verdict
from farm.settings import Settings
from farm_workers.box.isolation import Isolation
from farm_workers.systems.hol_light.environment import environment
from farm_workers.systems.hol_light.judge import HolLightJudge
from farm_workers.systems.system import System


def judge(isolation: Isolation, _settings: Settings, _concurrency: int) -> HolLightJudge:
    """Return a judge that forks one image for each environment."""
    return HolLightJudge(isolation)


def fault(report: Report, verdict: Verdict) -> str:
    """Return the fault of a term, "" if HOL Light reads it and reaches the end of its proof."""
    is_read = verdict.reason in {Reason.OK, Reason.ERROR} and report.answer.reached_end
    return "" if is_read else report.challenge_error or verdict.detail


HOL_LIGHT = System(environment=environment, judge=judge, fault=fault)
