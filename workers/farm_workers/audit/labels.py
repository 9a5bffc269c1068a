"""Audit step, labels of sorries: compares terms of two modules up to the places that Lean notes in sorries.

Lean gives each sorry a label with its place in the text, so that no two sorries are equal: the term is a
function of names, applied to that label (``Lean.Meta.mkLabeledSorry`` in ``src/Lean/Meta/Sorry.lean``, Lean
4.35.0). A statement with a sorry that a submission repeats further down has other labels there. Which
labels they are does not matter, but which of them are equal does: `x = x` holds and `x = y` does not. So
labels may differ in their numbers, by one renaming for all terms that are compared, in which no two labels
become one.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import cast

from farm_workers.audit.admitted import Shapes, is_sorry, parts_of
from farm_workers.audit.olean import Name
from farm_workers.audit.terms import APP, CONST, LITERAL, PROJECTION, Node, Reading

#: The parts of a label, from its end: texts and numbers.
Label = tuple[int | str, ...]

_NAME = ("Lean", "Name")
_ANONYMOUS, _TEXT, _NUMBER = (*_NAME, "anonymous"), (*_NAME, "str"), (*_NAME, "num")
_NUMERAL, _INSTANCE = ("OfNat", "ofNat"), ("instOfNatNat",)
#: The constants of which labels consist; a module that declares one of them has no labels.
_OF_LABELS = (_ANONYMOUS, _TEXT, _NUMBER, _NUMERAL, _INSTANCE)
#: More parts than a label of Lean's has.
_MOST_PARTS = 100


class Labels:
    """Compares terms, by their numbers, up to the labels of sorries; all answers share one renaming.

    `own` are the names that the module and the challenge declare. `may_move` is called once, before the first
    label that differs, and returns whether labels may differ: all sorries of the statement must be in terms
    that are compared here. Without it they may not.
    """

    def __init__(
        self, reading: Reading, own: Sequence[Container[Name]], *, may_move: Callable[[], bool] | None
    ) -> None:
        self._shapes, self._nodes, self._own_names = Shapes(reading), reading.terms.nodes, own
        self._may_move, self._moves = may_move, False
        self._renamed: dict[Label, Label] = {}
        self._origins: dict[Label, Label] = {}

    def agree(self, mine: int, other: int) -> bool:
        """Return whether a term equals one of the challenge."""
        if self._may_move is None or not self._shapes.has_sorry(mine):
            return mine == other
        found, seen, todo = dict[Label, Label](), set[tuple[int, int]](), [(mine, other)]
        while todo:
            pair = todo.pop()
            if pair in seen or (pair[0] == pair[1] and not self._shapes.has_sorry(pair[0])):
                continue
            seen.add(pair)
            self._shapes.spend()
            parts = self._parts(*pair, found)
            if parts is None:
                return False
            todo += parts
        return self._accept(found)

    def _parts(self, mine: int, other: int, found: dict[Label, Label]) -> list[tuple[int, int]] | None:
        """Return the parts of two terms that have to agree, None if the terms themselves differ."""
        labels = self._label(mine), self._label(other)
        if labels[0] is not None and labels[1] is not None:
            if found.setdefault(labels[0], labels[1]) != labels[1]:
                return None
            return [(parts_of(self._nodes[mine])[0][0], parts_of(self._nodes[other])[0][0])]
        ours, theirs = (parts_of(self._nodes[each]) for each in (mine, other))
        if not ours or len(ours) != len(theirs) or self._own(mine) != self._own(other):
            return [] if mine == other else None
        return [(part, of) for (part, _), (of, _) in zip(ours, theirs, strict=True)]

    def _own(self, number: int) -> Node:
        """Return the content of a term besides its parts."""
        node = self._nodes[number]
        return node[:3] if node[0] == PROJECTION else node[:1]

    def _accept(self, found: dict[Label, Label]) -> bool:
        """Add the labels of two equal terms to the renaming; return False if that does not allow them."""
        for mine, other in found.items():
            if self._renamed.get(mine, other) != other or self._origins.get(other, mine) != mine:
                return False
            if _texts(mine) != _texts(other):  # a sorry of another module
                return False
        if len(set(found.values())) < len(found):
            return False
        if any(mine != other for mine, other in found.items()) and not self._may_differ():
            return False
        self._renamed |= found
        self._origins |= {other: mine for mine, other in found.items()}
        return True

    def _may_differ(self) -> bool:
        if not self._moves and self._may_move is not None:
            declared = any(name in names for names in self._own_names for name in _OF_LABELS)
            self._moves = not declared and self._may_move()
            self._may_move = self._may_move if self._moves else None
        return self._moves

    def _label(self, number: int) -> Label | None:
        """Return the label of a sorry, None for another term and for a label that Lean does not write."""
        function, place = self._applied(number) or (0, 0)
        for _ in range(2):  # the flag, the type
            function = (self._applied(function) or (0, 0))[0] if function else 0
        return self._written(place) if function and is_sorry(self._nodes[function]) else None

    def _written(self, number: int) -> Label | None:
        """Return the parts of a name that is written in full."""
        label = list[int | str]()
        while len(label) < _MOST_PARTS and not self._is(number, _ANONYMOUS):
            whole = self._applied(number)
            before = None if whole is None else self._applied(whole[0])
            if whole is None or before is None:
                return None
            part = self._literal(whole[1]) if self._is(before[0], _TEXT) else None
            part = self._numeral(whole[1]) if self._is(before[0], _NUMBER) else part
            if part is None:
                return None
            label.append(part)
            number = before[1]
        return tuple(label) if self._is(number, _ANONYMOUS) else None

    def _numeral(self, number: int) -> int | str | None:
        """Return the value of a numeral that has Lean's own instance."""
        literals, function = [number], number
        if (whole := self._applied(number)) is not None:
            instance, of = self._applied(whole[1]), self._applied(whole[0])
            if instance is None or of is None or not self._is(instance[0], _INSTANCE):
                return None
            function = (self._applied(of[0]) or (number, 0))[0]
            literals = [of[1], instance[1]]
            if not self._is(function, _NUMERAL):
                return None
        values = {self._literal(each) for each in literals}
        return values.pop() if len(values) == 1 else None

    def _literal(self, number: int) -> int | str | None:
        node = self._nodes[number]
        return cast("int | str", node[1]) if node[0] == LITERAL else None

    def _applied(self, number: int) -> tuple[int, int] | None:
        """Return the function and the argument of an application."""
        node = self._nodes[number]
        return cast("tuple[int, int]", node[1:]) if node[0] == APP else None

    def _is(self, number: int, name: Name) -> bool:
        node = self._nodes[number]
        return node[0] == CONST and node[1] == name


def _texts(label: Label) -> list[str | None]:
    return [each if isinstance(each, str) else None for each in label]
