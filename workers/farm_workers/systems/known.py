"""Systems step, the list: returns the record of a proof system."""

from __future__ import annotations

from typing import assert_never

from farm.kinds import Kind
from farm_workers.systems.hol_light.record import HOL_LIGHT
from farm_workers.systems.lean.record import LEAN
from farm_workers.systems.metamath.record import METAMATH
from farm_workers.systems.system import System


def system(kind: Kind) -> System:
    """Return the record of a proof system."""
    match kind:
        case Kind.LEAN:
            return LEAN
        case Kind.METAMATH:
            return METAMATH
        case Kind.HOL_LIGHT:
            return HOL_LIGHT
        case _:
            assert_never(kind)
