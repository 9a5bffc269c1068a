"""Audit step, mentions: finds the constants in all terms of a module in one pass over its file.

Lean writes a term behind its parts. So each object is visited once, in the order of the file, and a term has
the union of its parts' sets. A module's terms have few distinct sets of constants: each set is a number, two
numbers are united once, and the result is remembered. A pass in which a part comes after the whole, or is no
term, ends with `MalformedOlean`: the pass never guesses.
"""

from __future__ import annotations

from collections.abc import Callable

from farm_workers.audit.declarations import Constant
from farm_workers.audit.olean import FIRST, MalformedOlean, Name, Olean
from farm_workers.audit.terms import APP, CONST, LAMBDA, PARTS, PI, PROJECTION

_ARRAY, _SCALARS, _STRING, _BIG = 246, 248, 249, 250
#: The words of the other objects that a file can hold: a thunk, a task and a reference.
_SIZES = {251: 3, 252: 3, 253: 2}
#: The largest tag of a constructor, and the first bytes of each part of a module.
_CONSTRUCTORS, _PART = 244, int.from_bytes(b"olean", "little")
_BINDERS = (LAMBDA, PI)
#: The shapes of terms other than applications, functions and types of functions.
_OTHERS = {shape: parts for shape, parts in PARTS.items() if shape not in (APP, LAMBDA, PI)}


class Mentions:
    """The sets of constants in the terms of a module, as the bits of numbers; `bits` has those of a name."""

    def __init__(self, olean: Olean, bits: Callable[[Name], int]) -> None:
        self._olean, self._bits = olean, bits
        self._sets, self._numbers = [0], {0: 0}
        self._united: dict[int, int] = {}
        self._names: dict[int, int] = {}
        #: The number of each term's set, by the term's address.
        self._terms: dict[int, int] = {}
        try:
            self._visit()
        except (KeyError, IndexError) as error:
            raise MalformedOlean("term with a part that is no term before it") from error

    def of(self, constant: Constant) -> int:
        """Return the set of all terms of a constant."""
        found = 0
        for place in constant.expressions():
            number = self._terms.get(self._olean.base + (place << 3))
            if number is None:
                raise MalformedOlean("constant with a term that is none", place << 3)
            found |= self._sets[number]
        return found

    def _visit(self) -> None:
        """Visit all objects; a large library spends its time here, so the frequent shapes are inline."""
        words, base, end, terms, united = (
            self._olean.words,
            self._olean.base,
            self._olean.root,
            self._terms,
            self._united,
        )
        place, sizes = FIRST >> 3, dict[int, int]()
        while place < end:
            shape = words[place]
            if shape == APP:
                one, other = terms[words[place + 1]], terms[words[place + 2]]
                size = 4
            elif shape in _BINDERS:
                one, other = terms[words[place + 2]], terms[words[place + 3]]
                size = 6
            elif size := sizes.get(shape, 0):
                place += size
                continue
            else:
                size = self._other(place, shape, sizes)
                place += size
                continue
            if one != other and other:
                if one:
                    pair = one << 32 | other
                    found = united.get(pair)
                    one = self._unite(pair, one, other) if found is None else found
                else:
                    one = other
            terms[base + (place << 3)] = one
            place += size
        if place != end:
            raise MalformedOlean("object that does not end before the root", end << 3)

    def _unite(self, pair: int, one: int, other: int) -> int:
        found = self._united[pair] = self._number(self._sets[one] | self._sets[other])
        return found

    def _number(self, bits: int) -> int:
        found = self._numbers.setdefault(bits, len(self._sets))
        if found == len(self._sets):
            self._sets.append(bits)
        return found

    def _other(self, place: int, shape: int, sizes: dict[int, int]) -> int:
        """Visit an object that is no application or binder; return its size in words."""
        if shape in _OTHERS:
            self._terms[self._olean.base + (place << 3)] = self._leaf(place, shape)
            return (shape >> 32 & 0xFFFF) + 7 >> 3
        size = _size(self._olean, place, shape)
        if shape >> 56 <= _CONSTRUCTORS and shape:
            sizes[shape] = size
        return size

    def _leaf(self, place: int, shape: int) -> int:
        words, found = self._olean.words, 0
        for word in _OTHERS[shape]:
            part = self._terms[words[place + word]]
            found = self._unite(found << 32 | part, found, part)
        if shape in (CONST, PROJECTION):
            pointer = words[place + 1]
            number = self._names.get(pointer)
            if number is None:
                name = self._olean.name(self._olean.child(place, 0))
                number = self._names[pointer] = self._number(self._bits(name))
            found = self._unite(found << 32 | number, found, number)
        return found


def _size(olean: Olean, place: int, shape: int) -> int:
    """Return the size of an object in words; raises `MalformedOlean` for one that no file holds."""
    words, tag, left = olean.words, shape >> 56, olean.root - place
    size = 0
    if not shape:  # between the parts of a module
        size = 1
    elif shape & 0xFFFFFFFFFF == _PART:
        size = FIRST >> 3
    elif shape & 0xFFFFFFFF == 0 and left > 2:
        if tag <= _CONSTRUCTORS:
            size = (shape >> 32 & 0xFFFF) + 7 >> 3
        elif tag == _ARRAY:
            size = 3 + words[place + 1]
        elif tag == _SCALARS:
            size = 3 + (words[place + 1] * (shape >> 48 & 0xFF) + 7 >> 3)
        elif tag == _STRING:
            size = 4 + (words[place + 1] + 7 >> 3)
        elif tag == _BIG:
            size = 3 + (words[place + 1] >> 32)
        else:
            size = _SIZES.get(tag, 0)
    if not 0 < size <= left:
        raise MalformedOlean("object of unknown size", place << 3)
    return size
