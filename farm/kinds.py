"""The proof systems that the farm knows; each environment belongs to one of them."""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """A proof system, by the word that tables, the store and scripts know."""

    LEAN = "lean"
    METAMATH = "metamath"
    HOL_LIGHT = "hol-light"

    @property
    def system(self) -> str:
        """Its name, for people."""
        return _NAMES[self]


_NAMES = {Kind.LEAN: "Lean", Kind.METAMATH: "Metamath", Kind.HOL_LIGHT: "HOL Light"}
