"""What a verdict is worth to a trainer: a table of it, and any facts against rules said another way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
#: Weaknesses that are no fault of the proof.
MACHINES = {"forgeable", "unrebuilt"}
#: What an outcome lacks by itself where it was not asked for.
OWN_WEAKNESS = {
    **{(Outcome.PARTIAL, asks): {"partial"} for asks in Kind},
    **{(Outcome.DISPROVED, asks): {"disproof"} for asks in (Kind.PROVE, Kind.EITHER)},
}


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


@given(
    outcome=st.sampled_from(Outcome),
    facts=st.tuples(*map(st.sampled_from, ([*Tier], STATEMENTS, TRUSTS, [*ISOLATIONS]))),
    accept=st.sets(st.sampled_from(WEAKER)).map(tuple),
    asks=st.sampled_from([Kind.PROVE, Kind.DISPROVE, Kind.EITHER]),
)
def test_an_answer_is_worth_what_its_outcome_is_where_all_that_it_lacks_is_accepted(
    outcome: Outcome,
    facts: tuple[str, str | None, tuple[str, ...], str],
    accept: tuple[str, ...],
    asks: Kind,
) -> None:
    tier, statement, trusts, isolation = facts
    found = worth(
        outcome,
        tier=tier,
        statement=statement,
        trusts=trusts,
        isolation=isolation,
        accept=accept,
        asks=asks,
        share=0.25,
    )
    if outcome in UNKNOWN_ENDS:
        assert found == UNKNOWN
    elif outcome not in SOME_PROOF:
        assert found == Worth(reward=0.0)
    else:
        lacking = lacks(*facts) | OWN_WEAKNESS.get((outcome, asks), set())
        assert sorted(found.weaker) == sorted(lacking)
        rest = lacking - set(accept)
        whole = 0.25 if outcome is Outcome.PARTIAL else 1.0
        assert found.reward == (whole if not rest else None if rest <= MACHINES else 0.0)


@pytest.mark.parametrize(
    ("lacking", "accept", "reward"),
    [
        (("kernel", COMPARED, (), "bwrap"), (), 1.0),
        (("audit", COMPARED, (), "bwrap"), (), 0.0),
        (("audit", COMPARED, (), "bwrap"), ("audit",), 1.0),
        (("lean", COMPARED, (), "bwrap"), ("audit",), 0.0),
        (("lean", COMPARED, (), "bwrap"), ("lean",), 1.0),
        (("kernel", UNCHECKED, (), "bwrap"), (), 0.0),
        (("kernel", None, (), "bwrap"), ("unchecked",), 1.0),
        (("kernel", COMPARED, (ADMITTED,), "bwrap"), (), 0.0),
        (("kernel", COMPARED, (ADMITTED,), "bwrap"), ("sorry",), 1.0),
        (("kernel", COMPARED, ("the compiler", ADMITTED), "bwrap"), ("sorry",), 0.0),
        (("kernel", COMPARED, ("the compiler",), "bwrap"), ("native",), 1.0),
        (("kernel", COMPARED, (), "rlimit"), (), None),
        (("kernel", COMPARED, (), "rlimit"), ("forgeable",), 1.0),
        (("kernel", COMPARED, (UNREBUILT,), "bwrap"), (), None),
        (("kernel", COMPARED, (UNREBUILT,), "bwrap"), ("unrebuilt",), 1.0),
        (("kernel", COMPARED, (ADMITTED, UNREBUILT), "rlimit"), ("forgeable",), 0.0),
        (("lean", None, TRUSTS[-1], "cgroup"), WEAKER, 1.0),
    ],
)
def test_a_proof_is_worth_1_where_all_that_it_lacks_is_accepted(
    lacking: tuple[str, str | None, tuple[str, ...], str], accept: tuple[str, ...], reward: float | None
) -> None:
    assert of("proved", lacking, accept).reward == reward


@pytest.mark.parametrize("outcome", ["", "skipped", "PROVED", "judge_error "])
def test_an_outcome_of_another_release_is_worth_nobody_knows_what(outcome: str) -> None:
    assert of(outcome, ("kernel", COMPARED, (), "bwrap"), ()) == UNKNOWN


def test_every_outcome_has_its_row() -> None:
    assert {of(outcome, ("kernel", COMPARED, (), "bwrap"), WEAKER).reward for outcome in Outcome} == {
        1.0,
        0.0,
        None,
    }
