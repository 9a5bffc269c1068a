"""Checking step, for sessions: asks the judge whether any proof of a statement or program may be accepted."""

from __future__ import annotations

from dataclasses import replace

from farm.judging.assurance import Assurance
from farm.judging.job import Check
from farm.judging.report import Report
from farm.judging.tiers import Tier
from farm.judging.verdict import Reason, judge
from farm.limits import Limits
from farm.manifest.entry import Entry
from farm_workers.checking.asked import check_of

#: Ample: what is slow may still be proved. A statement that reaches them is not said to be unprovable.
_LIMITS = Limits(wall_seconds=30.0, cpu_seconds=30.0, memory_mib=Limits().memory_mib)
_NO_THEOREM = "no_theorem"


def question(entry: Entry) -> Check:
    """Return the check of a line whose proof is a sorry, which has the module audited all the same."""
    asked = replace(entry, task=replace(entry.task, declarations=True))
    return check_of(asked, _LIMITS, Assurance(tier=Tier.AUDIT))


def why(report: Report) -> str | None:
    """Return why no proof can be accepted, with a remedy; None where one may be, or nobody knows."""
    verdict, audit = judge(report), report.audit
    if verdict.reason is Reason.BAD_CHALLENGE:
        finding = None if audit is None else audit.of_challenge
        is_nameless = finding is not None and finding.name is None
        return verdict.detail + " Write a theorem with a name: `theorem NAME : ... := by`." * is_nameless
    nothing = None if audit is None else audit.first(_NO_THEOREM)
    return None if nothing is None else f"{nothing.sentence} Write one: `theorem NAME : ... := by sorry`."
