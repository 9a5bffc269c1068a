"""Which verdicts a proof could have forged: those that were made where no namespaces held its code."""

from __future__ import annotations

#: What is said of such a place.
FORGEABLE = "a proof could forge verdicts"


def is_forgeable(isolation: str) -> bool:
    """Return whether code of a submission could reach the farm where this level of isolation held it.

    The level is that of a verdict; ``none`` stands for a check in which nothing of a submission ran, and so
    does an empty one, of a line that no worker has checked.
    """
    return isolation not in ("", "none") and "bwrap" not in isolation.split("+")
