"""How sure a proved has to be: what can be asked for, and what a tier makes of the policy."""

from __future__ import annotations

import pytest

from farm.errors import UsageError
from farm.judging.assurance import Assurance
from farm.judging.tiers import Tier
from farm.lean_text.policy.rules import RULES, Action
from farm.lean_text.policy.screen import Policy


def test_the_kernel_is_believed_alone_unless_somebody_asks_for_less() -> None:
    assert (Assurance().tier, Assurance().native) == (Tier.KERNEL, False)


@pytest.mark.parametrize("tier", [Tier.KERNEL, Tier.AUDIT])
def test_no_rule_rejects_where_the_compiled_module_decides(tier: Tier) -> None:
    rules = Assurance(tier=tier).rules
    assert {rules.action(rule) for rule in RULES} == {Action.REPORT}


def test_the_tier_lean_rejects_what_a_bare_word_is_not_believed_about() -> None:
    rules = Assurance(tier=Tier.LEAN).rules
    rejecting = {rule for rule in RULES if rules.action(rule) is Action.REJECT}
    assert rejecting == set(RULES)


def test_who_trusts_the_compiler_trusts_it_on_the_tier_lean_too() -> None:
    assert Assurance(tier=Tier.LEAN, native=True).rules.action("native") is Action.REPORT


def test_an_action_that_somebody_set_wins_over_that_of_the_tier() -> None:
    rules = Assurance(tier=Tier.LEAN, policy=Policy.parse(["axiom=report", "run=off"])).rules
    assert [rules.action(each) for each in ("axiom", "run", "stop")] == [
        Action.REPORT,
        Action.OFF,
        Action.REJECT,
    ]


@pytest.mark.parametrize("tier", [Tier.KERNEL, Tier.AUDIT])
def test_a_rule_that_is_to_reject_where_no_text_decides_is_refused_with_the_remedy(tier: Tier) -> None:
    with pytest.raises(
        UsageError, match=r"stop=reject: on the tier .* rules can only report; add --tier lean"
    ):
        Assurance(tier=tier, policy=Policy.parse(["run=off", "stop=reject"]))


@pytest.mark.parametrize("required", [False, True])
def test_what_the_store_keeps_is_read_as_it_was_asked_for(required: bool) -> None:
    policy = Policy.parse(["run=off", "axiom=report"])
    asked = Assurance(tier="audit", native=True, policy=policy, axioms=("a",), requires_all_parts=required)
    kept = {"tier": "audit", "native": True, "axioms": ["a"], "policy": asked.stored_policy}
    assert Assurance.stored(**kept) == asked
    # An older worker reads actions alone, and leaves what it cannot read to others.
    older = {word for word in asked.stored_policy.values() if word not in set(Action)}
    assert bool(older) is required


def test_nothing_says_on_the_tier_lean_whether_all_parts_are_proved() -> None:
    with pytest.raises(UsageError, match=r"--require-all-parts: .* use --tier kernel or audit"):
        Assurance(tier="lean", requires_all_parts=True)


@pytest.mark.parametrize(
    "asked",
    [
        {"tier": "best"},
        {"tier": "KERNEL"},
        {"axioms": ("propext", " ")},
        {"axioms": ("propext,False",)},
        {"axioms": ("Some.axiom",) * 2000},
    ],
)
def test_what_cannot_be_asked_for_is_refused(asked: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        Assurance(**asked)  # type: ignore[arg-type]
