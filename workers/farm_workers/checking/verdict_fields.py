"""Checking step, fields: the verdict on a line that was judged on this machine, as fields of that line."""

from __future__ import annotations

from farm.judging.audit import UNREBUILT
from farm.judging.forgeable import is_forgeable
from farm.judging.report import Report
from farm.judging.verdict import judge
from farm.version import farm_version
from farm_workers.environments.lean_environment import LeanEnvironment


def verdict_fields(report: Report, environment: LeanEnvironment, isolation: str) -> dict[str, object]:
    """Return `proof_status` and `farm`: of an export's facts those that need no store and no run."""
    audit, verdict = report.audit, judge(report)
    return {
        "proof_status": verdict.proof_status,
        "farm": {
            "verdict": verdict.outcome,
            "reason": verdict.reason,
            "detail": verdict.detail,
            "tier": report.tier,
            "trusts": list(report.trusts),
            "axioms": [] if audit is None else list(audit.axioms),
            "sealed_sha256": None if audit is None else audit.sealed_sha256,
            "environment": environment.name,
            "environment_digest": environment.digest,
            "isolation": isolation,
            "forgeable": is_forgeable(isolation),
            "unrebuilt": UNREBUILT in report.trusts,
            "farm_version": farm_version(),
        },
    }
