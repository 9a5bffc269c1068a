"""Reports of checks, for tests: each fact is named, wherever a report has it."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from farm.judging.audit import COMPARED, Audit, Replay
from farm.judging.report import Answer, Execution, Report

#: What an audit and the kernel say of a sound proof of a line's statement.
SEALED = Audit(
    accepted=True,
    axioms=("propext",),
    statement=COMPARED,
    module_sha256="a" * 64,
    sealed_sha256="b" * 64,
    replay=Replay(accepted=True, constants=1),
)
CLEAN = Report(
    run=Execution(exit_status=0, wall_seconds=0.5, cpu_seconds=0.4, peak_memory_kib=2048, isolation="rlimit"),
    answer=Answer(reached_end=True),
    way="forked",
    audit=SEALED,
)


def with_facts(report: Report, **facts: Any) -> Report:
    """Return a report with other facts of its run, of its answer, or of its own."""
    run = {each.name: facts.pop(each.name) for each in fields(Execution) if each.name in facts}
    answer = {each.name: facts.pop(each.name) for each in fields(Answer) if each.name in facts}
    return replace(report, run=replace(report.run, **run), answer=replace(report.answer, **answer), **facts)


def audited(report: Report) -> Audit:
    """Return the audit of a report that has one."""
    assert report.audit is not None, report
    return report.audit
