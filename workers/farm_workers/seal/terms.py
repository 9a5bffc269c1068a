"""Seal step, terms: copies a submission's levels and expressions into the image of the rebuilt module.

Each term is put once, after its parts and without metadata. Its derived word (hash, flags) is computed again;
the submission's is never read. No function recurs on terms: the places of all parts are gathered first, and
put in the order of the file, in which parts precede the terms that contain them.
"""

from __future__ import annotations

from collections.abc import Callable

from farm_workers.audit.olean import FIRST, MalformedOlean, Name, Olean
from farm_workers.audit.terms import (
    APP,
    BVAR,
    CONST,
    FVAR,
    LAMBDA,
    LET,
    LEVEL_IMAX,
    LEVEL_MAX,
    LEVEL_MVAR,
    LEVEL_PARAMETER,
    LEVEL_PARTS,
    LEVEL_SUCC,
    LITERAL,
    MDATA,
    MVAR,
    NAT,
    PAIRS,
    PI,
    PROJECTION,
    SORT,
    TEXT,
    parts_of,
)
from farm_workers.binding import table
from farm_workers.binding.lean import Lean
from farm_workers.seal.image import ModuleImage
from farm_workers.seal.memory import WORDS
from farm_workers.seal.native import Trusted

#: The largest index of a bound variable: for a larger one Lean panics and continues with a wrong word.
FURTHEST_BINDER = (1 << 20) - 2
_BINDER_KINDS = 4


class TermWriter:
    """Puts terms of a file into an image; methods take places in the file and return addresses.

    `constants` are all names in the terms; `is_open` is true if a term has a free variable or a hole.
    With `trusted`, uses of `Lean.ofReduceBool` become axioms.
    """

    def __init__(self, lean: Lean, olean: Olean, image: ModuleImage, trusted: Trusted | None) -> None:
        self.olean, self.image, self.trusted = olean, image, trusted
        self.constants: set[Name] = set()
        self.is_open = False
        self._terms: dict[int, int] = {}
        self._levels: dict[int, int] = {~0: 1}
        self._lists: dict[int, int] = {~0: 1}
        self._made = _makers(lean)
        self._leaves: dict[int, Callable[[int], int]] = {
            BVAR: self._variable,
            FVAR: self._hole,
            MVAR: self._hole,
            SORT: self._sort,
            CONST: self._constant,
            LITERAL: self._literal,
            PROJECTION: self._projection,
            MDATA: self._marked,
            LET: self._let,
        }

    # Expressions

    def term(self, root: int) -> int:
        """Put an expression."""
        if root < 0:
            raise self.olean.wrong(root, "expression")
        if root not in self._terms:
            self._put(self._gathered(root))
        return self._terms[root]

    def _gathered(self, root: int) -> list[int]:
        """Return the places of an expression's parts that are not put yet, in the order of the file."""
        olean, known, found, todo = self.olean, self._terms, list[int](), [root]
        words, base = olean.words, olean.base
        pairs = PAIRS if self.trusted is None else {}
        while todo:
            place = todo.pop()
            if place in known:
                continue
            known[place] = 0
            found.append(place)
            first = pairs.get(words[place])
            if first is None:
                if self.trusted is None or not self._is_axiom(self.trusted, place):
                    todo += parts_of(olean, place)
                continue
            one, other = words[place + first] - base, words[place + first + 1] - base
            if (one | other) & 7 or not FIRST <= one < place << 3 or not FIRST <= other < place << 3:
                raise MalformedOlean("pointer that does not point backwards", place << 3)
            todo += (one >> 3, other >> 3)
        olean.spend(len(found))
        found.sort()
        return found

    def _is_axiom(self, trusted: Trusted, place: int) -> bool:
        """Replace an expression by its axiom about compiled code; returns False if it has none."""
        axiom = trusted.axiom(place)
        if axiom is not None:
            self._terms[place] = self.image.const(axiom.name, self.levels(axiom.levels))
        return axiom is not None

    def _put(self, places: list[int]) -> None:
        """Put expressions whose parts are put or precede them; for a large module most time is spent here."""
        olean, image, known, leaves = self.olean, self.image, self._terms, self._leaves
        words, base, put = olean.words, olean.base, image.put
        apply = self._made[APP]
        for place in places:
            shape = words[place]
            if shape == APP:
                if known[place]:
                    continue  # an axiom has taken its place
                one = known[words[place + 1] - base >> 3]
                other = known[words[place + 2] - base >> 3]
                known[place] = put(APP, one, other, WORDS[(apply(one, other) >> 3) + 3])
            elif shape in (LAMBDA, PI):
                known[place] = self._binder(place, shape)
            else:
                known[place] = leaves[shape](place)

    def _binder(self, place: int, shape: int) -> int:
        words, base = self.olean.words, self.olean.base
        kind = words[place + 5] & 0xFF
        if kind >= _BINDER_KINDS:
            raise self.olean.wrong(place, "kind of a binder")
        name = self._name(place)
        type_ = self._terms[words[place + 2] - base >> 3]
        body = self._terms[words[place + 3] - base >> 3]
        word = WORDS[(self._made[shape](name, type_, body, kind) >> 3) + 4]
        return self.image.put(shape, name, type_, body, word, kind)

    def _let(self, place: int) -> int:
        name = self._name(place)
        parts = [self._terms[self.olean.object(place, number)] for number in (1, 2, 3)]
        lasting = int(self.olean.flag(place, 5, 0))
        word = WORDS[(self._made[LET](name, *parts, lasting) >> 3) + 5]
        return self.image.put(LET, name, *parts, word, lasting)

    def _marked(self, place: int) -> int:
        return self._terms[self.olean.object(place, 1)]

    def _variable(self, place: int) -> int:
        number = self.olean.number(self.olean.child(place, 0))
        if number > FURTHEST_BINDER:
            raise MalformedOlean("variable that is bound too far out", place << 3)
        return self._leaf(BVAR, number << 1 | 1)

    def _hole(self, place: int) -> int:
        self.is_open = True
        return self._leaf(self.olean.words[place], self._name(place))

    def _sort(self, place: int) -> int:
        return self._leaf(SORT, self.level(self.olean.child(place, 0)))

    def _leaf(self, shape: int, held: int) -> int:
        return self.image.put(shape, held, WORDS[(self._made[shape](held) >> 3) + 2])

    def _constant(self, place: int) -> int:
        name = self.olean.name(self.olean.child(place, 0))
        self.constants.add(name)
        return self.image.const(name, self.levels(self.olean.child(place, 1)))

    def _projection(self, place: int) -> int:
        name = self.olean.name(self.olean.child(place, 0))
        self.constants.add(name)
        held, field = self.image.name(name), self.olean.number(self.olean.child(place, 1)) << 1 | 1
        inner = self._terms[self.olean.object(place, 2)]
        word = WORDS[(self._made[PROJECTION](held, field, inner) >> 3) + 4]
        return self.image.put(PROJECTION, held, field, inner, word)

    def _literal(self, place: int) -> int:
        held = self.olean.object(place, 0)
        shape, value = self.olean.words[held], self.olean.child(held, 0)
        if shape == NAT:
            content = self.image.nat(self.olean.nat(value))
        elif shape == TEXT:
            content = self.image.string(self.olean.string(value))
        else:
            raise self.olean.wrong(held, "literal")
        return self._leaf(LITERAL, self.image.put(shape, content))

    def _name(self, place: int) -> int:
        return self.image.name(self.olean.name(self.olean.child(place, 0)))

    # Levels

    def levels(self, ref: int) -> int:
        """Put a list of levels."""
        found = self._lists.get(ref)
        if found is None:
            levels = [self.level(each) for each in self.olean.list(ref, "levels")]
            found = self._lists[ref] = self.image.list(levels)
        return found

    def level(self, root: int) -> int:
        """Put a level; the level zero is a number."""
        known, olean, found, todo = self._levels, self.olean, list[int](), [root]
        while todo:
            place = todo.pop()
            if place in known:
                continue
            parts = None if place < 0 else LEVEL_PARTS.get(olean.words[place])
            if parts is None:
                raise olean.wrong(place, "level")
            known[place] = 0
            found.append(place)
            todo.extend(olean.child(place, word - 1) for word in parts)
        olean.spend(len(found))
        for place in sorted(found):
            known[place] = self._level(place)
        return known[root]

    def _level(self, place: int) -> int:
        shape = self.olean.words[place]
        self.is_open |= shape == LEVEL_MVAR
        if shape in (LEVEL_PARAMETER, LEVEL_MVAR):
            held = [self._name(place)]
        else:
            held = [self._levels[self.olean.child(place, word - 1)] for word in LEVEL_PARTS[shape]]
        word = WORDS[(self._made[~shape](*held) >> 3) + 1 + len(held)]
        return self.image.put(shape, *held, word)


def _makers(lean: Lean) -> dict[int, Callable[..., int]]:
    """Return Lean's constructors by the shapes of their objects; those of levels by ``~`` of the shape."""
    makers = {
        BVAR: table.VARIABLE,
        FVAR: table.FREE,
        MVAR: table.HOLE,
        SORT: table.SORT,
        APP: table.APP,
        LAMBDA: table.LAMBDA,
        PI: table.FORALL,
        LET: table.LET,
        LITERAL: table.LITERAL,
        PROJECTION: table.PROJECTION,
        ~LEVEL_SUCC: table.LEVEL_SUCC,
        ~LEVEL_MAX: table.LEVEL_MAX,
        ~LEVEL_IMAX: table.LEVEL_IMAX,
        ~LEVEL_PARAMETER: table.LEVEL_PARAMETER,
        ~LEVEL_MVAR: table.LEVEL_HOLE,
    }
    return {shape: lean.runtime(maker) for shape, maker in makers.items()}
