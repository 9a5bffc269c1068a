"""Systems step: the record of Metamath."""

from __future__ import annotations

from farm.judging.report import Report
from farm.judging.verdict import Reason, Verdict
from farm_workers.systems.metamath.environment import environment
from farm_workers.systems.metamath.judge import MetamathJudge
from farm_workers.systems.system import System


def fault(report: Report, verdict: Verdict) -> str:
    """Return the fault of a statement, "" if its only fault is the incomplete proof."""
    return "" if verdict.reason is Reason.HAS_SORRY else report.challenge_error or verdict.detail


METAMATH = System(environment=environment, judge=MetamathJudge, fault=fault)
