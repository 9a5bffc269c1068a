"""Audit step, sorries: decides whether the sorries in a proof are those of its own statement.

A proof repeats parts of its statement, as `Or.inr` names the side that it does not prove. So a sorry in it is
the statement's if it stands in a copy of a part of the statement that is closed: no variable in that part is
bound outside of it, but for those over which the theorem begins, which are the same in both. `sorryAx p`
below a binder of `p` is no such part: it can be made a proof of any proposition.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import cast

from farm_workers.audit.answers import is_open
from farm_workers.audit.declarations import Constant, ConstantKind, Module
from farm_workers.audit.kernel import SORRY
from farm_workers.audit.olean import Name
from farm_workers.audit.terms import (
    APP,
    BVAR,
    CONST,
    LAMBDA,
    LET,
    MDATA,
    PI,
    PROJECTION,
    SORT,
    Node,
    Reading,
    applied,
)

#: The furthest binder that is distinguished: no term with a variable that is bound further out is a copy.
_FURTHEST = 2000
#: Types of the imports that have values, whatever their arguments are.
_WITH_VALUES: frozenset[Name] = frozenset(
    (name,)
    for name in (
        *("Nat", "Int", "Rat", "Real", "NNReal", "ENNReal", "Complex", "Bool", "Char", "String"),
        *("List", "Array", "Option", "Set", "Finset", "Multiset"),
    )
)
#: The most types that are looked at.
_MOST_TYPES = 100
#: The free variables of a term with one that is bound too far out.
_ALL = -1


class Admitted(Enum):
    """The sorries that a proof rests on: none, those of its own statement, or any other."""

    NOTHING = 0
    STATED = 1
    MORE = 2


def is_open_value(modules: Sequence[Module], name: Name) -> bool:
    """Return whether a name is a definition that one of the modules leaves open, of a type that has values.

    A proof about such a value holds for any. An open theorem, or a value of an empty type, proves everything.
    """
    for module in modules:
        constant = module.constant(name)
        if constant is not None:
            return is_open(module.olean, constant) and _has_values(modules, module, constant.type)
    return False


def _has_values(modules: Sequence[Module], module: Module, place: int) -> bool:
    """Return whether a type of a module has values for certain, by way of the modules' definitions."""
    todo, left = [(module, place)], _MOST_TYPES
    while todo and left:
        (module, place), left = todo.pop(), left - 1
        olean = module.olean
        while olean.words[place] in (PI, MDATA):
            place = olean.object(place, 2 if olean.words[place] == PI else 1)
        function, arguments = applied(olean, place, 2)
        if olean.words[place] == SORT:
            continue
        name = olean.name(olean.child(function, 0)) if olean.words[function] == CONST else ()
        owner = next((each for each in modules if name in each.names), None)
        if owner is None and name == ("Prod",) and len(arguments) == 2:
            todo += [(module, each) for each in arguments]
        elif owner is None and name in _WITH_VALUES:
            continue
        else:
            constant = None if owner is None or arguments else owner.constant(name)
            if owner is None or constant is None or constant.kind is not ConstantKind.DEFINITION:
                return False
            todo.append((owner, constant.value or 0))
    return not todo


def admitted_by(reading: Reading, constant: Constant) -> Admitted:
    """Return the sorries in a constant's values; the type of a variable may repeat the statement freely."""
    type_, *values = map(reading.expression, constant.expressions())
    shapes, found = Shapes(reading), Admitted.NOTHING
    for value in values:
        if shapes.has_sorry(value):
            found = max(found, _Proof(shapes, type_, value).admits(), key=lambda each: each.value)
    return found


class Shapes:
    """Facts about terms by their numbers, each computed once."""

    def __init__(self, reading: Reading) -> None:
        self._olean, self.nodes = reading.olean, reading.terms.nodes
        self._known: dict[int, tuple[bool, int]] = {}

    def has_sorry(self, root: int) -> bool:
        """Return whether a sorry occurs in a term."""
        return self._facts(root)[0]

    def free(self, root: int) -> int:
        """Return a mask of the variables of a term that are bound outside of it."""
        return self._facts(root)[1]

    def _facts(self, root: int) -> tuple[bool, int]:
        known, todo = self._known, [root]
        while todo:
            number = todo[-1]
            new = [part for part, _ in parts_of(self.nodes[number]) if part not in known]
            if new:
                todo += new
                continue
            todo.pop()
            if number not in known:
                self.spend()
                known[number] = self._made(self.nodes[number])
        return known[root]

    def _made(self, node: Node) -> tuple[bool, int]:
        if node[0] == BVAR:
            index = cast("int", node[1])
            return False, 1 << index if index < _FURTHEST else _ALL
        has_sorry, free = is_sorry(node), 0
        for part, binders in parts_of(node):
            below, outside = self._known[part]
            has_sorry |= below
            free |= outside >> binders
        return has_sorry, free

    def spend(self) -> None:
        """Count a step of work against the budget of the file."""
        self._olean.spend(1)


class _Proof:
    """A type and a value that begin with the same variables; terms stand below a number of binders."""

    def __init__(self, shapes: Shapes, type_: int, value: int) -> None:
        self._shapes, self._nodes, self._value = shapes, shapes.nodes, value
        in_type, in_value = (self._begins(*each) for each in ((type_, PI), (value, LAMBDA)))
        self._shared = min(in_type, in_value)
        self._forms: dict[tuple[int, int], int] = {}
        self._numbers: dict[object, int] = {}
        self._stated = set(self._closed_parts(type_))

    def admits(self) -> Admitted:
        """Return the sorries in the value."""
        found, todo, seen = Admitted.NOTHING, [(self._value, 0)], {(self._value, 0)}
        while todo:
            number, depth = todo.pop()
            self._shapes.spend()
            if not self._shapes.has_sorry(number):
                continue
            if self._is_copy(number, depth):
                found = Admitted.STATED
            elif is_sorry(self._nodes[number]):
                return Admitted.MORE
            else:
                new = {*self._parts(number, depth)} - seen
                seen |= new
                todo += new
        return found

    def _parts(self, number: int, depth: int) -> Iterator[tuple[int, int]]:
        """Yield the parts of a term, but for the type of its variable if that repeats the statement."""
        node = self._nodes[number]
        for at, (part, binders) in enumerate(parts_of(node)):
            if at or node[0] != LAMBDA or not self._is_copy(part, depth):
                yield part, depth + binders

    def _begins(self, number: int, shape: int) -> int:
        """Return the number of variables with which a term begins."""
        count = 0
        while self._nodes[number][0] == shape:
            number, count = parts_of(self._nodes[number])[-1][0], count + 1
        return count

    def _closed_parts(self, root: int) -> Iterator[int]:
        """Yield the forms of the closed parts of the type that contain a sorry."""
        todo, seen = [(root, 0)], {(root, 0)}
        while todo:
            number, depth = todo.pop()
            self._shapes.spend()
            if not self._shapes.has_sorry(number):
                continue
            if self._is_closed(number, depth):
                yield self._form(number, depth)
            new = {(part, depth + binders) for part, binders in parts_of(self._nodes[number])} - seen
            seen |= new
            todo += new

    def _is_copy(self, number: int, depth: int) -> bool:
        """Return whether a term is a closed part of the type that contains a sorry."""
        is_closed = self._shapes.has_sorry(number) and self._is_closed(number, depth)
        return is_closed and self._form(number, depth) in self._stated

    def _is_closed(self, number: int, depth: int) -> bool:
        """Return whether a term depends on no variable but the shared ones, and is more than a bare sorry."""
        inner = max(0, depth - self._shared)
        if self._shapes.free(number) & ((1 << inner) - 1):
            return False
        node = self._nodes[number]
        is_begun = node[0] == APP and is_sorry(self._nodes[parts_of(node)[0][0]])
        return not is_sorry(node) and not is_begun

    def _form(self, root: int, depth: int) -> int:
        """Return a number for a term, the same wherever the term stands below the shared variables."""
        todo = [self._key(root, depth)]
        while todo:
            number, at = todo[-1]
            parts = [self._key(part, at + binders) for part, binders in parts_of(self._nodes[number])]
            new = [each for each in parts if each not in self._forms]
            if new:
                todo += new
                continue
            todo.pop()
            if (number, at) not in self._forms:
                self._shapes.spend()
                form = self._made(number, at, parts)
                self._forms[number, at] = self._numbers.setdefault(form, len(self._numbers))
        return self._forms[self._key(root, depth)]

    def _key(self, number: int, depth: int) -> tuple[int, int]:
        return number, depth if self._shapes.free(number) else 0

    def _made(self, number: int, depth: int, parts: list[tuple[int, int]]) -> object:
        node = self._nodes[number]
        if parts:
            own = node[:3] if node[0] == PROJECTION else node[:1]
            return (*own, *(self._forms[each] for each in parts))
        place = depth - 1 - cast("int", node[1]) if node[0] == BVAR else self._shared
        return ("shared", place) if place < self._shared else number


def is_sorry(node: Node) -> bool:
    """Return whether a term is the constant `sorryAx`."""
    return node[0] == CONST and node[1] == SORRY


def parts_of(node: Node) -> list[tuple[int, int]]:
    """Return the numbers of the terms in a term, each with the number of binders of the term around it."""
    shape = node[0]
    if shape not in (APP, LAMBDA, PI, LET, PROJECTION):
        return []
    *before, last = cast("tuple[int, ...]", node[3 if shape == PROJECTION else 1 :])
    return [*((part, 0) for part in before), (last, int(shape in (LAMBDA, PI, LET)))]
