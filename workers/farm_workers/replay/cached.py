"""Replay step, cached words: checks the cached words of names, levels and terms by having Lean compute them.

Each of these objects carries a word that Lean computed when it made the object: a hash, and for terms which
variables are open in it. The kernel trusts that word and skips work accordingly, such as substituting a
variable that the word does not list. Lean checks no such word when it maps a file. So Lean makes each object
again from its own parts, and the result must have the word that stands in the file. As parts stand before the
whole, all words are right when each is.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable

from farm_workers.binding import table
from farm_workers.binding.lean import Lean
from farm_workers.binding.objects import dotted, field, members, tag
from farm_workers.binding.table import RuntimeFunction
from farm_workers.replay.parts import GROUPS, LEVEL, LEVELS, NAME, NAMES, NUMBER, RULES, TERM, VALUES

_Word = ctypes.c_size_t

#: How each is made: kind and constructor, then the function, its parts, whether a byte is behind the word.
_MADE: dict[tuple[int, int], tuple[RuntimeFunction, tuple[int, ...], bool]] = {
    (NAME, 1): (table.NAME_STRING, (NAME, NUMBER), False),
    (NAME, 2): (table.NAME_NUMBER, (NAME, NUMBER), False),
    (LEVEL, 1): (table.LEVEL_SUCC, (LEVEL,), False),
    (LEVEL, 2): (table.LEVEL_MAX, (LEVEL, LEVEL), False),
    (LEVEL, 3): (table.LEVEL_IMAX, (LEVEL, LEVEL), False),
    (LEVEL, 4): (table.LEVEL_PARAMETER, (NAME,), False),
    (LEVEL, 5): (table.LEVEL_HOLE, (NAME,), False),
    (TERM, 0): (table.VARIABLE, (NUMBER,), False),
    (TERM, 1): (table.FREE, (NAME,), False),
    (TERM, 2): (table.HOLE, (NAME,), False),
    (TERM, 3): (table.SORT, (LEVEL,), False),
    (TERM, 4): (table.CONST, (NAME, LEVELS), False),
    (TERM, 5): (table.APP, (TERM, TERM), False),
    (TERM, 6): (table.LAMBDA, (NAME, TERM, TERM), True),
    (TERM, 7): (table.FORALL, (NAME, TERM, TERM), True),
    (TERM, 8): (table.LET, (NAME, TERM, TERM, TERM), True),
    (TERM, 9): (table.LITERAL, (NUMBER,), False),
    (TERM, 10): (table.MARKED, (NUMBER, TERM), False),
    (TERM, 11): (table.PROJECTION, (NAME, NUMBER, TERM), False),
}


class Forged(Exception):
    """An object carries another cached word than Lean computes."""


class Cached:
    """Looks through objects of one file, at each of them once."""

    def __init__(self, lean: Lean) -> None:
        self._made = {
            what: (lean.runtime(maker), parts, more) for what, (maker, parts, more) in _MADE.items()
        }
        self._seen: tuple[set[int], ...] = (set(), set(), set())
        self._todo: list[tuple[int, int]] = []

    def examine(self, names: Iterable[int], constants: Iterable[int]) -> None:
        """Look at names, and at all that constants consist of; raises `Forged`."""
        for name in names:
            self._gather(NAME, name)
            self._empty()
        for constant in constants:
            if tag(constant) >= len(VALUES):
                raise Forged("a constant of an unknown kind")
            value = field(constant, 0)
            for number, kind in enumerate(VALUES[tag(constant)]):
                self._gather(kind, field(value, number))
            try:
                self._empty()
            except Forged as error:
                raise Forged(f"{dotted(field(field(value, 0), 0))}: {error}") from None

    def _gather(self, kind: int, place: int) -> None:
        """Add an object to the list of those to check; anonymous names and the level zero are no objects."""
        if kind <= TERM:
            if place & 1 == 0 and place not in self._seen[kind]:
                self._seen[kind].add(place)
                self._todo.append((kind, place))
        elif kind in (NAMES, LEVELS):
            for member in members(place):
                self._gather(NAME if kind == NAMES else LEVEL, member)
        elif kind in GROUPS:
            for each in members(place) if kind == RULES else (place,):
                for number, part in enumerate(GROUPS[kind]):
                    self._gather(part, field(each, number))

    def _empty(self) -> None:
        while self._todo:
            kind, place = self._todo.pop()
            self._look(kind, place)

    def _look(self, kind: int, place: int) -> None:
        header, *_ = start = (_Word * 7).from_address(place)
        make, kinds, more = self._made.get((kind, header >> 56), (None, (), False))
        count = len(kinds)
        if make is None or header >> 48 & 0xFF != count:
            raise Forged("no name, level or term where one is required")
        parts = start[1 : 1 + count]
        for part, what in zip(parts, kinds, strict=True):
            if part >= place and not part & 1:
                raise Forged("an object is stored before one of its parts")
            self._gather(what, part)
        made = make(*parts, start[2 + count] & 0xFF) if more else make(*parts)
        if field(made, count) != start[1 + count]:
            raise Forged("an object's cached hash or flags differ from those that Lean computes")
