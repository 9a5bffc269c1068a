"""Image step, warm-up: programs of the farm that an image elaborates before its first fork. Pure.

Forks inherit the state that Lean sets up at first use. The programs mean the same under any header, and
whether they can be proved under it does not matter. No module is written for them: its memory would be
returned to Lean's allocator in small pieces, which every fork would then have to copy.
"""

from __future__ import annotations

_BODIES = (
    "theorem farm_warm (p q : Prop) (h : p) (k : p → q) : q := k h",
    "theorem farm_warm (p q : Prop) (h : p) (k : p → q) : q := by\n  apply k\n  exact h",
    "theorem farm_warm : False := True.intro",
    "example (p : Prop) : p := sorry",
)

#: The module to seal: a proof, and its statement.
PROOF = "theorem farm_warm (p q : Prop) (h : p) (k : p → q) : q := k h\n"
STATEMENT = "theorem farm_warm (p q : Prop) (h : p) (k : p → q) : q := sorry\n"


def programs(header: str) -> list[str]:
    """Return the programs under a header."""
    return [f"{header}{body}\n" for body in _BODIES]
