"""The assurance step: how sure a *proved* has to be, as a run asks for it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from farm.challenge import ALLOWED_AXIOMS
from farm.errors import UsageError
from farm.policy import Policy

#: How sure a *proved* is: by what Lean and the text policy say; also by an audit of the compiled module; also
#: by the toolchain's own checker, which has the kernel check that module again. From weak to strong.
FAST, STRICT, GOLD = "fast", "strict", "gold"
TIERS = (FAST, STRICT, GOLD)
#: Of all allowed axioms' names together: they are told to every audit.
_MOST_CHARACTERS = 10_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Assurance:
    """How sure the *proved* of a run have to be.

    What `tier` calls proved is judged once more by the stronger tier `confirm`, if there is one, before it is
    called so. `axioms` are those that a proof may rest on. With `requires_statement` no line may be without
    one; the tiers above the first need one anyway. `accepts_advisories`: on the tier gold, a Lean with known
    holes in its kernel will do.
    """

    tier: str = FAST
    confirm: str | None = None
    policy: Policy = field(default_factory=Policy)
    axioms: Sequence[str] = ALLOWED_AXIOMS
    requires_statement: bool = False
    accepts_advisories: bool = False

    def __post_init__(self) -> None:
        """Raise `UsageError` for a tier that is none, or a confirmation that adds nothing."""
        for tier in filter(None, (self.tier, self.confirm)):
            if tier not in TIERS:
                raise UsageError(f"there is no tier {tier!r}; the tiers are {', '.join(TIERS)}")
        if self.confirm is not None and TIERS.index(self.confirm) <= TIERS.index(self.tier):
            raise UsageError(
                f"--confirm {self.confirm} adds nothing to the tier {self.tier}; confirm with a stronger one"
            )
        if odd := [name for name in self.axioms if not name.strip() or "," in name]:
            raise UsageError(f"{odd[0]!r} is no name of an axiom; write it as Lean does, such as propext")
        if sum(map(len, self.axioms)) > _MOST_CHARACTERS:
            raise UsageError(
                f"the names of axioms are longer than {_MOST_CHARACTERS} characters; allow fewer"
            )

    @property
    def strongest(self) -> str:
        """The tier that has the last word on what is proved."""
        return self.confirm or self.tier

    @property
    def needs_statement(self) -> bool:
        """Whether every line must say what it has to prove."""
        return self.requires_statement or self.strongest != FAST
