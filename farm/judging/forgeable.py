"""Finds the verdicts that a proof could have forged: no namespaces isolated its code from the farm."""

from __future__ import annotations

#: The warning about an isolation level without namespaces.
FORGEABLE = "a proof could forge verdicts"


def is_forgeable(isolation: str) -> bool:
    """Return whether a submission's code could reach the farm at this level of isolation.

    The level is that of a verdict; it is ``none`` or empty if no code of a submission ran.
    """
    return isolation not in ("", "none") and "bwrap" not in isolation.split("+")
