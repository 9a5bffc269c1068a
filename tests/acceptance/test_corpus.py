"""Tricks by class, and honest programs that look like them: judged by what they prove, not by their words."""

from __future__ import annotations

import pytest
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.exploits.corpus import Case, judged, one_of_each, read

from farm.judging.tiers import Tier


@pytest.mark.timeout(600)  # the kernel takes its time until it finds a number too large
@pytest.mark.parametrize("tier", [Tier.KERNEL, Tier.AUDIT])
@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in read() if case.kind])
def test_a_program_is_judged_by_what_it_proves(
    checker: Checker, core: LeanEnvironment, case: Case, tier: str
) -> None:
    found = judged(checker, core, case, tier)
    assert found.verdict.reason in case.reasons(tier), found.verdict.detail
    assert found.is_right


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case.name) for case in read() if case.kind and not case.statement]
)
def test_the_tier_lean_judges_programs_without_a_statement_by_the_policy(
    checker: Checker, core: LeanEnvironment, case: Case
) -> None:
    found = judged(checker, core, case, Tier.LEAN)
    assert found.verdict.reason in case.reasons(Tier.LEAN), found.verdict.detail


def test_every_class_has_a_case_and_no_name_stands_for_two() -> None:
    found = list(read())
    assert len({case.name for case in found}) == len(found)
    assert {case.class_name for case in one_of_each(found)} == {case.class_name for case in found}
