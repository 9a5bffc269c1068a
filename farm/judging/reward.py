"""The reward step: what a verdict is worth to a trainer: 1.0, 0.0, or None where nobody knows. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from farm.judging.audit import ADMITTED, COMPARED
from farm.judging.forgeable import is_forgeable
from farm.judging.tiers import Tier
from farm.judging.verdict import Outcome

#: What a *proved* may lack that a full one has; whoever asks for rewards says which of it will do.
#:
#: ``audit`` and ``lean``: its tier believes more than the kernel's replay. ``unchecked``: it was compared
#: with no statement. ``sorry``: it rests on what the dataset admits, such as an earlier part of the
#: statement. ``native``: it rests on the compiler. ``forgeable``: nothing kept the proof from the farm.
WEAKER = ("audit", "lean", "unchecked", "sorry", "native", "forgeable")


@dataclass(frozen=True, kw_only=True, slots=True)
class Worth:
    """A verdict's reward, and which words of `WEAKER` are true of a *proved*."""

    reward: float | None
    weaker: tuple[str, ...] = ()


#: What has no verdict, was cancelled, or could not be judged.
UNKNOWN = Worth(reward=None)

_NO_PROOF = frozenset({Outcome.REJECTED, Outcome.TIMEOUT, Outcome.MEMORY_LIMIT})


def worth(
    outcome: str,
    *,
    tier: str,
    statement: str | None,
    trusts: Sequence[str],
    isolation: str,
    accept: Collection[str] = (),
) -> Worth:
    """Return what a verdict is worth to whoever accepts these words of `WEAKER`.

    A *proved* that is weaker than was asked for is worth 0.0, except where only the machine made it so: then
    nobody knows what the proof is worth.
    """
    if outcome in _NO_PROOF:
        return Worth(reward=0.0)
    if outcome != Outcome.PROVED:
        return UNKNOWN
    weaker = tuple(
        word
        for word, is_true in (
            (str(tier), tier != Tier.KERNEL),
            ("unchecked", statement != COMPARED),
            ("sorry", ADMITTED in trusts),
            ("native", any(each != ADMITTED for each in trusts)),
            ("forgeable", is_forgeable(isolation)),
        )
        if is_true
    )
    lacking = set(weaker) - set(accept)
    if not lacking:
        return Worth(reward=1.0, weaker=weaker)
    return Worth(reward=None if lacking == {"forgeable"} else 0.0, weaker=weaker)
