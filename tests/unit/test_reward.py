"""What a verdict is worth to a trainer: the whole table, each row against a rule said another way."""

from __future__ import annotations

from itertools import chain, combinations, product

import pytest

from farm.judging.audit import ADMITTED, COMPARED, UNCHECKED, UNREBUILT
from farm.judging.reward import UNKNOWN, WEAKER, Worth, worth
from farm.judging.tiers import Tier
from farm.judging.verdict import Outcome
from farm.task import Kind

#: Outcomes that say nothing about an answer.
UNKNOWN_ENDS = (Outcome.JUDGE_ERROR, Outcome.STATED)
SOME_PROOF = (Outcome.PROVED, Outcome.DISPROVED, Outcome.PARTIAL)
STATEMENTS = (COMPARED, UNCHECKED, None)
TRUSTS = (
    *((), ("the compiler",), ("the compiler", "unsafe"), (ADMITTED,), ("the compiler", ADMITTED)),
    *((UNREBUILT,), (ADMITTED, UNREBUILT)),
)
#: Each level, and whether a proof could forge its verdicts.
ISOLATIONS = {
    "cgroup+bwrap": False,
    "bwrap": False,
    "none": False,
    "": False,
    "rlimit": True,
    "cgroup": True,
    "bwrapped": True,
}
#: All sets of up to three words, and all words.
ACCEPTS = (*chain.from_iterable(combinations(WEAKER, n) for n in range(4)), WEAKER)
#: Weaknesses that are no fault of the proof.
MACHINES = {"forgeable", "unrebuilt"}
FACTS = tuple(product(Tier, STATEMENTS, TRUSTS, ISOLATIONS))


def of(outcome: str, facts: tuple[str, str | None, tuple[str, ...], str], accept: tuple[str, ...]) -> Worth:
    tier, statement, trusts, isolation = facts
    return worth(outcome, tier=tier, statement=statement, trusts=trusts, isolation=isolation, accept=accept)


def lacks(tier: str, statement: str | None, trusts: tuple[str, ...], isolation: str) -> set[str]:
    """Return what a proof lacks, one rule a line."""
    found = set()
    if tier == "audit":
        found.add("audit")
    if tier == "lean":
        found.add("lean")
    if statement in ("unchecked", None):
        found.add("unchecked")
    if ADMITTED in trusts:
        found.add("sorry")
    if "the compiler" in trusts:
        found.add("native")
    if ISOLATIONS[isolation]:
        found.add("forgeable")
    if UNREBUILT in trusts:
        found.add("unrebuilt")
    return found


def test_a_proof_is_worth_1_exactly_where_all_that_it_lacks_is_accepted() -> None:
    for facts, accept in product(FACTS, ACCEPTS):
        found = of("proved", facts, accept)
        assert (found.reward == 1.0) == (lacks(*facts) <= set(accept)), (facts, accept)
        assert set(found.weaker) == lacks(*facts)
        assert len(set(found.weaker)) == len(found.weaker)


def test_a_proof_that_lacks_only_the_machine_s_walls_is_worth_nobody_knows_what() -> None:
    for facts, accept in product(FACTS, ACCEPTS):
        lacking = lacks(*facts) - set(accept)
        if lacking:
            assert of("proved", facts, accept).reward == (None if lacking <= MACHINES else 0.0)


@pytest.mark.parametrize("outcome", [each for each in Outcome if each not in (*SOME_PROOF, *UNKNOWN_ENDS)])
def test_no_proof_is_worth_0_whatever_is_accepted(outcome: str) -> None:
    assert {of(outcome, facts, accept) for facts, accept in product(FACTS, ACCEPTS)} == {Worth(reward=0.0)}


@pytest.mark.parametrize("asks", [Kind.PROVE, Kind.DISPROVE, Kind.EITHER])
def test_a_disproof_is_worth_a_proof_where_it_is_asked_for_and_else_where_it_is_accepted(asks: Kind) -> None:
    for facts, accept in product(FACTS, ACCEPTS):
        tier, statement, trusts, isolation = facts
        found = worth(
            "disproved",
            tier=tier,
            statement=statement,
            trusts=trusts,
            isolation=isolation,
            accept=accept,
            asks=asks,
        )
        weak = lacks(*facts) | (set() if asks is Kind.DISPROVE else {"disproof"})
        lacking = weak - set(accept)
        assert set(found.weaker) == weak
        assert found.reward == (1.0 if not lacking else None if lacking <= MACHINES else 0.0)


def test_a_partial_proof_is_worth_its_share_where_that_and_all_that_it_lacks_is_accepted() -> None:
    for facts, accept in product(FACTS, ACCEPTS):
        tier, statement, trusts, isolation = facts
        found = worth(
            "partial",
            tier=tier,
            statement=statement,
            trusts=trusts,
            isolation=isolation,
            accept=accept,
            share=0.25,
        )
        lacking = (lacks(*facts) | {"partial"}) - set(accept)
        assert found.reward == (0.25 if not lacking else None if lacking <= MACHINES else 0.0)
        assert set(found.weaker) == lacks(*facts) | {"partial"}


def test_what_the_farm_could_not_judge_is_worth_nobody_knows_what() -> None:
    every = product(UNKNOWN_ENDS, FACTS, ACCEPTS)
    found = {of(outcome, facts, accept) for outcome, facts, accept in every}
    assert found == {UNKNOWN}


@pytest.mark.parametrize("outcome", ["", "skipped", "PROVED", "judge_error "])
def test_an_outcome_of_another_release_is_worth_nobody_knows_what(outcome: str) -> None:
    assert of(outcome, ("kernel", COMPARED, (), "bwrap"), ()) == UNKNOWN


def test_every_outcome_has_its_row() -> None:
    assert {of(outcome, FACTS[0], WEAKER).reward for outcome in Outcome} == {1.0, 0.0, None}
