"""Reward step: maps a verdict to a trainer's reward: 0.0 to 1.0, or None for unknown. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from farm.judging.audit import ADMITTED, ANSWERED, COMPARED, LIBRARY, UNREBUILT
from farm.judging.forgeable import is_forgeable
from farm.judging.tiers import Tier
from farm.judging.verdict import Outcome
from farm.task import Kind

#: The weaknesses that a *proved* or *disproved* can have; a trainer names those that it accepts.
#:
#: ``audit`` and ``lean``: its tier trusts more than the kernel's replay. ``unchecked``: the farm compared it
#: with no statement. ``sorry``: it rests on a declaration that the dataset admits, such as an earlier part of
#: the statement, or on one that the library admits, where the environment permits that. ``answer``: it gives
#: an answer of which the dataset demands nothing. ``native``: it rests on the compiler. ``forgeable``:
#: nothing isolated the proof's code from the farm. ``unrebuilt``: Lean cannot be forked there, so a checker
#: mapped the submission's own module. ``partial``: it is no *proved* at all, but rests on sorries that its
#: line permits. ``disproof``: it is a proof of the negation, where the task allows either.
WEAKER = (
    *("audit", "lean", "unchecked", "sorry", "answer", "native", "forgeable", "unrebuilt"),
    *("partial", "disproof"),
)
#: The weaknesses of a machine or an environment, which say nothing about the proof.
OF_MACHINES = frozenset({"forgeable", "unrebuilt"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Worth:
    """A verdict's reward, and the weaknesses of a *proved*, in words of `WEAKER`."""

    reward: float | None
    weaker: tuple[str, ...] = ()


#: The worth of a line without a verdict, of a cancelled line, and of one that the farm could not judge.
UNKNOWN = Worth(reward=None)

_NO_PROOF = frozenset({Outcome.REJECTED, Outcome.TIMEOUT, Outcome.MEMORY_LIMIT})
_SOME_PROOF = frozenset({Outcome.PROVED, Outcome.DISPROVED, Outcome.PARTIAL})


def worth(
    outcome: str,
    *,
    tier: str,
    statement: str | None,
    trusts: Sequence[str],
    isolation: str,
    accept: Collection[str] = (),
    share: float = 0.0,
    asks: Kind = Kind.PROVE,
) -> Worth:
    """Return the reward of a verdict for a trainer that accepts the weaknesses in `accept`.

    A *proved* with any other weakness gets 0.0. If all its other weaknesses are of `OF_MACHINES`, its reward
    is None: the machine or its environment is at fault, and the proof may be right. A *partial* is treated
    as a *proved* with one more weakness, and gets the `share` of the statement's parts that are proved. So
    is a *disproved* where the task allows either; one that the task asks for is worth as much as a *proved*.
    """
    if outcome in _NO_PROOF:
        return Worth(reward=0.0)
    if outcome not in _SOME_PROOF:
        return UNKNOWN
    weaker = tuple(
        word
        for word, is_true in (
            (str(tier), tier != Tier.KERNEL),
            ("unchecked", statement != COMPARED),
            ("sorry", ADMITTED in trusts or LIBRARY in trusts),
            ("answer", ANSWERED in trusts),
            ("native", any(each not in (ADMITTED, ANSWERED, LIBRARY, UNREBUILT) for each in trusts)),
            ("forgeable", is_forgeable(isolation)),
            ("unrebuilt", UNREBUILT in trusts),
            ("partial", outcome == Outcome.PARTIAL),
            ("disproof", outcome == Outcome.DISPROVED and asks is not Kind.DISPROVE),
        )
        if is_true
    )
    lacking = set(weaker) - set(accept)
    if not lacking:
        return Worth(reward=share if outcome == Outcome.PARTIAL else 1.0, weaker=weaker)
    return Worth(reward=None if lacking <= OF_MACHINES else 0.0, weaker=weaker)
