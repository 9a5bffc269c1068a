"""Audit step, terms: identifies levels and expressions by content, not by their place in the file.

The layout is that of Lean 4.35.0: ``Lean.Level``, ``Lean.Expr`` and ``Lean.Literal``
(``src/Lean/Level.lean``, ``src/Lean/Expr.lean``). Levels and expressions carry a word of computed data (hash,
flags), which is ignored; the level zero is a boxed 0.

No function recurs: the places of all parts are collected first, and then processed in the order of the file,
in which parts stand before the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from farm_workers.audit.olean import FIRST, MalformedOlean, Name, Olean, header_of

BVAR, FVAR, MVAR, SORT = (header_of(tag, 1, 24) for tag in range(4))
CONST, APP = header_of(4, 2, 32), header_of(5, 2, 32)
LAMBDA, PI, LET = header_of(6, 3, 48), header_of(7, 3, 48), header_of(8, 4, 56)
LITERAL, MDATA, PROJECTION = header_of(9, 1, 24), header_of(10, 2, 32), header_of(11, 3, 40)
NAT, TEXT = header_of(0, 1, 16), header_of(1, 1, 16)

#: The words after the header that point to parts which are expressions. No expression takes more words than
#: the root of the file, which is its last object: their words are all within the file.
PARTS: dict[int, tuple[int, ...]] = {
    **dict.fromkeys((BVAR, FVAR, MVAR, SORT, CONST, LITERAL), ()),
    APP: (1, 2),
    LAMBDA: (2, 3),
    PI: (2, 3),
    LET: (2, 3, 4),
    MDATA: (2,),
    PROJECTION: (3,),
}
#: The first of the two words behind which all parts are, for the most frequent shapes.
PAIRS = {APP: 1, LAMBDA: 2, PI: 2}
LEVEL_SUCC = header_of(1, 1, 24)
LEVEL_MAX, LEVEL_IMAX = header_of(2, 2, 32), header_of(3, 2, 32)
LEVEL_PARAMETER, LEVEL_MVAR = header_of(4, 1, 24), header_of(5, 1, 24)
LEVEL_PARTS: dict[int, tuple[int, ...]] = {
    **dict.fromkeys((LEVEL_PARAMETER, LEVEL_MVAR), ()),
    LEVEL_SUCC: (1,),
    LEVEL_MAX: (1, 2),
    LEVEL_IMAX: (1, 2),
}

#: A level or an expression: its kind (the header of its shape), then its parts by number, and names and
#: values. Binder names, binder kinds, the mark of a `have` and metadata are left out.
Node = tuple[object, ...]


#: The shapes of nodes whose entries are all numbers of levels and terms.
_NUMBERS = frozenset((APP, LAMBDA, PI, LET, SORT, LEVEL_SUCC, LEVEL_MAX, LEVEL_IMAX))


def parts_of_node(node: Node) -> tuple[int, ...]:
    """Return the numbers of the levels and terms in a node, from left to right."""
    shape = node[0]
    if shape in _NUMBERS:
        return node[1:]  # type: ignore[return-value]
    if shape == CONST:
        return node[2]  # type: ignore[return-value]
    return node[3:] if shape == PROJECTION else ()  # type: ignore[return-value]


def with_parts(node: Node, known: Mapping[int, int]) -> Node:
    """Return a node with other levels and terms in it."""
    shape, parts = node[0], tuple(known[part] for part in parts_of_node(node))
    if shape in _NUMBERS:
        return (shape, *parts)
    if shape == CONST:
        return (shape, node[1], parts)
    return (*node[:3], *parts) if shape == PROJECTION else node


class Terms:
    """Numbers for levels and expressions: two get the same number when they are structurally equal."""

    def __init__(self) -> None:
        self._numbers: dict[Node, int] = {}
        self.nodes: list[Node] = []

    def number(self, node: Node) -> int:
        """Return the number of a term whose parts have theirs."""
        found = self._numbers.setdefault(node, len(self.nodes))
        if found == len(self.nodes):
            self.nodes.append(node)
        return found


class Reading:
    """The terms of one file; its methods take places and raise `MalformedOlean`."""

    def __init__(self, olean: Olean, terms: Terms) -> None:
        self.olean = olean
        self.terms = terms
        self._levels: dict[int, int] = {~0: terms.number(("zero",))}
        self._lists: dict[int, tuple[int, ...]] = {}
        self._expressions: dict[int, int] = {}
        self._literals: dict[int, int | str] = {}
        #: The key of a constant; constants with equal keys are equal.
        self.key: Callable[[Name], object] = lambda name: name

    def level(self, ref: int) -> int:
        """Return the number of a level."""
        return self._fold(ref, self._levels, LEVEL_PARTS, self._level)

    def expression(self, place: int) -> int:
        """Return the number of an expression."""
        return self._fold(place, self._expressions, PARTS, self._expression)

    def _fold(
        self,
        root: int,
        known: dict[int, int],
        parts_of: dict[int, tuple[int, ...]],
        make: Callable[[int], int],
    ) -> int:
        """Compute the entry of a term in `known` from the entries of its parts."""
        if root in known:
            return known[root]
        olean, found, todo = self.olean, set[int](), [root]
        while todo:
            place = todo.pop()
            if place in known or place in found:
                continue
            found.add(place)
            olean.spend(1)
            parts = None if place < 0 else parts_of.get(olean.words[place])
            if parts is None:
                raise olean.wrong(place, "level or expression")
            todo.extend(olean.child(place, word - 1) for word in parts)
        for place in sorted(found):
            known[place] = make(place)
        return known[root]

    def _level(self, place: int) -> int:
        olean = self.olean
        shape = olean.words[place]
        if shape in (LEVEL_PARAMETER, LEVEL_MVAR):
            return self.terms.number((shape, olean.name(olean.child(place, 0))))
        parts = [self._levels[olean.child(place, word - 1)] for word in LEVEL_PARTS[shape]]
        return self.terms.number((shape, *parts))

    def _expression(self, place: int) -> int:
        olean = self.olean
        shape = olean.words[place]
        if shape == MDATA:
            return self._expressions[olean.object(place, 1)]
        parts = [self._expressions[olean.object(place, word - 1)] for word in PARTS[shape]]
        return self.terms.number((shape, *self._own(place, shape), *parts))

    def _own(self, place: int, shape: int) -> tuple[object, ...]:
        """Return the content of an expression besides its parts."""
        olean = self.olean
        if shape == CONST:
            return (self.key(self.constant(place)), self.levels(olean.child(place, 1)))
        if shape == SORT:
            return (self.level(olean.child(place, 0)),)
        if shape == BVAR:
            return (olean.nat(olean.child(place, 0)),)
        if shape == LITERAL:
            return (self.literal(olean.object(place, 0)),)
        if shape == PROJECTION:
            return (self.constant(place), olean.nat(olean.child(place, 1)))
        return (self.constant(place),) if shape in (FVAR, MVAR) else ()

    def constant(self, place: int) -> Name:
        """Return the name of the head of an expression: a constant, a projection's type, a variable."""
        return self.olean.name(self.olean.child(place, 0))

    def levels(self, ref: int) -> tuple[int, ...]:
        """Return the numbers of a list of levels."""
        found = self._lists.get(ref)
        if found is None:
            levels = self.olean.list(ref, "levels")
            found = self._lists[ref] = tuple([self.level(level) for level in levels])
        return found

    def literal(self, place: int) -> int | str:
        """Return the number or the text of a literal."""
        found = self._literals.get(place)
        if found is None:
            found = self._literals[place] = self._literal(place)
        return found

    def _literal(self, place: int) -> int | str:
        value = self.olean.child(place, 0)
        if self.olean.words[place] == NAT:
            return self.olean.nat(value)
        if self.olean.words[place] == TEXT:
            return self.olean.string(value)
        raise self.olean.wrong(place, "literal")


def parts_of(olean: Olean, place: int) -> list[int]:
    """Return the places of those parts of an expression that are expressions."""
    words = PARTS.get(olean.words[place])
    if words is None:
        raise olean.wrong(place, "expression")
    return [olean.object(place, word - 1) for word in words]


def applied(olean: Olean, place: int, most: int) -> tuple[int, list[int]]:
    """Return the function and at most `most` arguments of an application, the last argument first."""
    arguments = list[int]()
    while olean.words[place] == APP and len(arguments) < most:
        arguments.append(olean.object(place, 1))
        place = olean.object(place, 0)
    return place, arguments


def body_of(olean: Olean, place: int) -> int:
    """Return an expression without the binders with which it begins."""
    while olean.words[place] in (LAMBDA, MDATA):
        place = olean.object(place, 2 if olean.words[place] == LAMBDA else 1)
    return place


def is_constant(olean: Olean, place: int, name: Name) -> bool:
    """Return whether an expression is the constant of this name."""
    return olean.words[place] == CONST and olean.name(olean.child(place, 0)) == name


class Walk:
    """Visits every part of expressions in a file once, and notes the constants in them."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._seen: set[int] = set()

    def constants(self, root: int) -> tuple[set[Name], bool]:
        """Return the constants in unvisited parts of an expression, and whether a variable is unbound.

        A large module spends its time here, so applications and binders, by far the most frequent parts, are
        handled inline without a call.
        """
        olean, seen = self._reading.olean, self._seen
        words, base = olean.words, olean.base
        found: set[Name] = set()
        visited, most, is_open, todo = 0, olean.left, False, [root]
        while todo and visited <= most:
            place = todo.pop()
            if place in seen:
                continue
            seen.add(place)
            visited += 1
            first = PAIRS.get(words[place])
            if first is None:
                todo += parts_of(olean, place)
                is_open |= self._leaf(place, words[place], found)
                continue
            one, other = words[place + first] - base, words[place + first + 1] - base
            if (one | other) & 7 or not FIRST <= one < place << 3 or not FIRST <= other < place << 3:
                raise MalformedOlean("pointer that does not point backwards", place << 3)
            todo += (one >> 3, other >> 3)
        olean.spend(visited)
        return found, is_open

    def _leaf(self, place: int, shape: int, found: set[Name]) -> bool:
        """Read an expression's content besides its parts, note its constant; return whether it is unbound."""
        reading, olean = self._reading, self._reading.olean
        if shape == CONST:
            found.add(reading.constant(place))
            reading.levels(olean.child(place, 1))
        elif shape == PROJECTION:
            found.add(reading.constant(place))
            olean.nat(olean.child(place, 1))
        elif shape == SORT:
            reading.level(olean.child(place, 0))
        elif shape == LITERAL:
            reading.literal(olean.object(place, 0))
        elif shape == BVAR:
            olean.nat(olean.child(place, 0))
        return shape in (FVAR, MVAR)


def mentions(reading: Reading, places: Iterable[int], name: Name) -> bool:
    """Return whether a constant occurs in one of the expressions themselves."""
    walk = Walk(reading)
    return any(name in walk.constants(place)[0] for place in places)
