"""Image step, syntax: walks Lean's syntax trees."""

from __future__ import annotations

from collections.abc import Iterator

from farm_workers.binding import table
from farm_workers.binding.lean import Lean
from farm_workers.binding.objects import FALSE, NOTHING, dotted, elements, field, shared, tag

#: The constructors of `Lean.Syntax`.
NODE, ATOM, IDENTIFIER = 1, 2, 3


def leaves(syntax: int) -> Iterator[int]:
    """Yield the atoms and identifiers of a tree, in the order of the text."""
    todo = [syntax]
    while todo:
        place = todo.pop()
        if place & 1:
            continue
        if tag(place) == NODE:
            todo += reversed(elements(field(place, 2)))
        else:
            yield place


def nodes(syntax: int) -> Iterator[int]:
    """Yield all nodes of a tree, itself first."""
    todo = [syntax]
    while todo:
        place = todo.pop()
        if not place & 1 and tag(place) == NODE:
            yield place
            todo += reversed(elements(field(place, 2)))


def kind_of(node: int) -> str:
    """Return the kind of a node."""
    return dotted(field(node, 1))


def span(lean: Lean, syntax: int) -> tuple[int, int] | None:
    """Return the first byte and the end of a tree's text, None for one that is no text of the program."""
    start, end = (lean.call(place, shared(syntax), FALSE) for place in (table.START, table.END))
    if NOTHING in (start, end):
        return None
    return field(start, 0) >> 1, field(end, 0) >> 1


class Kinds:
    """The kinds of nodes that are kept while this is used: each name is read once."""

    def __init__(self) -> None:
        self._known: dict[int, str] = {}

    def of(self, node: int) -> str:
        """Return the kind of a node."""
        name = field(node, 1)
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = dotted(name)
        return known
