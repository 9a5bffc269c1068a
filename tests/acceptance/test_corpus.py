"""The corpus: every trick, and every honest program that looks like one, is judged once on each tier.

What is proved decides, not the words of a text. Other tests that need tricks take one of each class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

import pytest
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.exploits.corpus import Case, TriedExploit, judged, one_of_each, read

from farm.judging.tiers import Tier

CASES = list(read())
FIRST = one_of_each(CASES)
#: The other cases, by class.
OTHERS = {
    first.class_name: [each for each in CASES if each.class_name == first.class_name and each != first]
    for first in FIRST
}
Wrong = Callable[[Iterable[Case]], list[str]]


def tiers(case: Case) -> list[Tier]:
    """Return the tiers on which a case has a right verdict: some are for those that read the module."""
    return [tier for tier in Tier if tier is not Tier.LEAN or not case.kind or not case.statement]


def is_expected(found: TriedExploit) -> bool:
    """Whether a case got a right reason, and an honest one a statement that was compared where it can be."""
    compared = "unchecked" if found.tier == Tier.LEAN else "compared"
    is_plain = found.case.is_honest and not found.case.kind
    has_statement = not is_plain or found.report.statement == compared
    return found.verdict.reason in found.case.reasons(found.tier) and found.is_right and has_statement


@pytest.fixture(scope="module")
def wrong(checker: Checker, core: LeanEnvironment) -> Wrong:
    """How to have two threads judge cases on all their tiers, and what came out wrong."""

    def wrong(cases: Iterable[Case]) -> list[str]:
        with ThreadPoolExecutor(2) as threads:
            asked = [(case, tier) for case in cases for tier in tiers(case)]
            rows = threads.map(lambda row: judged(checker, core, *row), asked)
            return [
                f"{each.case.name} ({each.tier}): {each.verdict}" for each in rows if not is_expected(each)
            ]

    return wrong


@pytest.mark.newcomer
@pytest.mark.timeout(600)  # the kernel takes its time until it finds a number too large
def test_the_first_case_of_every_class_is_judged_by_what_it_proves(wrong: Wrong) -> None:
    assert wrong(FIRST) == []


@pytest.mark.parametrize("name", [name for name, cases in OTHERS.items() if cases])
def test_the_other_cases_of_a_class_are_judged_by_what_they_prove(wrong: Wrong, name: str) -> None:
    assert wrong(OTHERS[name]) == []


def test_every_class_has_a_case_and_no_name_stands_for_two() -> None:
    assert len({case.name for case in CASES}) == len(CASES)
    assert {case.class_name for case in FIRST} == {case.class_name for case in CASES}


def test_no_trick_of_the_corpus_deceives_the_kernel() -> None:
    assert [case.name for case in CASES if case.kernel == "ok" and not case.is_honest] == []
