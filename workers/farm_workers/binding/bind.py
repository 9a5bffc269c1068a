"""Binding step, binding: matches the table with a toolchain's description, entry by entry. Pure.

A function is bound by the names of its parameters: those that the farm gives go to their places, others get
their literal default. An entry that does not match is a misfit with its name, and takes away the abilities
that rest on it; no function is called on a guess.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from farm_workers.binding.mangling import symbol_of
from farm_workers.binding.signatures import BOXED_SMALL, SCALAR_BYTES, Description, Member, Parameter, Shape
from farm_workers.binding.table import (
    ABILITIES,
    Ability,
    Constructor,
    Entry,
    Function,
    Gives,
    LibraryConstant,
    OneOf,
    RuntimeFunction,
    Structure,
    StructureField,
    Taken,
)

#: The word for an erased argument and for the world: any word would do.
_NOTHING = 1
#: Compiled functions of more parameters take them in an array where they are called through a closure.
_MOST_PARAMETERS = 16


class Misfit(Exception):
    """An entry of the table that a toolchain does not have, or has in another form: names it and says why."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """How to call a function: each word is the number of one that the farm gives, or ``~n`` for the word n.

    `holds_value`: the result of an action that cannot fail is an object that holds the value.
    """

    symbol: str
    words: tuple[int, ...]
    holds_value: bool = False


@dataclass(frozen=True, slots=True)
class FieldPlace:
    """The first byte of a field in an object, and its size; the size is 0 if the object is the field."""

    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class Layout:
    """How to make an object: the numbers of the given fields, those of scalars with place and size."""

    pointers: tuple[int, ...]
    scalars: tuple[tuple[int, int, int], ...]
    size: int


Bound = Invocation | FieldPlace | Layout | int | str


@dataclass(frozen=True, slots=True)
class Binding:
    """Every entry of the table as a toolchain has it; `lacking` says why an ability is not to be had."""

    lean: str
    source: str
    plain_actions: bool
    entries: Mapping[Entry, Bound]
    lacking: Mapping[Ability, str]


def bind(description: Description, exported: Callable[[str], bool]) -> Binding:
    """Bind the table to a toolchain; `exported` returns whether its library has a symbol."""
    entries: dict[Entry, Bound] = {}
    lacking: dict[Ability, str] = {}
    matched = cache(_Matching(description, exported).entry)
    for ability, needed in ABILITIES.items():
        for one in needed:
            misfits = []
            for entry in one.entries if isinstance(one, OneOf) else (one,):
                try:
                    entries[entry] = matched(entry)
                    break
                except Misfit as misfit:
                    misfits.append(str(misfit))
            else:
                lacking.setdefault(ability, "; ".join(misfits))
    if Ability.START in lacking:
        lacking = {ability: lacking.get(ability, lacking[Ability.START]) for ability in Ability}
    return Binding(description.lean, description.source, description.plain_actions, entries, lacking)


class _Matching:
    def __init__(self, description: Description, exported: Callable[[str], bool]) -> None:
        self._description, self._exported = description, exported

    def entry(self, entry: Entry) -> Bound:
        """Return an entry as the toolchain has it; raises `Misfit`."""
        match entry:
            case RuntimeFunction():
                return self._symbol(entry.symbol, entry.symbol)
            case Function():
                return self._function(entry)
            case LibraryConstant():
                return self._constant(entry)
            case StructureField():
                return _place(entry, self._parts(entry.structure))
            case Structure():
                return _layout(entry, self._parts(entry.name))
            case Constructor():
                return self._constructor(entry)

    def _symbol(self, symbol: str, name: str) -> str:
        if not self._exported(symbol):
            raise Misfit(f"{name}: the library has no symbol {symbol}")
        return symbol

    def _constant(self, entry: LibraryConstant) -> str:
        if self._parameters(entry.name):
            raise Misfit(f"{entry.name} is a function and no constant")
        return self._symbol(symbol_of(entry.name), entry.name)

    def _parameters(self, name: str) -> tuple[Parameter, ...]:
        found = self._description.functions.get(name)
        if found is None:
            raise Misfit(f"{name} is not described")
        return found

    def _parts(self, name: str) -> tuple[Member, ...]:
        found = self._description.structures.get(name)
        if found is None:
            raise Misfit(f"{name} is not described")
        return found

    def _constructor(self, entry: Constructor) -> int:
        names = self._description.types.get(entry.type)
        if names is None:
            raise Misfit(f"{entry.type} is not described")
        if names.count(entry.name) != 1:
            raise Misfit(f"{entry.type} has no constructor {entry.name}")
        return names.index(entry.name)

    def _function(self, entry: Function) -> Invocation:
        parameters = self._parameters(entry.name)
        symbol, boxed = entry.symbol or symbol_of(entry.name), symbol_of(entry.name) + "___boxed"
        if not entry.symbol and self._exported(boxed):
            symbol = boxed
        elif any(each.shape not in (Shape.OBJECT, Shape.ERASED, Shape.WORLD) for each in parameters):
            raise Misfit(f"{entry.name}: the library has no symbol {boxed}")
        self._symbol(symbol, entry.name)
        if len(parameters) > _MOST_PARAMETERS:
            raise Misfit(f"{entry.name} has more than {_MOST_PARAMETERS} parameters")
        wrapped = entry.gives is Gives.PLAIN_ACTION and not self._description.plain_actions
        return Invocation(symbol, _words(entry, parameters), wrapped)


def _words(entry: Function, parameters: Sequence[Parameter]) -> tuple[int, ...]:
    """Return the source of the word for each parameter of a function; raises `Misfit`."""
    open_ = dict(enumerate(entry.takes))
    beyond = iter(range(len(entry.takes), len(entry.takes) + entry.beyond))
    words = [_word(entry, each, open_, beyond) for each in parameters]
    missing = [each.name for each in open_.values() if not each.optional]
    if missing:
        raise Misfit(f"{entry.name} has no parameter {missing[0]}")
    if next(beyond, None) is not None:
        raise Misfit(f"{entry.name} has fewer parameters of its monad than {entry.beyond}")
    worlds = [number for number, each in enumerate(parameters) if each.shape is Shape.WORLD]
    if worlds != ([] if entry.gives is Gives.VALUE else [len(parameters) - 1]):
        raise Misfit(f"{entry.name} is {'no' if worlds else 'an'} action, contrary to the farm's table")
    return tuple(words)


def _word(entry: Function, parameter: Parameter, open_: dict[int, Taken], beyond: object) -> int:
    if parameter.shape is Shape.WORLD:
        return ~_NOTHING
    number = next((number for number, each in open_.items() if each.name == parameter.name), None)
    if parameter.name and number is not None:
        given = open_.pop(number)
        if parameter.shape is not given.shape:
            raise Misfit(f"{entry.name}: {given.name} is {parameter.shape} instead of {given.shape}")
        return number
    if parameter.shape is Shape.ERASED or parameter.name in entry.proofs:
        return ~_NOTHING
    if not parameter.name:
        found: int | None = next(beyond, None)  # type: ignore[call-overload]
        if found is None or parameter.shape is not Shape.OBJECT:
            raise Misfit(f"{entry.name} has more parameters of its monad than {entry.beyond}")
        return found
    if parameter.default is None or parameter.shape not in (Shape.OBJECT, *BOXED_SMALL):
        raise Misfit(f"{entry.name}: the farm does not know the parameter {parameter.name}")
    return ~parameter.default


def _order(parts: Sequence[Member]) -> tuple[list[str], list[Member]]:
    """Return the pointers of an object and its scalars, as Lean's compiler orders them: larger ones first."""
    pointers = [each.name for each in parts if each.shape is Shape.OBJECT]
    scalars = [each for each in parts if each.shape in SCALAR_BYTES]
    words = [each for each in scalars if each.shape is Shape.WORD]
    others = [each for each in scalars if each.shape is not Shape.WORD]
    return pointers, words + sorted(others, key=lambda each: -SCALAR_BYTES[each.shape])


def _place(entry: StructureField, parts: Sequence[Member]) -> FieldPlace:
    found = [each for each in parts if each.name == entry.name]
    if len(found) != 1:
        raise Misfit(f"{entry.structure} has no field {entry.name}")
    if found[0].shape is not entry.shape:
        raise Misfit(f"{entry.structure}: {entry.name} is {found[0].shape} instead of {entry.shape}")
    pointers, scalars = _order(parts)
    if not scalars and len(pointers) == 1:
        return FieldPlace(0, 0)  # a structure of one field is that field
    if entry.name in pointers:
        return FieldPlace(8 + 8 * pointers.index(entry.name), 8)
    offset = 8 + 8 * len(pointers)
    for each in scalars:
        if each.name == entry.name:
            break
        offset += SCALAR_BYTES[each.shape]
    return FieldPlace(offset, SCALAR_BYTES[entry.shape])


def _layout(entry: Structure, parts: Sequence[Member]) -> Layout:
    names = {each.name: (number, each) for number, each in enumerate(entry.parts)}
    shapes = {each.name: each.shape for each in parts}
    for given in entry.parts:
        if given.name not in shapes and not given.optional:
            raise Misfit(f"{entry.name} has no field {given.name}")
    for part in parts:
        if part.shape is Shape.ERASED:
            continue
        known = names.get(part.name)
        if known is None:
            raise Misfit(f"{entry.name}: the farm does not know the field {part.name}")
        if known[1].shape is not part.shape:
            raise Misfit(f"{entry.name}: {part.name} is {part.shape} instead of {known[1].shape}")
    pointers, scalars = _order(parts)
    if not scalars and len(pointers) == 1:
        raise Misfit(f"{entry.name} has one field alone")
    offset, placed = 8 + 8 * len(pointers), []
    for each in scalars:
        placed.append((names[each.name][0], offset, SCALAR_BYTES[each.shape]))
        offset += SCALAR_BYTES[each.shape]
    return Layout(tuple(names[name][0] for name in pointers), tuple(placed), offset + -offset % 8)
