"""Finds the verdicts that a proof could have forged: nothing isolated its code from the farm."""

from __future__ import annotations

#: The words of a level that say that a check could reach nothing of the farm: a worker uses them only if that
#: was tried when it started.
_SEPARATE = frozenset({"bwrap", "landlock"})
#: The warning about an isolation level without any of them.
FORGEABLE = "a proof could forge verdicts"


def is_forgeable(isolation: str) -> bool:
    """Return whether a submission's code could reach the farm at this level of isolation.

    The level is that of a verdict; it is ``none`` or empty if no code of a submission ran.
    """
    return isolation not in ("", "none") and _SEPARATE.isdisjoint(isolation.split("+"))
