"""Defines the tiers, which name the programs that a *proved* trusts. Pure."""

from __future__ import annotations

from enum import StrEnum


class Tier(StrEnum):
    """The programs that a *proved* trusts, from the fewest to the most.

    ``kernel`` trusts Lean's kernel alone, which replays the module after the audit has accepted it. ``audit``
    audits the compiled module, and trusts that Lean ran its kernel on each declaration. ``lean`` trusts
    Lean's messages.
    """

    KERNEL = "kernel"
    AUDIT = "audit"
    LEAN = "lean"
