"""Audit step, sorries: finds the admitted parts of a module, and whether the statement has them too.

Two sorries are the same when their types and labels are equal and neither depends on its place: `sorryAx p`
under a binder of `p` can be made a proof of any proposition.
"""

from __future__ import annotations

from collections.abc import Iterable

from farm_workers.audit.kernel import SORRY
from farm_workers.audit.terms import BVAR, Reading, applied, is_constant, parts_of


def sorries(reading: Reading, places: Iterable[int]) -> frozenset[object]:
    """Return a key for each sorry in expressions; one that depends on its place equals no other."""
    found, seen, todo = set[object](), set[int](), list(places)
    while todo:
        place = todo.pop()
        if place in seen:
            continue
        seen.add(place)
        arguments = _arguments(reading, place)
        if arguments is not None:
            found.add(object() if _is_bound(reading, arguments) else reading.expression(place))
            todo += arguments
        elif is_constant(reading.olean, place, SORRY):
            found.add(object())
        else:
            todo += parts_of(reading.olean, place)
    return frozenset(found)


def _arguments(reading: Reading, place: int) -> list[int] | None:
    """Return type and mark of a `sorryAx` that has both, None if there is something else."""
    function, arguments = applied(reading.olean, place, 2)
    return arguments if len(arguments) == 2 and is_constant(reading.olean, function, SORRY) else None


def _is_bound(reading: Reading, places: Iterable[int]) -> bool:
    """Return whether variables occur in expressions, bound there or outside."""
    seen, todo = set[int](), list(places)
    while todo:
        place = todo.pop()
        if reading.olean.words[place] == BVAR:
            return True
        if place not in seen:
            seen.add(place)
            todo += parts_of(reading.olean, place)
    return False
