"""Audit step, universes: compares terms up to the names and the order of universe parameters.

Lean names the universes of `Type _` and `Type*` itself (``u_1``), by names that the file does not declare
before, and sorts parameters, and levels below a ``max``, by their names. So the same statement has other
names below other lines, and another order of them. The forms here have names of the farm's own, in one order.
"""

from __future__ import annotations

from collections.abc import Iterable

from farm_workers.audit.olean import Name
from farm_workers.audit.terms import (
    LEVEL_IMAX,
    LEVEL_MAX,
    LEVEL_PARAMETER,
    LEVEL_SUCC,
    Terms,
    parts_of_node,
    with_parts,
)

#: A level: the greatest of some levels that are no maximum, each with a number that is added to it.
_Level = tuple[tuple[int, int], ...]
_LEVEL, _ZERO = "level", ("zero",)


def by_position(terms: Terms, root: int, parameters: Iterable[Name]) -> int:
    """Return the number of a constant's term in which its universe parameters are named by their places.

    Two constants with equal terms in this form can stand for each other in every term, with the same
    universes in the same order.
    """
    return _renamed(terms, root, {parameter: ("at", place) for place, parameter in enumerate(parameters)})


def by_occurrence(terms: Terms, root: int) -> int:
    """Return the number of a term in which universe parameters are named in the order of their occurrence.

    Two types with equal numbers state the same for the same universes, whatever these are called: two
    parameters of one are never the same one in the other. Those that stand by themselves come first, because
    below a maximum they are in the order of their names.
    """
    alone, others = list[Name](), list[Name]()
    for number in _below(terms, root):
        node = terms.nodes[number]
        if node[0] == LEVEL_PARAMETER:
            others.append(node[1])  # type: ignore[arg-type]
        elif node[0] not in (LEVEL_MAX, LEVEL_IMAX, LEVEL_SUCC):
            parts = [terms.nodes[_base(terms, part)] for part in parts_of_node(node)]
            alone += [part[1] for part in parts if part[0] == LEVEL_PARAMETER]  # type: ignore[misc]
    order = dict.fromkeys([*alone, *others])
    return _renamed(terms, root, {parameter: ("nth", place) for place, parameter in enumerate(order)})


def _base(terms: Terms, number: int) -> int:
    """Return a level without what is added to it."""
    while terms.nodes[number][0] == LEVEL_SUCC:
        (number,) = parts_of_node(terms.nodes[number])
    return number


def _below(terms: Terms, root: int) -> list[int]:
    """Return the numbers of the levels and terms in a term, parts first, and from left to right."""
    found, todo = dict[int, None](), [root]
    while todo:
        number = todo[-1]
        new = [part for part in parts_of_node(terms.nodes[number]) if part not in found]
        if new and number not in found:
            todo += reversed(new)
        else:
            found[todo.pop()] = None
    return list(found)


def _renamed(terms: Terms, root: int, names: dict[Name, Name]) -> int:
    """Return the number of a term with other universe parameters, and with levels in their own form."""
    known = dict[int, int]()
    for number in _below(terms, root):
        node = terms.nodes[number]
        if node == _ZERO or node[0] in (LEVEL_PARAMETER, LEVEL_SUCC, LEVEL_MAX, LEVEL_IMAX):
            below = [_level_of(terms, known[part]) for part in parts_of_node(node)]
            if node[0] == LEVEL_SUCC:
                level: _Level = tuple((atom, added + 1) for atom, added in below[0])
            elif node[0] == LEVEL_MAX:
                level = _greatest(terms, (*below[0], *below[1]))
            elif node[0] == LEVEL_PARAMETER:
                name: Name = node[1]  # type: ignore[assignment]
                level = ((terms.number((LEVEL_PARAMETER, names.get(name, name))), 0),)
            else:
                level = ((terms.number(with_parts(node, known)), 0),)
            known[number] = terms.number((_LEVEL, level))
        else:
            known[number] = terms.number(with_parts(node, known))
    return known[root]


def _level_of(terms: Terms, number: int) -> _Level:
    return terms.nodes[number][1]  # type: ignore[return-value]


def _greatest(terms: Terms, levels: _Level) -> _Level:
    """Return the greatest of levels, without those that another one is never below."""
    most = dict[int, int]()
    for atom, added in levels:
        most[atom] = max(added, most.get(atom, 0))
    zero = terms.number(_ZERO)
    if len(most) > 1 and zero in most and most[zero] <= max(most[each] for each in most if each != zero):
        del most[zero]
    return tuple(sorted(most.items()))
