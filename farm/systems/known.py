"""Systems step, the list: returns the record of a proof system; the only place that names all of them."""

from __future__ import annotations

from farm.kinds import Kind
from farm.systems.hol_light.record import HOL_LIGHT
from farm.systems.lean.record import LEAN
from farm.systems.metamath.record import METAMATH
from farm.systems.system import System


def system(kind: str) -> System:
    """Return the record of a proof system; raises ValueError for an unknown kind.

    Without a record for each `Kind`, mypy reports a missing return statement.
    """
    known = Kind(kind)
    match known:
        case Kind.LEAN:
            return LEAN
        case Kind.METAMATH:
            return METAMATH
        case Kind.HOL_LIGHT:
            return HOL_LIGHT
