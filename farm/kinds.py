"""The proof systems that the farm knows; each environment belongs to one of them."""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """A proof system, by the word that tables, the store and scripts know; `farm.systems` has its record."""

    LEAN = "lean"
    METAMATH = "metamath"
    HOL_LIGHT = "hol-light"
