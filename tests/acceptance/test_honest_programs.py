"""Honest programs of many shapes: all are proved, as answers, as programs and in their parts."""

from __future__ import annotations

import pytest
from farm_workers.checking.asked import check_of
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import LeanEnvironment

from farm.judging.assurance import Assurance
from farm.judging.report import Report
from farm.judging.tiers import Tier
from farm.judging.verdict import Outcome, judge
from farm.limits import Limits
from farm.manifest.entry import Entry
from farm.task import Task
from tests.honest import Honest, honest

#: The seed and the number of programs; the thousand are for the nightly run.
MANY = pytest.mark.parametrize(
    ("seed", "count"), [(1, 15), pytest.param(2, 1000, marks=[pytest.mark.long, pytest.mark.timeout(7200)])]
)


def asked(checker: Checker, core: LeanEnvironment, made: Honest, **answer: str) -> Report:
    fields = {"generation": "", "predicted_proof": "", **answer}
    entry = Entry(
        path="",
        line=1,
        name=made.name,
        header=made.header,
        formal_statement=made.statement,
        generation=fields["generation"],
        predicted_proof=fields["predicted_proof"],
        task=Task(declarations=True),
    )
    check = check_of(entry, Limits(wall_seconds=120.0), Assurance(tier=Tier.KERNEL))
    return checker.check(check, core)


@MANY
def test_each_is_proved_as_an_answer_as_a_program_and_in_its_part(
    checker: Checker, core: LeanEnvironment, seed: int, count: int
) -> None:
    refused = []
    for made in honest(seed, count):
        for answer in ({"generation": made.answer}, {"predicted_proof": made.program}):
            report = asked(checker, core, made, **answer)
            verdict = judge(report)
            parts = [each.verdict for each in (report.audit and report.audit.parts) or ()]
            if (verdict.outcome, parts) != (Outcome.PROVED, ["proved"]):
                refused.append((made.statement, answer, verdict, parts))
    assert refused == []
