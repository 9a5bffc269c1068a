"""Tricks by class, and honest programs that look like them: judged by what they prove, not by their words."""

from __future__ import annotations

from typing import Any

import pytest

from farm.assurance import GOLD, STRICT
from workers.checker import Checker
from workers.environments import LeanEnvironment
from workers.exploits.corpus import Case, judged, one_of_each, read

#: Never proved, but called by another name until every check has a cell and a seal of its own.
MISCALLED = {
    "a term too deep for the kernel": [GOLD],
    "a reduction too long for the kernel": [GOLD],
    "an error that native code takes back": [STRICT, GOLD],
    "a program that kills its own Lean": [STRICT, GOLD],
}


def cases() -> list[Any]:
    return [
        pytest.param(case, tier, id=f"{case.name}-{tier}", marks=_marks(case, tier))
        for case in read()
        for tier in (STRICT, GOLD)
        if case.is_class
    ]


def _marks(case: Case, tier: str) -> list[Any]:
    waits = tier in MISCALLED.get(case.name, ())
    return [pytest.mark.xfail(reason="waits for the seal", strict=True)] if waits else []


@pytest.mark.timeout(400)  # the kernel takes its time until it finds a number too large
@pytest.mark.parametrize(("case", "tier"), cases())
def test_a_program_is_judged_by_what_it_proves(
    checker: Checker, core: LeanEnvironment, case: Case, tier: str
) -> None:
    found = judged(checker, core, case, tier)
    assert found.verdict.reason in case.reasons(tier), found.verdict.detail
    assert found.is_right


def test_every_class_has_a_case_and_no_name_stands_for_two() -> None:
    found = list(read())
    assert len({case.name for case in found}) == len(found)
    assert {case.class_name for case in one_of_each(found)} == {case.class_name for case in found}
