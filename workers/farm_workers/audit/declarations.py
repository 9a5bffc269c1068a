"""Audit step, declarations: reads the declarations of a module as typed values.

The layout is that of Lean 4.35.0 (``Lean.ModuleData``, ``Lean.ConstantInfo`` and the types of their fields,
sources ``src/Lean/Environment.lean``, ``src/Lean/Setup.lean``, ``src/Lean/Declaration.lean``): the pointers
of a constructor in the order of its fields, then its scalars, larger ones first. Truth values,
`DefinitionSafety` and `QuotKind` are scalars of one byte. A structure with one field that is no scalar is
that field's value in a box of its own; a file in which an object has another shape is malformed, so another
layout is refused, not misread.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import TypedDict

from farm_workers.audit.olean import BUDGET, FIRST, MalformedOlean, Name, Olean, header_of, opened

#: A module's root, and that of releases before the module system, which has no mark for it.
MODULE, OLDER_MODULE = header_of(0, 5, 56), header_of(0, 5, 48)
IMPORT = header_of(0, 1, 24)
_PAIR = header_of(0, 2, 24)
# `DeclarationRanges`, `DeclarationRange` and `Position` in ``src/Lean/Data/DeclarationRange.lean`` and
# ``src/Lean/Data/Position.lean`` (Lean 4.35.0), the entries of the extension with these names.
_RANGES, _RANGE, _POSITION = _PAIR, header_of(0, 4, 40), header_of(0, 2, 24)
_RANGES_OF: Name = ("Lean", "declRangeExt")
CONSTANT = header_of(0, 3, 32)
RULE = header_of(0, 3, 32)
HINTS = header_of(2, 0, 16)
#: The files of a module of the module system besides the first; their objects refer to those of earlier ones.
_OTHER_PARTS = (".server", ".private")


class ConstantKind(StrEnum):
    """The kind of a constant; in the order of the constructors of ``ConstantInfo``."""

    AXIOM = "axiom"
    DEFINITION = "definition"
    THEOREM = "theorem"
    OPAQUE = "opaque"
    QUOTIENT = "quot"
    INDUCTIVE = "inductive"
    CONSTRUCTOR = "constructor"
    RECURSOR = "recursor"


class Safety(StrEnum):
    """How far a constant can be trusted; in the order of the constructors of ``DefinitionSafety``."""

    UNSAFE = "unsafe"
    SAFE = "safe"
    PARTIAL = "partial"


#: The kinds by the first words of constants' infos.
KINDS = {header_of(tag, 1, 16): kind for tag, kind in enumerate(ConstantKind)}
_SAFETY = tuple(Safety)
#: Pointers of each kind's value, and the bytes of its scalars (with those that fill them up).
_SHAPES = {
    ConstantKind.AXIOM: (1, 8),
    ConstantKind.DEFINITION: (4, 8),
    ConstantKind.THEOREM: (3, 0),
    ConstantKind.OPAQUE: (3, 8),
    ConstantKind.QUOTIENT: (1, 8),
    ConstantKind.INDUCTIVE: (6, 8),
    ConstantKind.CONSTRUCTOR: (5, 8),
    ConstantKind.RECURSOR: (7, 8),
}
VALUES = {
    kind: header_of(0, pointers, 8 + 8 * pointers + scalars) for kind, (pointers, scalars) in _SHAPES.items()
}
_QUOTIENT_KINDS = 4
#: The place of the mark `unsafe` among the scalars of each kind that has one.
_UNSAFE_MARK = {
    ConstantKind.AXIOM: 0,
    ConstantKind.OPAQUE: 0,
    ConstantKind.INDUCTIVE: 1,
    ConstantKind.CONSTRUCTOR: 0,
    ConstantKind.RECURSOR: 1,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Import:
    """One import of a module with its marks."""

    module: Name
    import_all: bool
    is_exported: bool
    is_meta: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class RecursorRule:
    """How a recursor computes on one constructor; `value` is the place of an expression."""

    constructor: Name
    fields: int
    value: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Constant:
    """A declared constant; `type` and `value` are places of expressions.

    `family` are the inductive types declared together, for inductive types and recursors; `parent` is a
    constructor's type. `block` are the definitions, theorems or opaque constants declared together: no kernel
    looks at them and nothing rests on them, they are only compared. `numbers` are those of its kind in the
    order in which Lean has them, truth values and the kind of a quotient constant included: two constants
    that differ in them are not the same.
    """

    kind: ConstantKind
    name: Name
    parameters: tuple[Name, ...]
    type: int
    value: int | None = None
    safety: Safety = Safety.SAFE
    family: tuple[Name, ...] = ()
    block: tuple[Name, ...] = ()
    constructors: tuple[Name, ...] = ()
    parent: Name | None = None
    numbers: tuple[int, ...] = ()
    rules: tuple[RecursorRule, ...] = ()

    def expressions(self) -> tuple[int, ...]:
        """Return the places of all expressions that it consists of."""
        values = () if self.value is None else (self.value,)
        return (self.type, *values, *(rule.value for rule in self.rules))

    def relatives(self) -> tuple[Name, ...]:
        """Return the constants that it names outside its expressions."""
        parents = () if self.parent is None else (self.parent,)
        return (*self.family, *self.constructors, *parents, *(rule.constructor for rule in self.rules))


class Module:
    """A module: imports, constants by name, extension entries. Constants are decoded on access.

    `names` maps the names of its constants to the places of their infos; `repeated` are names that more than
    one constant has. A part of a file of the module system (`is_module`) is recognised but not read: it
    appears empty. One of a release before the module system (`is_older`) has no mark for it.
    """

    def __init__(self, olean: Olean, *, in_parts: bool = False) -> None:
        """Read a module; with `in_parts`, the file is all parts of a module of the module system as one."""
        self.olean = olean
        self.lean_version, self.git_hash = olean.lean_version, olean.git_hash
        root = olean.root
        self.is_older = olean.words[root] == OLDER_MODULE
        olean.expect(root, OLDER_MODULE if self.is_older else MODULE, "module data")
        self.is_module = not self.is_older and olean.flag(root, 5, 0)
        self.imports: tuple[Import, ...] = ()
        self.names: dict[Name, int] = {}
        self.repeated: tuple[Name, ...] = ()
        # The parts of a file of the module system share objects: one alone cannot be read.
        if in_parts or not self.is_module:
            self.imports = imports_of(olean)
            self.names, self.repeated = _infos(olean)
        self._known: dict[Name, Constant] = {}

    def kind(self, name: Name) -> ConstantKind:
        """Return the kind of a constant of the module."""
        return self.kind_at(self.names[name])

    def kind_at(self, info: int) -> ConstantKind:
        """Return the kind of the constant whose info is at a place, one of those in `names`."""
        return KINDS[self.olean.words[info]]

    def of_kind(self, kind: ConstantKind) -> Iterator[Name]:
        """Return the names of all constants of a kind."""
        return (name for name, info in self.names.items() if self.kind_at(info) is kind)

    def constant(self, name: Name) -> Constant | None:
        """Return a constant of the module, None when it has none of that name."""
        found = self._known.get(name)
        if found is None and name in self.names:
            found = self._known[name] = _constant(self.olean, self.names[name])
        return found

    @cached_property
    def recursors(self) -> dict[Name, set[Name]]:
        """The recursors of each inductive type."""
        found: dict[Name, set[Name]] = {}
        for name in self.of_kind(ConstantKind.RECURSOR):
            constant = self.constant(name)
            for family in () if constant is None else constant.family:
                found.setdefault(family, set()).add(name)
        return found

    def extensions(self) -> dict[Name, int]:
        """Return the number of entries of each environment extension with entries in the module."""
        found: dict[Name, int] = {}
        for name, entries in self._entries():
            found[name] = found.get(name, 0) + len(self.olean.array(entries, "entries"))
        return found

    def ends(self) -> dict[Name, tuple[int, int]]:
        """Return the end of each declaration's text, as Lean has noted it: line, from 1, and column, from 0.

        Constants that Lean makes itself, such as recursors, have no text. The module may claim any place.
        """
        return self._places(2)

    def starts(self) -> dict[Name, tuple[int, int]]:
        """Return where each declaration's text begins, as `ends` does; without impossible places."""
        places = self._places(0).items()
        return {name: place for name, place in places if all(0 <= part < 1 << 31 for part in place)}

    def _places(self, number: int) -> dict[Name, tuple[int, int]]:
        """Return a position of each range: 0 for the start, 2 for the end."""
        olean, found = self.olean, dict[Name, tuple[int, int]]()
        for name, entries in self._entries():
            for entry in olean.elements(entries, "ranges") if name == _RANGES_OF else ():
                olean.expect(entry, _PAIR, "range's entry")
                place = olean.child(entry, 1)
                for shape, part, what in ((_RANGES, 0, "ranges"), (_RANGE, number, "range")):
                    olean.expect(place, shape, what)
                    place = olean.child(place, part)
                olean.expect(place, _POSITION, "position")
                line, column = olean.child(place, 0), olean.child(place, 1)
                found[olean.name(olean.child(entry, 0))] = ~line, ~column
        return found

    def _entries(self) -> Iterator[tuple[Name, int]]:
        """Yield each extension that has entries, with the place of their array."""
        olean = self.olean
        for pair in olean.elements(olean.object(olean.root, 4), "extension entries"):
            if pair < 0 or olean.words[pair] != _PAIR:
                raise olean.wrong(pair, "extension's entries")
            entries = olean.child(pair, 1)
            if len(olean.array(entries, "entries")):  # most have none
                yield olean.name(olean.child(pair, 0)), entries


def safety_of(olean: Olean, info: int) -> Safety:
    """Return the safety of the constant whose info is at a place, and read nothing else of the info."""
    kind, place = KINDS[olean.words[info]], olean.object(info, 0)
    if kind is ConstantKind.DEFINITION:
        safety = olean.scalar(place, 4, 0)
        if safety >= len(_SAFETY):
            raise olean.wrong(place, "safety of a definition")
        return _SAFETY[safety]
    number = _UNSAFE_MARK.get(kind)
    unsafe = number is not None and olean.flag(place, _SHAPES[kind][0], number)
    return Safety.UNSAFE if unsafe else Safety.SAFE


@contextmanager
def opened_module(source: Path | bytes, budget: int = BUDGET) -> Iterator[Module]:
    """Open a compiled module; it must not be used after the end of the block.

    Raises `MalformedOlean`, here and in every method of the module, and OSError for a missing file.
    """
    with opened(source, budget) as olean:
        yield Module(olean)


def whole(files: ExitStack, path: Path, budget: int = BUDGET) -> Module:
    """Open a module until `files` closes; one in several files is copied into memory as one.

    The parts stand at the distances that their pointers assume. Raises `MalformedOlean`, and OSError for a
    missing file.
    """
    olean = files.enter_context(opened(path, budget))
    if not Module(olean).is_module:
        return Module(olean)
    joined = bytearray(olean.data)
    for suffix in _OTHER_PARTS:
        part = files.enter_context(opened(path.with_name(path.name + suffix), budget))
        start = part.base - olean.base
        if start & 7 or not len(joined) <= start <= len(joined) + (1 << 24):
            raise MalformedOlean(f"{path.name}{suffix} does not belong to {path.name}")
        joined += bytes(start - len(joined)) + part.data
        joined[88:FIRST] = part.words[11].to_bytes(8, "little")
    return Module(Olean(bytes(joined), budget), in_parts=True)


def imports_of(olean: Olean) -> tuple[Import, ...]:
    """Return the imports of a module, of which the first part is enough."""
    found = []
    for place in olean.elements(olean.object(olean.root, 0), "imports"):
        olean.expect(place, IMPORT, "import")
        found.append(
            Import(
                module=olean.name(olean.child(place, 0)),
                import_all=olean.flag(place, 1, 0),
                is_exported=olean.flag(place, 1, 1),
                is_meta=olean.flag(place, 1, 2),
            )
        )
    return tuple(found)


def _infos(olean: Olean) -> tuple[dict[Name, int], tuple[Name, ...]]:
    """Return the place of each constant's info, and the names that occur more than once."""
    names, infos = olean.object(olean.root, 1), olean.object(olean.root, 2)
    if len(olean.array(names, "names")) != len(olean.array(infos, "constants")):
        raise MalformedOlean("the numbers of names and constants differ", olean.root << 3)
    found: dict[Name, int] = {}
    repeated = []
    for name_ref, info in zip(
        olean.elements(names, "names"), olean.elements(infos, "constants"), strict=True
    ):
        name = olean.name(name_ref)
        inner = _name_ref(olean, info)
        if inner != name_ref and olean.name(inner) != name:
            raise MalformedOlean("constant with another name in its info", info << 3)
        if name in found:
            repeated.append(name)
        found[name] = info
    return found, tuple(repeated)


def _name_ref(olean: Olean, info: int) -> int:
    """Check the shapes of a constant's info and return the ref of the name in it."""
    kind = KINDS.get(olean.words[info]) if info >= 0 else None
    if kind is None:
        raise olean.wrong(info, "constant")
    value = olean.object(info, 0)
    olean.expect(value, VALUES[kind], f"{kind} with the fields that it has in Lean 4.35")
    header = olean.object(value, 0)
    olean.expect(header, CONSTANT, "name, parameters and type")
    return olean.child(header, 0)


class _More(TypedDict, total=False):
    """The fields of a `Constant` that only some kinds have."""

    value: int
    family: tuple[Name, ...]
    block: tuple[Name, ...]
    constructors: tuple[Name, ...]
    parent: Name
    numbers: tuple[int, ...]
    rules: tuple[RecursorRule, ...]


def _constant(olean: Olean, info: int) -> Constant:
    kind, place = KINDS[olean.words[info]], olean.object(info, 0)
    header = olean.object(place, 0)
    olean.spend(1)
    return Constant(
        kind=kind,
        name=olean.name(olean.child(header, 0)),
        parameters=_names(olean, olean.child(header, 1), "universe parameters"),
        type=olean.object(header, 2),
        safety=safety_of(olean, info),
        **(_READERS[kind](olean, place) if kind in _READERS else _More()),
    )


def _names(olean: Olean, ref: int, what: str) -> tuple[Name, ...]:
    return tuple([olean.name(each) for each in olean.list(ref, what)])


def _counts(olean: Olean, place: int, *numbers: int) -> tuple[int, ...]:
    return tuple([olean.number(olean.child(place, number)) for number in numbers])


def _definition(olean: Olean, place: int) -> _More:
    hints = olean.child(place, 2)
    if not (hints in (~0, ~1) or (hints > 0 and olean.shaped(hints, HINTS))):
        raise olean.wrong(place, "hints of a definition")
    return _valued(olean, place, 3)


def _proof(olean: Olean, place: int) -> _More:
    return _valued(olean, place, 2)


def _valued(olean: Olean, place: int, block: int) -> _More:
    names = _names(olean, olean.child(place, block), "constants declared together")
    return {"value": olean.object(place, 1), "block": names}


def _quotient(olean: Olean, place: int) -> _More:
    which = olean.scalar(place, 1, 0)
    if which >= _QUOTIENT_KINDS:
        raise olean.wrong(place, "kind of a quotient constant")
    return {"numbers": (which,)}


def _inductive(olean: Olean, place: int) -> _More:
    """Read parameters, indices, all, constructors, nested; recursive, unsafe, reflexive."""
    marks = olean.flag(place, 6, 0), olean.flag(place, 6, 2)
    return {
        "family": _names(olean, olean.child(place, 3), "types"),
        "constructors": _names(olean, olean.child(place, 4), "constructors"),
        "numbers": (*_counts(olean, place, 1, 2, 5), *marks),
    }


def _constructor(olean: Olean, place: int) -> _More:
    """Read type, index, parameters, fields; unsafe."""
    return {
        "parent": olean.name(olean.child(place, 1)),
        "numbers": _counts(olean, place, 2, 3, 4),
    }


def _recursor(olean: Olean, place: int) -> _More:
    """Read all, parameters, indices, motives, minors, rules; K, unsafe."""
    return {
        "family": _names(olean, olean.child(place, 1), "types"),
        "numbers": (*_counts(olean, place, 2, 3, 4, 5), olean.flag(place, 7, 0)),
        "rules": tuple([_rule(olean, ref) for ref in olean.list(olean.child(place, 6), "rules")]),
    }


def _rule(olean: Olean, ref: int) -> RecursorRule:
    olean.expect(ref, RULE, "rule of a recursor")
    return RecursorRule(
        constructor=olean.name(olean.child(ref, 0)),
        fields=olean.number(olean.child(ref, 1)),
        value=olean.object(ref, 2),
    )


#: The readers of the fields that constants of a kind have besides name, parameters, type and safety.
_READERS = {
    ConstantKind.DEFINITION: _definition,
    ConstantKind.THEOREM: _proof,
    ConstantKind.OPAQUE: _proof,
    ConstantKind.QUOTIENT: _quotient,
    ConstantKind.INDUCTIVE: _inductive,
    ConstantKind.CONSTRUCTOR: _constructor,
    ConstantKind.RECURSOR: _recursor,
}
