"""Audit step, dependencies: finds the admitted constants and axioms below every constant of a module.

All constants share one pass over the terms of the file, so the time grows with the file alone, however much
the terms have in common.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from farm_workers.audit.declarations import Module
from farm_workers.audit.kernel import SORRY
from farm_workers.audit.olean import Name
from farm_workers.audit.terms import CONST, PROJECTION, parts_of

#: The most admitted constants, and the most axioms, with a bit of their own.
MOST_SOURCES = 1000

#: A constant of the module, or the place of a term.
Node = Name | int
_Node = TypeVar("_Node", bound=Hashable)


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """The meaning of a name for all that reach it: open constants, axioms, and whether a proof is refused.

    With `doubted` the term of an axiom about compiled code was not evaluated.
    """

    open: Collection[Name] = ()
    axioms: Collection[Name] = ()
    refused: bool = False
    doubted: bool = False


@dataclass(slots=True)
class _Numbers:
    """The bits of names, every second one of a mask; the first is that of all names without their own."""

    first: int
    bits: dict[Name, int] = field(default_factory=dict)

    def of(self, names: Iterable[Name]) -> int:
        """Return the bits of names, each of which gets one while there are any left."""
        found = 0
        for name in names:
            if name not in self.bits and len(self.bits) < MOST_SOURCES:
                self.bits[name] = self.first << 2 * (len(self.bits) + 1)
            found |= self.bits.get(name, self.first)
        return found

    def names(self, mask: int) -> Iterator[Name]:
        """Yield the names whose bits are in a mask, in the order in which they got them."""
        if mask & _ALL * self.first:
            yield from (name for name, bit in self.bits.items() if mask & bit)


#: The bits of a mask that are no name's.
_REFUSED, _DOUBTED, _OPEN, _AXIOMS = 1, 2, 4, 8
#: The bits of all names of one sort, to be multiplied by its first.
_ALL = sum(1 << 2 * number for number in range(1, MOST_SOURCES + 1))


class Rests:
    """Lists what constants and terms of a module rest on; `source` is called for each name."""

    def __init__(self, module: Module, source: Callable[[Name], Source]) -> None:
        self._module, self._olean = module, module.olean
        self._open, self._axioms = _Numbers(_OPEN), _Numbers(_AXIOMS)
        self._source = source
        self._masks = dict[Node, int]()
        for nodes in components(list[Node](module.names), self._parts):
            mask = 0
            for node in nodes:
                mask |= self._own(node)
                for part in self._parts(node):
                    mask |= self._masks.get(part, 0)
            self._masks |= dict.fromkeys(nodes, mask)

    def open_below(self, node: Node) -> tuple[Iterator[Name], bool]:
        """Return the open constants that a node rests on, and whether there are more than those."""
        mask = self._masks[node]
        return self._open.names(mask), bool(mask & _OPEN)

    def axioms(self, node: Node) -> Iterator[Name]:
        """Return the axioms that a node rests on."""
        return self._axioms.names(self._masks[node])

    def is_refused(self, node: Node) -> bool:
        """Return whether a node rests on something that no proof may rest on."""
        return bool(self._masks[node] & _REFUSED)

    def is_doubted(self, node: Node) -> bool:
        """Return whether a node rests on a term that was not evaluated."""
        return bool(self._masks[node] & _DOUBTED)

    def _own(self, node: Node) -> int:
        if isinstance(node, int):
            return 0
        source = self._source(node)
        flags = _REFUSED * source.refused | _DOUBTED * source.doubted
        return flags | self._open.of(source.open) | self._axioms.of(source.axioms)

    def _parts(self, node: Node) -> list[Node]:
        if isinstance(node, int):
            found: list[Node] = [*parts_of(self._olean, node)]
            if self._olean.words[node] in (CONST, PROJECTION):
                found.append(self._olean.name(self._olean.child(node, 0)))
            return found
        constant = self._module.constant(node)
        return [] if constant is None else [*constant.expressions(), *constant.relatives()]


def with_sorry(module: Module, names: Iterable[Name]) -> set[Name]:
    """Return those of the names whose own terms contain a sorry."""
    olean, contains = module.olean, dict[int, bool]()
    constants = {name: module.constant(name) for name in names}
    expressions = {name: each.expressions() for name, each in constants.items() if each is not None}
    todo = [place for places in expressions.values() for place in places]
    while todo:
        place = todo.pop()
        if place not in contains:
            contains[place] = olean.words[place] == CONST and olean.name(olean.child(place, 0)) == SORRY
            todo += parts_of(olean, place)
    for place in sorted(contains):  # parts stand before the whole
        contains[place] |= any(contains[part] for part in parts_of(olean, place))
    return {name for name, places in expressions.items() if any(contains[place] for place in places)}


def components(roots: Iterable[_Node], parts: Callable[[_Node], list[_Node]]) -> Iterator[list[_Node]]:
    """Yield the groups of nodes that reach each other, each after all that it reaches (by Tarjan)."""
    numbers, lowest, path, is_open = dict[_Node, int](), dict[_Node, int](), list[_Node](), set[_Node]()
    for root in roots:
        work: list[tuple[_Node, Iterator[_Node]]] = []
        if root not in numbers:
            work.append((root, iter(parts(root))))
        while work:
            node, left = work[-1]
            if node not in numbers:
                numbers[node] = lowest[node] = len(numbers)
                path.append(node)
                is_open.add(node)
            new, known = _ahead(left, numbers)
            lowest[node] = min(lowest[part] for part in (node, *known) if part in is_open)
            if new is not None:
                work.append((new, iter(parts(new))))
                continue
            work.pop()
            if work and lowest[node] < numbers[node]:
                above = work[-1][0]
                lowest[above] = min(lowest[above], lowest[node])
            if lowest[node] == numbers[node]:
                group = _taken(path, node)
                is_open.difference_update(group)
                yield group


def _ahead(left: Iterator[_Node], known: Collection[_Node]) -> tuple[_Node | None, list[_Node]]:
    """Return the first of the nodes that is not known, None without one; and those before it."""
    before = list[_Node]()
    for node in left:
        if node not in known:
            return node, before
        before.append(node)
    return None, before


def _taken(path: list[_Node], node: _Node) -> list[_Node]:
    """Take a node and all behind it from the end of a path."""
    group = [path.pop()]
    while group[-1] != node:
        group.append(path.pop())
    return group
