"""Systems step, the list: returns the record of a proof system."""

from __future__ import annotations

from functools import cache
from typing import assert_never

from farm.kinds import Kind
from farm.systems.system import System


@cache
def system(kind: str) -> System:
    """Return the record of a proof system; raises ValueError for an unknown kind."""
    known = Kind(kind)
    match known:  # a process imports only the systems that it meets
        case Kind.LEAN:
            from farm.systems.lean.record import LEAN

            return LEAN
        case Kind.METAMATH:
            from farm.systems.metamath.record import METAMATH

            return METAMATH
        case Kind.HOL_LIGHT:
            from farm.systems.hol_light.record import HOL_LIGHT

            return HOL_LIGHT
        case _:
            assert_never(known)
