"""The assurance step: how sure a *proved* has to be, as a run asks for it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from farm.assembly.challenge import ALLOWED_AXIOMS
from farm.errors import UsageError
from farm.judging.tiers import Tier
from farm.lean_text.policy.rules import RULES, Action
from farm.lean_text.policy.screen import Policy

#: Of all allowed axioms' names together: they are told to every audit.
_MOST_CHARACTERS = 10_000
#: How the store says, beside the rules of the policy, that all parts are required.
_PARTS, _ALL = "parts", "all"


@dataclass(frozen=True, kw_only=True, slots=True)
class Assurance:
    """How sure the *proved* of a run have to be.

    `tier` says whom to believe (`farm.judging.tiers`). With `native` a proof may rest on the compiler, as
    ``native_decide`` makes it do. `axioms` are those that a proof may rest on. With `requires_statement` no
    line may be without one. With `requires_all_parts` a proof has to prove every theorem that its statement
    leaves open, not the last one alone. `accepts_advisories`: on the tier kernel, a Lean with known holes in
    its kernel will do. `policy` holds the actions that somebody has set; `rules` adds those of the tier.
    """

    tier: str = Tier.KERNEL
    native: bool = False
    policy: Policy = field(default_factory=Policy)
    axioms: Sequence[str] = ALLOWED_AXIOMS
    requires_statement: bool = False
    requires_all_parts: bool = False
    accepts_advisories: bool = False

    def __post_init__(self) -> None:
        """Raise `UsageError` for what cannot be asked for."""
        if self.tier not in list(Tier):
            raise UsageError(f"no tier is called {self.tier!r}; choose one of {', '.join(Tier)}")
        self._require_reports()
        if self.requires_all_parts and self.tier == Tier.LEAN:
            raise UsageError(
                "--require-all-parts: the tier lean does not look at what a module proves; "
                "use --tier kernel or audit"
            )
        if odd := [name for name in self.axioms if not name.strip() or "," in name]:
            raise UsageError(f"{odd[0]!r} is not the name of an axiom; write it as in Lean, such as propext")
        if sum(map(len, self.axioms)) > _MOST_CHARACTERS:
            raise UsageError(
                f"the names of the allowed axioms exceed {_MOST_CHARACTERS} characters; allow fewer"
            )

    def _require_reports(self) -> None:
        """Raise `UsageError` where a rule is to reject and the tier lets no text decide."""
        rejecting = [rule for rule, action in self.policy.actions.items() if action is Action.REJECT]
        if rejecting and self.tier != Tier.LEAN:
            raise UsageError(
                f"--policy {rejecting[0]}=reject: on the tier {self.tier} the compiled module decides "
                "and rules can only report; add --tier lean, or leave the rule at report"
            )

    @property
    def stored_policy(self) -> dict[str, str]:
        """The policy as the store keeps it, with what an older worker must not pass over.

        Such a worker cannot read an action that it does not know, and leaves the check to a newer one.
        """
        return dict(self.policy.actions) | ({_PARTS: _ALL} if self.requires_all_parts else {})

    @classmethod
    def stored(
        cls, *, tier: str, native: bool, axioms: Sequence[str], policy: Mapping[str, str]
    ) -> Assurance:
        """Return an assurance of what the store keeps. Raises ValueError and UsageError for other words."""
        actions = {
            rule: Action(action) for rule, action in policy.items() if (rule, action) != (_PARTS, _ALL)
        }
        return cls(
            tier=tier,
            native=native,
            axioms=tuple(axioms),
            policy=Policy(actions=actions),
            requires_all_parts=len(actions) < len(policy),
        )

    @property
    def rules(self) -> Policy:
        """The policy as the tier carries it out: the tier lean, which believes Lean's word, doubts texts."""
        if self.tier != Tier.LEAN:
            return self.policy
        doubted = {name: Action.REJECT for name, rule in RULES.items() if rule.is_doubted}
        if self.native:
            doubted["native"] = Action.REPORT
        return Policy(actions=doubted | dict(self.policy.actions))
