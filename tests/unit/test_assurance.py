"""How sure a proved has to be: what can be asked for."""

from __future__ import annotations

import pytest

from farm.assurance import FAST, GOLD, STRICT, Assurance
from farm.errors import UsageError


@pytest.mark.parametrize(
    ("assurance", "strongest", "needs_statement"),
    [
        (Assurance(), FAST, False),
        (Assurance(requires_statement=True), FAST, True),
        (Assurance(tier=STRICT), STRICT, True),
        (Assurance(confirm=STRICT), STRICT, True),
        (Assurance(tier=STRICT, confirm=GOLD), GOLD, True),
    ],
)
def test_the_strongest_tier_says_what_is_needed(
    assurance: Assurance, strongest: str, needs_statement: bool
) -> None:
    assert (assurance.strongest, assurance.needs_statement) == (strongest, needs_statement)


@pytest.mark.parametrize(
    "asked",
    [
        {"tier": "best"},
        {"confirm": "best"},
        {"confirm": FAST},
        {"tier": GOLD, "confirm": STRICT},
        {"axioms": ("propext", " ")},
        {"axioms": ("propext,False",)},
        {"axioms": ("Some.axiom",) * 2000},
    ],
)
def test_what_cannot_be_asked_for_is_refused(asked: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        Assurance(**asked)  # type: ignore[arg-type]
