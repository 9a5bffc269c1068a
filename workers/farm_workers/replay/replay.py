"""Replay step, the replay: sends the module's constants through the kernel, on top of its imports.

`Lean.Kernel.Environment.replay` adds constants in the order of their dependencies. It skips unsafe and
partial ones, takes a theorem that an import has already stated for proved, and compares constructors and
recursors only with those that the kernel has made of the inductive types. Therefore each constant is looked
up afterwards: the kernel must hold an equal one, and none of the skipped ones.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from farm_workers.binding import table
from farm_workers.binding.lean import Lean
from farm_workers.binding.objects import (
    FALSE,
    NAME_STRING,
    NOTHING,
    TRUE,
    LeanError,
    boxed,
    dotted,
    elements,
    field,
    members,
    shared,
    tag,
    text,
    word,
)
from farm_workers.binding.table import RuntimeFunction
from farm_workers.replay.parts import (
    GROUPS,
    HEADER,
    LEVEL,
    LEVELS,
    MARKS,
    NAME,
    NAMES,
    NUMBER,
    RULES,
    TERM,
    VALUES,
)

#: The kernel's words when it has found out nothing about the declaration.
_GAVE_UP = re.compile(
    r"^\(kernel\) (deep recursion|deterministic timeout|excessive memory|interrupted)", re.M
)


class KernelRefused(Exception):
    """The kernel refuses a constant, or makes another one of its declaration."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Replayed:
    """The number of constants that the kernel has accepted, and the names of the skipped ones."""

    constants: int
    skipped: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Module:
    imports: int
    names: Sequence[int]
    constants: Sequence[int]


def replay(lean: Lean, path: str) -> Replayed:
    """Replay a module; raises `KernelRefused`, and LeanError when it cannot be done."""
    module = _read(lean, path)
    try:
        imported = [lean.get(table.IMPORTED_MODULE, each) for each in elements(module.imports)]
        Cached(lean).examine([*imported, *module.names], module.constants)
    except Forged as error:
        raise KernelRefused(str(error)) from error
    environment = _imported(lean, module.imports)
    after = replayed(lean, module.names, module.constants, environment)
    return compared(lean, module.names, module.constants, after)


def _read(lean: Lean, path: str) -> _Module:
    root = field(lean.call(table.READ_MODULE, lean.string(path)), 0)
    if lean.get(table.IS_MODULE, root):
        raise LeanError(f"{path}: it belongs to Lean's module system, which the replay does not support")
    module = _Module(
        imports=lean.get(table.IMPORTS, root),
        names=elements(lean.get(table.NAMES, root)),
        constants=elements(lean.get(table.CONSTANTS, root)),
    )
    if len(module.names) != len(module.constants):
        raise KernelRefused("the numbers of names and constants differ")
    return module


def _imported(lean: Lean, imports: int) -> int:
    """Return the kernel's environment after the imports; no code of the imports is run."""
    trust, plugins, leaks, loads = boxed(0), lean.array([]), FALSE, FALSE
    level = boxed(lean.number(table.WHOLE_MODULE))
    artifacts = lean.call(table.NO_ARTIFACTS)
    options = lean.constant(table.NO_OPTIONS)
    words = imports, options, trust, plugins, leaks, loads, level, artifacts
    return lean.call(table.OF_KERNEL, lean.call(table.IMPORT, *words))


def replayed(lean: Lean, names: Sequence[int], constants: Sequence[int], environment: int) -> int:
    """Return the kernel's environment after the replay; raises `KernelRefused`, LeanError if it gave up."""
    equal, hashed = lean.constant(table.NAME_EQUAL), lean.constant(table.NAME_HASH)
    known = lean.call(table.EMPTY_MAP, equal, hashed, boxed(len(names)))
    insert = lean.function(table.INSERT)
    for name, constant in zip(names, constants, strict=True):
        known = insert(equal, hashed, known, name, constant)
    if field(known, 0) >> 1 != len(names):
        raise KernelRefused("two constants have the same name")
    try:
        if lean.has(table.REPLAY):
            return lean.call(table.REPLAY, known, environment)
        after = lean.call(table.REPLAY_VIEW, known, lean.call(table.VIEW_OF_KERNEL, environment))
        return lean.call(table.OF_KERNEL, after)
    except LeanError as error:
        if _GAVE_UP.search(str(error)):
            raise
        raise KernelRefused(str(error)) from error


def compared(lean: Lean, names: Sequence[int], constants: Sequence[int], environment: int) -> Replayed:
    """Compare constants with those that the kernel holds after the replay; raises `KernelRefused`."""
    skipped, accepted = [], 0
    find, equal = lean.function(table.FIND), equality(lean)
    tests = [lean.function(each) for each in (table.IS_UNSAFE, table.IS_PARTIAL)]
    for name, constant in zip(names, constants, strict=True):
        known = find(shared(environment), name)
        if any(test(constant) == TRUE for test in tests):
            if known != NOTHING:
                raise KernelRefused(f"{dotted(name)}: unsafe or partial here, but known to the kernel")
            skipped.append(dotted(name))
        elif known == NOTHING or not equal(field(known, 0), constant):
            raise KernelRefused(f"{dotted(name)}: differs from the kernel's own result for the declaration")
        else:
            accepted += 1
    return Replayed(constants=accepted, skipped=tuple(skipped))


# Each of these objects carries a word that Lean computed when it made the object: a hash, and for terms which
# variables are open in it. The kernel trusts that word and skips work accordingly, such as substituting a
# variable that the word does not list. Lean checks no such word when it maps a file. So Lean makes each
# object again from its own parts, and the result must have the word that stands in the file. As parts stand
# before the whole, all words are right when each is.


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


# Recent releases compare constants themselves. For others the farm compares all parts: names, numbers and
# marks here, terms by Lean (``Expr.eqv``, equality up to the names of bound variables).


#: The truth value in the result of a function of C, and the bytes of the number in a definition's hints.
_BYTE, _HINTS_BYTES = 0xFF, 4


def equality(lean: Lean) -> Callable[[int, int], bool]:
    """Return the function that compares two constants."""
    if not lean.has(table.SAME_CONSTANT):
        return partial(_same_constant, lean)
    same = lean.function(table.SAME_CONSTANT)
    return lambda one, other: same(one, other) == TRUE


def _same_constant(lean: Lean, one: int, other: int) -> bool:
    kind = tag(one)
    if kind != tag(other) or kind >= len(VALUES):
        return False
    ones, others = field(one, 0), field(other, 0)
    behind = 8 + 8 * len(VALUES[kind])
    marks = (ctypes.string_at(each + behind, MARKS[kind]) for each in (ones, others))
    return _same_parts(lean, VALUES[kind], ones, others) and next(marks) == next(marks)


def _same_parts(lean: Lean, kinds: tuple[int, ...], one: int, other: int) -> bool:
    return all(
        _same(lean, kind, field(one, number), field(other, number)) for number, kind in enumerate(kinds)
    )


def _same(lean: Lean, kind: int, one: int, other: int) -> bool:
    if kind == NAME:
        return _same_name(one, other)
    if kind == TERM:
        return bool(lean.runtime(table.SAME_TERM)(one, other) & _BYTE)
    if kind == HEADER:
        return _same_parts(lean, GROUPS[HEADER], one, other)
    if kind in (NAMES, RULES):
        return _same_list(lean, kind, list(members(one)), list(members(other)))
    return one == other or _same_hints(one, other)


def _same_list(lean: Lean, kind: int, ones: list[int], others: list[int]) -> bool:
    pairs = zip(ones, others, strict=False)
    if kind == NAMES:
        return len(ones) == len(others) and all(_same_name(*pair) for pair in pairs)
    return len(ones) == len(others) and all(_same_parts(lean, GROUPS[RULES], *pair) for pair in pairs)


def _same_hints(one: int, other: int) -> bool:
    """Compare the hints of two definitions, which are a number in a box where they are any."""
    if one & 1 or other & 1 or word(one) >> 32 != word(other) >> 32:
        return False
    return ctypes.string_at(one + 8, _HINTS_BYTES) == ctypes.string_at(other + 8, _HINTS_BYTES)


def _same_name(one: int, other: int) -> bool:
    while not (one & 1 or other & 1):
        if tag(one) != tag(other):
            return False
        last, its = field(one, 1), field(other, 1)
        if (text(last) != text(its)) if tag(one) == NAME_STRING else (last != its):
            return False
        one, other = field(one, 0), field(other, 0)
    return one == other
