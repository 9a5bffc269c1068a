"""Audit step, holes: decides whether an answer filled one hole of a program and left the rest as it was.

The farm compiled the program with all its holes too, the parent. Both modules are compared constant by
constant and term by term. A sorry of the parent is known by the place in its text that Lean notes in the
term: no answer had a part in that module. What Lean notes in the submission's module may be forged, and is
not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from farm_workers.audit.declarations import Constant, Module
from farm_workers.audit.findings import ModuleFinding, Word, found
from farm_workers.audit.kernel import SORRY
from farm_workers.audit.olean import Name
from farm_workers.audit.terms import (
    LITERAL,
    MDATA,
    NAT,
    Reading,
    Terms,
    applied,
    is_constant,
    mentions,
    parts_of,
)

#: The arguments of a sorry that has a place: its type, a flag, and the place.
_WITH_PLACE = 3


@dataclass(slots=True)
class _Comparison:
    """The terms of both modules, the hole's line and column, and how often it was found filled."""

    ours: Reading
    theirs: Reading
    hole: tuple[int, int]
    filled: int = 0


def judge_hole(
    submission: Module, parent: Module, hole: tuple[int, int], below: tuple[int, int] = (0, 0)
) -> Iterator[ModuleFinding]:
    """Yield the findings against a module that fills the hole of its parent at a line and column.

    What stands above the line and column `below` is not compared: a shared context is another module.
    Raises `MalformedOlean`.
    """
    terms = Terms()
    pair = _Comparison(Reading(submission.olean, terms), Reading(parent.olean, terms), hole)
    places = parent.ends()
    for name in parent.names:
        theirs, ours = parent.constant(name), submission.constant(name)
        if name in places and places[name] > below and theirs is not None:
            yield from _kept(pair, name, ours, theirs)
    for name in submission.names:
        ours = submission.constant(name)
        if ours is not None and not _is_open_as_before(pair, ours, parent.constant(name)):
            sentence = "{} contains a sorry besides those of the other holes."
            yield found(Word.HAS_SORRY, name, sentence)
    if not pair.filled:
        yield found(Word.STATEMENT_MISMATCH, None, "The hole is not in the module as it is in its program.")


def _kept(pair: _Comparison, name: Name, ours: Constant | None, theirs: Constant) -> Iterator[ModuleFinding]:
    """Yield a finding if a declaration of the parent's text is missing, or states something else."""
    if ours is None:
        yield found(Word.TARGET_MISSING, name, "The answer removes {}, which stands around the hole.")
    elif (ours.kind, ours.parameters) != (theirs.kind, theirs.parameters) or not _states(pair, ours, theirs):
        yield found(Word.STATEMENT_MISMATCH, name, "The answer changes {}, which stands around the hole.")


def _states(pair: _Comparison, ours: Constant, theirs: Constant) -> bool:
    """Return whether two constants have one type, or the parent's type has a sorry, which tells its place."""
    if mentions(pair.theirs, [theirs.type], SORRY):
        return True
    return pair.ours.expression(ours.type) == pair.theirs.expression(theirs.type)


def _is_open_as_before(pair: _Comparison, ours: Constant, theirs: Constant | None) -> bool:
    """Return whether every sorry of a constant stands where the parent's constant has one of another hole."""
    if theirs is None or len(ours.expressions()) != len(theirs.expressions()):
        return not mentions(pair.ours, ours.expressions(), SORRY)
    return all(_fills(pair, *each) for each in zip(ours.expressions(), theirs.expressions(), strict=True))


def _fills(pair: _Comparison, ours: int, theirs: int) -> bool:
    """Return whether a term has sorries only where the parent's has those of other holes.

    Where the terms differ in another way, ours must have none.
    """
    seen, todo, is_fine = set[tuple[int, int]](), [(ours, theirs)], True
    while todo:
        mine, other = todo.pop()
        mine, other = _bare(pair.ours, mine), _bare(pair.theirs, other)
        if (mine, other) in seen:
            continue
        seen.add((mine, other))
        pair.ours.olean.spend(1)
        place = _place(pair.theirs, other)
        if place is None and _is_built_alike(pair, mine, other):
            todo += zip(parts_of(pair.ours.olean, mine), parts_of(pair.theirs.olean, other), strict=True)
        elif place is None or place == pair.hole:
            pair.filled += place is not None or _has_hole(pair, other)
            is_fine = is_fine and not mentions(pair.ours, [mine], SORRY)
    return is_fine


def _bare(reading: Reading, place: int) -> int:
    """Return the place of an expression below its metadata."""
    while reading.olean.words[place] == MDATA:
        place = reading.olean.object(place, 1)
    return place


def _is_built_alike(pair: _Comparison, mine: int, other: int) -> bool:
    """Return whether two expressions agree in all but their parts."""
    ours, theirs = pair.ours.olean, pair.theirs.olean
    if ours.words[mine] != theirs.words[other]:
        return False
    return bool(parts_of(ours, mine)) or pair.ours.expression(mine) == pair.theirs.expression(other)


def _has_hole(pair: _Comparison, root: int) -> bool:
    """Return whether the parent's sorry in the place of the hole is in an expression of the parent."""
    seen, todo = set[int](), [root]
    while todo:
        place = todo.pop()
        if place in seen:
            continue
        seen.add(place)
        pair.theirs.olean.spend(1)
        if _place(pair.theirs, place) == pair.hole:
            return True
        todo += parts_of(pair.theirs.olean, place)
    return False


#: The place of a sorry that has none.
_NOWHERE = (0, 0)


def _place(reading: Reading, root: int) -> tuple[int, int] | None:
    """Return the line and column that Lean notes in a sorry; None for another expression.

    Lean writes a name into the term whose numbers are the line and column of the sorry's start, those of its
    end, and others (``Lean.Meta.mkLabeledSorry`` in ``src/Lean/Meta/Sorry.lean``, Lean 4.35.0).
    """
    function, arguments = applied(reading.olean, root, _WITH_PLACE)
    if not is_constant(reading.olean, function, SORRY) or len(arguments) < _WITH_PLACE - 1:
        return None
    if len(arguments) < _WITH_PLACE:
        return _NOWHERE
    numbers, place = list[int](), arguments[0]
    while len(parts := applied(reading.olean, place, 2)[1]) == 2:  # a name: what is before, a part
        number = _number(reading, parts[0])
        numbers += [] if number is None else [number]
        place = parts[1]
    numbers.reverse()
    return (numbers[0], numbers[1]) if len(numbers) > 1 else _NOWHERE


def _number(reading: Reading, place: int) -> int | None:
    """Return the number that a term is, as Lean writes it into a name; None for a text."""
    olean = reading.olean
    arguments = applied(olean, place, _WITH_PLACE)[1]
    place = (
        arguments[1] if len(arguments) == _WITH_PLACE else place
    )  # of `OfNat.ofNat Nat 5 (instOfNatNat 5)`
    if olean.words[place] != LITERAL or olean.words[olean.object(place, 0)] != NAT:
        return None
    value = reading.literal(olean.object(place, 0))
    return value if isinstance(value, int) else None
