"""Audit step, holes: decides whether an answer filled one hole of a program and left the rest as it was.

The farm compiled the program with all its holes too, the parent. Both modules are compared constant by
constant and term by term, types and values: they may differ in the place of the hole and nowhere else. A
sorry of the parent is known by the place in its text that Lean notes in the term: no answer had a part in
that module. Places that Lean notes in the submission's module may be forged, and decide nothing here.

**The type of an answer.** Everything around it is the parent's, so the kernel has already compared
its type with that of the sorry, if it stands where its surroundings say which type is due: as an argument, as
the value of a `let`, or as the body of a function or the whole of a declaration whose type is due. In another
place, such as that of a function that is applied, no comparison took place, and the answer is refused.

**Names of Lean's own.** Lean names parts of declarations itself (``t._proof_1``, ``t.match_2``), counts them,
and uses one again wherever the same part comes back. So an answer may change these numbers elsewhere. Such
constants are compared by their contents wherever two of them stand in the same place.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from farm_workers.audit.declarations import Constant, ConstantKind, Module, Safety
from farm_workers.audit.findings import ModuleFinding, Word, found
from farm_workers.audit.kernel import SORRY
from farm_workers.audit.olean import Name, Olean
from farm_workers.audit.terms import (
    APP,
    CONST,
    LAMBDA,
    LET,
    LEVEL_IMAX,
    LITERAL,
    MDATA,
    NAT,
    PROJECTION,
    Reading,
    Terms,
    applied,
    is_constant,
    mentions,
    parts_of,
)

#: The arguments of a sorry that has a place: its type, a flag, and the place.
_WITH_PLACE = 3
#: The place of a sorry that has none.
_NOWHERE = (0, 0)
#: A part of a name that Lean makes and counts.
_COUNTED = re.compile(r"(match|proof|_\w+)_[0-9]+")
#: More than any expression has.
_ALL_ARGUMENTS = 1 << 30

_CHANGES = "The answer changes {}, which stands around the hole."
_REMOVES = "The answer removes {}, which stands around the hole."
_DECLARES = "The answer declares {}, which is no part of what stands in the hole."
_ASSUMES = "The answer rests on the axiom {}, which is not allowed."
_OPEN = "{} contains a sorry besides those of the other holes."
_UNTYPED = (
    "The hole in {} stands where its surroundings fix no type, as an applied function does, so the type of "
    "its answer cannot be compared with that of the hole."
)


def judge_hole(
    submission: Module,
    parent: Module,
    hole: tuple[int, int],
    below: tuple[int, int] = _NOWHERE,
    *,
    written: Module | None = None,
    believed: Collection[Name] = (),
) -> Iterator[ModuleFinding]:
    """Yield the findings against a module that fills the hole of its parent at a line and column.

    Declarations above the line and column `below` may be missing: a shared context is another module.
    `written` is the module as Lean wrote it, if the submission is a rebuilt one, which has no places of
    declarations. Axioms of its own must be `believed`: the seal evaluates their terms. Raises
    `MalformedOlean`.
    """
    terms = Terms()
    pair = _Comparison(
        submission, parent, Reading(submission.olean, terms), Reading(parent.olean, terms), hole
    )
    places = parent.ends()
    for name in filter(lambda name: _is_fixed(parent, name, places), parent.names):
        if name in submission.names:
            pair.todo.append((name, name))
        elif (_place_above(places, name) or _NOWHERE) > below or below == _NOWHERE:
            yield found(Word.TARGET_MISSING, name, _REMOVES)
    while pair.todo:
        yield from _compared(pair, *pair.todo.pop())
    yield from _open_beside(pair)
    yield from _declared_beside(pair, (written or submission).ends(), places, believed)
    if not pair.filled and not pair.is_faulty:
        yield found(Word.STATEMENT_MISMATCH, None, "The hole is not in the module as it is in its program.")


def _is_fixed(parent: Module, name: Name, places: Collection[Name]) -> bool:
    """Return whether a constant of the parent must have the same name in the module of an answer."""
    if name not in places and _is_made(name):
        return False
    # A seal leaves unsafe and partial constants out: no proof rests on them.
    constant = parent.constant(name)
    return constant is not None and constant.safety is Safety.SAFE


def _place_above(places: dict[Name, tuple[int, int]], name: Name) -> tuple[int, int] | None:
    """Return the end of the declaration that a constant belongs to, None without one."""
    return next((places[name[:end]] for end in range(len(name), 0, -1) if name[:end] in places), None)


def _is_made(name: Name) -> bool:
    """Return whether Lean made and counted a name, which then may have another number in another program."""
    if name[:1] == ("_private",) and 0 in name:
        name = name[name.index(0) + 1 :]
    return any(not isinstance(part, str) or _COUNTED.fullmatch(part) for part in name)


@dataclass(slots=True)
class _Comparison:
    """The two modules, the hole's line and column, and the findings so far.

    `todo` are pairs of constants to be compared, ours first; `walked` are those of ours whose expressions
    were compared with the parent's, and so have no sorry but the parent's; `filled` counts the places in
    which the hole was found filled. It `is_faulty` if there is a finding against a comparison.
    """

    submission: Module
    parent: Module
    ours: Reading
    theirs: Reading
    hole: tuple[int, int]
    todo: list[tuple[Name, Name]] = field(default_factory=list)
    seen: set[tuple[Name, Name]] = field(default_factory=set)
    walked: set[Name] = field(default_factory=set)
    filled: int = 0
    is_faulty: bool = False


def _compared(pair: _Comparison, our_name: Name, their_name: Name) -> Iterator[ModuleFinding]:
    """Yield the findings against a constant in the place of the parent's; add those to which both refer."""
    if (our_name, their_name) in pair.seen:
        return
    pair.seen.add((our_name, their_name))
    ours, theirs = pair.submission.constant(our_name), pair.parent.constant(their_name)
    if ours is None or theirs is None or not _is_declared_alike(ours, theirs):
        pair.is_faulty = True
        yield found(Word.STATEMENT_MISMATCH, our_name, _CHANGES)
        return
    pairs = list(zip(ours.expressions(), theirs.expressions(), strict=True))
    walk = _Walk(pair)
    walk.compare(*pairs[0], is_due=False)  # a type may be in any universe
    if _is_lemma(ours, their_name) and not mentions(pair.theirs, theirs.expressions(), SORRY):
        pairs = []  # Lean takes any lemma with the type, whatever its proof
    else:
        pair.walked.add(our_name)
    for our_place, their_place in pairs[1:]:
        walk.compare(our_place, their_place, is_due=True)
    pair.is_faulty |= walk.has_sorry or walk.differs or walk.is_untyped
    if walk.has_sorry:
        yield found(Word.HAS_SORRY, our_name, _OPEN)
    elif walk.differs or walk.is_untyped:
        sentence = _CHANGES if walk.differs else _UNTYPED
        yield found(Word.STATEMENT_MISMATCH, our_name, sentence)


def _is_declared_alike(ours: Constant, theirs: Constant) -> bool:
    """Return whether two constants agree in all but their expressions."""
    return (
        (ours.kind, ours.parameters, ours.safety) == (theirs.kind, theirs.parameters, theirs.safety)
        and (ours.numbers, ours.relatives()) == (theirs.numbers, theirs.relatives())
        and [rule.fields for rule in ours.rules] == [rule.fields for rule in theirs.rules]
        and len(ours.expressions()) == len(theirs.expressions())
    )


def _is_lemma(ours: Constant, name: Name) -> bool:
    return ours.kind is ConstantKind.THEOREM and _is_made(name)


def _open_beside(pair: _Comparison) -> Iterator[ModuleFinding]:
    """Yield a finding for each constant with a sorry that was compared with none of the parent's."""
    for name in pair.submission.names:
        ours = None if name in pair.walked else pair.submission.constant(name)
        if ours is None or ours.safety is not Safety.SAFE:
            continue
        if mentions(pair.ours, ours.expressions(), SORRY):
            yield found(Word.HAS_SORRY, name, _OPEN)


def _declared_beside(
    pair: _Comparison, places: Iterable[Name], known: Collection[Name], believed: Collection[Name]
) -> Iterator[ModuleFinding]:
    """Yield a finding for each axiom and each declaration with a text that the answer adds.

    A part of a declaration of the parent, such as a function within a proof, may belong to an answer.
    """
    for name in places:
        if not any(name[:end] in known for end in range(len(name), 0, -1)):
            yield found(Word.STATEMENT_MISMATCH, name, _DECLARES)
    for name in pair.submission.of_kind(ConstantKind.AXIOM):
        if name not in pair.parent.names and name not in believed:
            yield found(Word.AXIOM, name, _ASSUMES)


class _Walk:
    """Walks two expressions side by side; a place is `due` where its surroundings fix its type."""

    def __init__(self, pair: _Comparison) -> None:
        self._pair, self._ours, self._theirs = pair, pair.ours.olean, pair.theirs.olean
        self._seen: set[tuple[int, int, bool]] = set()
        self._todo: list[tuple[int, int, bool]] = []
        self.differs = self.has_sorry = self.is_untyped = False

    def compare(self, ours: int, theirs: int, *, is_due: bool) -> None:
        """Compare two expressions, and note their differences."""
        self._todo.append((ours, theirs, is_due))
        while self._todo and not self.differs:
            mine, other, is_due = self._todo.pop()
            step = _bare(self._pair.ours, mine), _bare(self._pair.theirs, other), is_due
            if step not in self._seen:
                self._seen.add(step)
                self._ours.spend(1)
                self._step(*step)

    def _step(self, mine: int, other: int, is_due: bool) -> None:
        place = _place(self._pair.theirs, other)
        if place is not None and place != _NOWHERE:
            self._at_sorry(mine, other, is_due, place)
        elif self._is_hole_itself(other):
            self._fill(mine, is_due, counts=True)
        elif not self._is_alike(mine, other, is_due):
            if self._may_differ(other):
                self._fill(mine, is_due, counts=False)
            else:
                self.differs = True

    def _at_sorry(self, mine: int, other: int, is_due: bool, place: tuple[int, int]) -> None:
        """Compare the parts in the place of a sorry: only the hole may have become something else."""
        if place == self._pair.hole:
            self._fill(mine, is_due, counts=True)
        elif _place(self._pair.ours, mine) in (None, _NOWHERE):
            self.differs = True
        else:
            mine_of, other_of = _sorry_of(self._ours, mine), _sorry_of(self._theirs, other)
            self.differs = not self._levels_agree(mine_of[0], other_of[0])
            self._todo += [(*each, True) for each in zip(mine_of[1:], other_of[1:], strict=True)]

    def _fill(self, mine: int, is_due: bool, *, counts: bool) -> None:
        self._pair.filled += counts
        self.is_untyped |= not is_due
        self.has_sorry |= mentions(self._pair.ours, [mine], SORRY)

    def _is_alike(self, mine: int, other: int, is_due: bool) -> bool:
        """Return whether two expressions agree in all but their parts, which are to be compared next."""
        shape = self._ours.words[mine]
        if shape != self._theirs.words[other]:
            return False
        if shape == CONST:
            return self._is_same_constant(mine, other)
        if shape == APP:
            return self._is_same_application(mine, other, is_due)
        parts = list(zip(parts_of(self._ours, mine), parts_of(self._theirs, other), strict=True))
        if not parts:
            return self._pair.ours.expression(mine) == self._pair.theirs.expression(other)
        if shape == PROJECTION and not self._is_same_projection(mine, other):
            return False
        due = {LAMBDA: (False, is_due), LET: (False, True, is_due)}.get(shape, (False,) * len(parts))
        self._todo += [(*each, is_this) for each, is_this in zip(parts, due, strict=True)]
        return True

    def _is_same_projection(self, mine: int, other: int) -> bool:
        ours, theirs = self._ours, self._theirs
        numbers = ours.nat(ours.child(mine, 1)), theirs.nat(theirs.child(other, 1))
        return numbers[0] == numbers[1] and self._are_same(*self._names(mine, other))

    def _is_same_application(self, mine: int, other: int, is_due: bool) -> bool:
        """Compare functions and arguments; a function of the text that is applied binds as a `let` does."""
        if self._is_applied_sorry(other):
            pairs = zip(parts_of(self._ours, mine), parts_of(self._theirs, other), strict=True)
            self._todo += [(*each, is_this) for each, is_this in zip(pairs, (False, True), strict=True)]
            return True
        our_head, our_arguments = applied(self._ours, mine, _ALL_ARGUMENTS)
        their_head, their_arguments = applied(self._theirs, other, _ALL_ARGUMENTS)
        if len(our_arguments) != len(their_arguments) or not self._is_same_head(our_head, their_head):
            return False
        for _ in our_arguments:
            if self._ours.words[our_head] != LAMBDA or self._theirs.words[their_head] != LAMBDA:
                is_due = False
                break
            ours, theirs = parts_of(self._ours, our_head), parts_of(self._theirs, their_head)
            self._todo.append((ours[0], theirs[0], False))
            our_head, their_head = ours[1], theirs[1]
        self._todo.append((our_head, their_head, is_due))
        self._todo += [(*each, True) for each in zip(our_arguments, their_arguments, strict=True)]
        return True

    def _is_applied_sorry(self, other: int) -> bool:
        return is_constant(self._theirs, applied(self._theirs, other, _ALL_ARGUMENTS)[0], SORRY)

    def _is_same_head(self, mine: int, other: int) -> bool:
        if self._theirs.words[other] != CONST:
            return True  # it is compared as a part
        return self._ours.words[mine] == CONST and self._is_same_constant(mine, other)

    def _is_same_constant(self, mine: int, other: int) -> bool:
        return self._levels_agree(mine, other) and self._are_same(*self._names(mine, other))

    def _names(self, mine: int, other: int) -> tuple[Name, Name]:
        return self._pair.ours.constant(mine), self._pair.theirs.constant(other)

    def _levels_agree(self, mine: int, other: int) -> bool:
        ours, theirs = self._ours.child(mine, 1), self._theirs.child(other, 1)
        return self._pair.ours.levels(ours) == self._pair.theirs.levels(theirs)

    def _are_same(self, ours: Name, theirs: Name) -> bool:
        """Return whether two names mean the same constant, or two of Lean's that are to be compared."""
        pair = self._pair
        is_own = ours in pair.submission.names
        if is_own and theirs in pair.parent.names:
            pair.todo.append((ours, theirs))
            return ours == theirs or (_is_made(theirs) and _is_made(ours))
        # A name that the submission does not declare comes from the imports, or from a context above.
        return ours == theirs and not is_own

    # Where the parent's hole makes more than its own place differ

    def _hole_below(self, other: int) -> int | None:
        """Return the hole's sorry in an expression of the parent, or in a part that Lean has named."""
        pair, seen, todo = self._pair, set[int](), [other]
        while todo:
            place = _bare(pair.theirs, todo.pop())
            if place in seen:
                continue
            seen.add(place)
            self._theirs.spend(1)
            if _place(pair.theirs, place) == pair.hole:
                return place
            todo += parts_of(self._theirs, place)
            if self._theirs.words[place] == CONST:
                todo += self._value_of_made(pair.theirs.constant(place))
        return None

    def _value_of_made(self, name: Name) -> list[int]:
        constant = self._pair.parent.constant(name) if _is_made(name) else None
        return [] if constant is None or constant.value is None else [constant.value]

    def _may_differ(self, other: int) -> bool:
        """Return whether a part of the parent with the hole in it may be something else in an answer.

        Lean elaborates the proofs about a hole for data, such as a number, with the answer in its place.
        """
        hole = self._hole_below(other)
        return hole is not None and not _is_of_proof(self._pair.theirs, hole)

    def _is_hole_itself(self, other: int) -> bool:
        """Return whether an expression of the parent is a lemma of Lean's with nothing but the hole in it.

        Lean gives a proof inside of a definition a name of its own, or none.
        """
        head, _ = applied(self._theirs, other, _ALL_ARGUMENTS)
        if self._theirs.words[head] != CONST:
            return False
        for value in self._value_of_made(self._pair.theirs.constant(head)):
            place = _bare(self._pair.theirs, value)
            while self._theirs.words[place] == LAMBDA:
                place = _bare(self._pair.theirs, parts_of(self._theirs, place)[1])
            return _place(self._pair.theirs, place) == self._pair.hole
        return False


def _bare(reading: Reading, place: int) -> int:
    """Return the place of an expression below its metadata."""
    while reading.olean.words[place] == MDATA:
        place = reading.olean.object(place, 1)
    return place


def _is_of_proof(reading: Reading, sorry: int) -> bool:
    """Return whether a sorry stands for a proof, and not for data: its type is a proposition."""
    function, _ = applied(reading.olean, sorry, _WITH_PLACE)
    level = next(iter(reading.olean.list(reading.olean.child(function, 1), "levels")), ~0)
    while level >= 0 and reading.olean.words[level] == LEVEL_IMAX:
        level = reading.olean.child(level, 1)
    return level == ~0


def _sorry_of(olean: Olean, place: int) -> tuple[int, int, int]:
    """Return the constant, the type and the flag of a sorry with a place."""
    function, (_, flag, type_) = applied(olean, place, _WITH_PLACE)
    return function, type_, flag


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
    while len(parts := applied(reading.olean, place, 2)[1]) == 2:  # a name: its prefix, its last part
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
