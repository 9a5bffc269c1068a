"""Assurance step: the requirements that a run sets for a *proved*. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from farm.asked import BATCH, RUN, WHETHER, Flag, Needs, option, words
from farm.assembly.challenge import ALLOWED_AXIOMS
from farm.errors import UsageError
from farm.judging.tiers import Tier
from farm.lean_text.policy.rules import RULES, Action
from farm.lean_text.policy.screen import Policy

#: The limit for the names of all allowed axioms together, since every audit receives them.
_MOST_CHARACTERS = 10_000
#: The entry of the stored policy by which a run requires all parts.
_PARTS, _ALL = "parts", "all"
#: The entry of the stored policy of a check with a task of its own.
TASK_ENTRY, OWN_TASK = "task", "own"


@dataclass(frozen=True, kw_only=True, slots=True)
class Assurance:
    """The requirements that a run sets for a *proved*.

    `tier` names the programs that a verdict trusts (`farm.judging.tiers`). With `native` a proof may rest on
    the compiler, as proofs by ``native_decide`` do. A proof may rest on `axioms` and no others. With
    `requires_statement` every line must have a statement. With `requires_all_parts` a proof must prove every
    theorem that its statement leaves open, and not only the last one. `accepts_advisories`: the run accepts,
    on the tier kernel, a Lean whose kernel has known soundness bugs. `policy` holds the actions that the run
    sets; `rules` adds those of the tier.
    """

    tier: str = option(
        Tier.KERNEL,
        places=RUN | BATCH,
        form=words(*Tier, alias="Tier"),
        absent="kernel",
        meaning="how much a verdict trusts",
        flag=Flag(
            help="What *proved* trusts: the kernel only, audit (Lean's kernel calls), or lean (all of Lean).",
        ),
        identity=True,
    )
    native: bool = option(
        False,
        places=RUN | BATCH,
        form=WHETHER,
        absent=False,
        meaning="a proof may rest on the compiler",
        flag=Flag(
            names=("--native",),
            help="Allow proofs that trust the compiler, such as those by native_decide.",
        ),
        identity=True,
    )
    policy: Policy = option(
        Policy(),
        places=RUN,
        meaning="actions of the rules about texts",
        flag=Flag(
            takes=list[str] | None,
            reads=Policy.parse,
            metavar="RULE=ACTION",
            help="Action of a policy rule: report, off, or (tier lean only) reject. Repeatable.",
        ),
        identity=True,
    )
    axioms: Sequence[str] = option(
        ALLOWED_AXIOMS,
        name="axiom",
        places=RUN,
        meaning="axioms that a proof may rest on besides Lean's own three",
        flag=Flag(
            takes=list[str] | None,
            reads=lambda names: (*ALLOWED_AXIOMS, *names),
            help="Allow an axiom besides Lean's own three. Repeatable.",
        ),
        identity=True,
    )
    requires_statement: bool = option(
        False,
        name="require_statement",
        places=RUN,
        meaning="a line without a statement is refused",
        flag=Flag(
            names=("--require-statement",),
            help="Refuse manifests that have a line without formal_statement.",
        ),
    )
    requires_all_parts: bool = option(
        False,
        name="require_all_parts",
        places=RUN | BATCH,
        form=WHETHER,
        absent=False,
        meaning="a proof has to prove every theorem that the statement leaves open",
        flag=Flag(
            names=("--require-all-parts",),
            help="Demand proofs of all theorems that a statement leaves open.",
        ),
        identity=True,
        needs=Needs.AUDIT,
    )
    accepts_advisories: bool = option(
        False,
        name="accept_advisories",
        places=RUN,
        meaning="on the tier kernel, a Lean with known kernel bugs is accepted",
        flag=Flag(
            names=("--accept-advisories",),
            help="On the tier kernel, accept a Lean whose kernel has known holes.",
        ),
    )

    def __post_init__(self) -> None:
        """Raise `UsageError` for an unknown tier, a contradiction between options, or impossible axioms."""
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
        """Raise `UsageError` if a rule shall reject and no text decides a verdict of the tier."""
        rejecting = [rule for rule, action in self.policy.actions.items() if action is Action.REJECT]
        if rejecting and self.tier != Tier.LEAN:
            raise UsageError(
                f"--policy {rejecting[0]}=reject: on the tier {self.tier} the compiled module decides "
                "and rules can only report; add --tier lean, or leave the rule at report"
            )

    @property
    def stored_policy(self) -> dict[str, str]:
        """The policy in the store's form, with an entry if all parts are required.

        A worker of an older release does not know that entry's action, so it leaves the check to a newer one;
        so does the entry of a check with a task.
        """
        return dict(self.policy.actions) | ({_PARTS: _ALL} if self.requires_all_parts else {})

    @classmethod
    def stored(
        cls, *, tier: str, native: bool, axioms: Sequence[str], policy: Mapping[str, str]
    ) -> Assurance:
        """Return an assurance from the store's columns. Raises ValueError and UsageError for other words."""
        own = {(_PARTS, _ALL), (TASK_ENTRY, OWN_TASK)}
        actions = {rule: Action(action) for rule, action in policy.items() if (rule, action) not in own}
        return cls(
            tier=tier,
            native=native,
            axioms=tuple(axioms),
            policy=Policy(actions=actions),
            requires_all_parts=policy.get(_PARTS) == _ALL,
        )

    @property
    def rules(self) -> Policy:
        """The policy with the tier's own actions: the tier lean, without an audit, rejects doubted texts."""
        if self.tier != Tier.LEAN:
            return self.policy
        doubted = dict.fromkeys(RULES, Action.REJECT)
        if self.native:
            doubted["native"] = Action.REPORT
        return Policy(actions=doubted | dict(self.policy.actions))
