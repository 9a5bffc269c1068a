"""Binding step, modules: reads a toolchain's description from the compiled modules that it ships.

A module holds the type of each of its constants, with names and default values of parameters. The entries of
the extension ``Lean.IR.declMapExt`` hold the shapes that Lean's compiler gave to the parameters of each
function. Both are read as data, by the audit's reader of files; nothing of the toolchain runs.

Sources: `IRType`, `Param` and `Decl` in ``src/Lean/Compiler/IR/Basic.lean``, the extension in
``src/Lean/Compiler/IR/CompilerM.lean``, ``src/Lean/Declaration.lean``, ``src/Lean/Expr.lean``.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from farm_workers.audit.declarations import ConstantKind
from farm_workers.audit.olean import MalformedOlean, Name, Olean, header_of, opened
from farm_workers.audit.terms import APP, CONST, LITERAL, MDATA, NAT, PI, SORT
from farm_workers.binding.objects import boxed
from farm_workers.binding.signatures import MODULES, Description, Member, Parameter, Shape
from farm_workers.binding.table import (
    ABILITIES,
    Constructor,
    Entry,
    Function,
    LibraryConstant,
    OneOf,
    Structure,
    StructureField,
)

#: Folders of a toolchain's own library that are looked through, below ``lib/lean``.
_FOLDERS = ("Init", "Std", "Lean")
_BUDGET = 1 << 40
_DECLARATIONS: Name = ("Lean", "IR", "declMapExt")
_FUNCTION, _EXTERNAL = header_of(0, 5, 48), header_of(1, 4, 40)
#: The shapes of `IRType` by its constructors: floats, integers, erased, objects, float32, tagged, void.
_SHAPES = {
    0: Shape.FLOAT,
    1: Shape.BYTE,
    2: Shape.UINT16,
    3: Shape.UINT32,
    4: Shape.UINT64,
    5: Shape.WORD,
    6: Shape.ERASED,
    7: Shape.OBJECT,
    8: Shape.OBJECT,
    9: Shape.FLOAT32,
    12: Shape.OBJECT,
    13: Shape.WORLD,
}
#: Types that compiled code holds as scalars.
_SCALARS = {
    "Bool": Shape.BYTE,
    "UInt8": Shape.BYTE,
    "Int8": Shape.BYTE,
    "UInt16": Shape.UINT16,
    "Int16": Shape.UINT16,
    "Char": Shape.UINT32,
    "UInt32": Shape.UINT32,
    "Int32": Shape.UINT32,
    "UInt64": Shape.UINT64,
    "Int64": Shape.UINT64,
    "USize": Shape.WORD,
    "ISize": Shape.WORD,
    "Float": Shape.FLOAT,
    "Float32": Shape.FLOAT32,
}
_DEFAULTED, _BY_TACTIC, _NUMERAL = "optParam", "autoParam", "OfNat.ofNat"
#: Since actions that cannot fail return their value itself, this type is among the library's.
_PLAIN_RESULT = "ST.Out"
#: Structures within structures are followed so far to see whether they are one scalar.
_DEEPEST = 8
_LARGEST_ENUMERATION = 256
#: A name that Lean made up: it has macro scopes, or is that of an instance without a name.
_MADE_UP = re.compile(r"_@|_hyg|✝")


def describe(library: Path) -> Description:
    """Return the description of the toolchain whose compiled modules are in a folder, such as ``lib/lean``.

    Entries of the table that the modules do not hold are left out. Raises `MalformedOlean` if a module cannot
    be read, and OSError.
    """
    with _Library(library) as found:
        return found.described(_entries())


def _entries() -> list[Entry]:
    entries = dict.fromkeys(
        entry
        for needed in ABILITIES.values()
        for one in needed
        for entry in (one.entries if isinstance(one, OneOf) else (one,))
    )
    return list(entries)


class _Library:
    """The modules of a folder; constants are found by name in whichever module declares them."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._open = folder, contextlib.ExitStack()
        self._modules: list[_Module] = []
        self._index: dict[str, list[tuple[_Module, int]]] = {}

    def __enter__(self) -> _Library:
        for path in _paths(self._folder):
            module = _Module(self._open.enter_context(opened(path, _BUDGET)))
            self._modules.append(module)
            for number, last in enumerate(module.last_parts()):
                self._index.setdefault(last, []).append((module, number))
        if not self._modules:
            raise MalformedOlean(f"{self._folder} has no compiled module of Lean's own library")
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def described(self, entries: Iterable[Entry]) -> Description:
        """Return the description of these entries of the table."""
        functions, structures, types = {}, {}, {}
        for entry in entries:
            match entry:
                case Function(name=name) | LibraryConstant(name=name):
                    if (signature := self._signature(name)) is not None:
                        functions[name] = signature
                case StructureField(structure=name) | Structure(name=name):
                    if (parts := self._structure(name)) is not None:
                        structures[name] = parts
                case Constructor(type=name):
                    if constructors := self._constructors(name):
                        types[name] = tuple(each[-1] for each in constructors if isinstance(each[-1], str))
        return Description(
            lean=self._modules[0].olean.lean_version,
            source=MODULES,
            plain_actions=self._find(_PLAIN_RESULT) is not None,
            functions=functions,
            structures=structures,
            types=types,
        )

    def _find(self, name: str) -> _Declared | None:
        """Return a constant; one that is private to a module is found without its prefix as well."""
        parts = _parsed(name)
        for module, number in self._index.get(str(parts[-1]), ()):
            declared = module.declared(number)
            if declared.name == parts or _public(declared.name) == parts:
                return declared
        return None

    # Functions

    def _signature(self, name: str) -> tuple[Parameter, ...] | None:
        declared = self._find(name)
        shapes = None if declared is None else declared.module.shapes().get(declared.name)
        if declared is None or shapes is None:
            return None
        stated = list(self._parameters(declared))[: len(shapes)]
        more = [Parameter("", shape) for shape in shapes[len(stated) :]]
        if more and self._find(_PLAIN_RESULT) is None and more[-1].shape is Shape.OBJECT:
            more[-1] = Parameter("", Shape.WORLD)  # the compiler of these releases had no shape for it
        return (
            *(self._parameter(*each) for each in zip(declared_in(declared, stated), shapes, strict=False)),
            *more,
        )

    def _parameters(self, declared: _Declared) -> Iterator[tuple[str, int]]:
        """Yield the name and the type of each parameter; one without a name has that of its type."""
        olean = declared.module.olean
        for binder, type_ in telescope(olean, declared.type):
            bare, _ = _unwrapped(olean, type_)
            yield binder or f"[{_head(olean, bare).rpartition('.')[2]}]", type_

    def _parameter(self, stated: tuple[Olean, str, int], shape: Shape) -> Parameter:
        olean, name, type_ = stated
        _, default = _unwrapped(olean, type_)
        return Parameter(name, shape, None if default is None else self._literal(olean, default))

    def _literal(self, olean: Olean, place: int) -> int | None:
        """Return the word of a default value, None if it is no literal: a numeral, or one without fields."""
        place = _bare(olean, place)
        head, arguments = _applied(olean, place)
        if head == _NUMERAL and len(arguments) > 1:
            return self._literal(olean, arguments[1])
        if olean.words[place] == LITERAL:
            value = olean.object(place, 0)
            return boxed(olean.nat(olean.child(value, 0))) if olean.words[value] == NAT else None
        declared = self._find(head) if head else None
        if declared is None or declared.kind is not ConstantKind.CONSTRUCTOR:
            return None
        number, _, fields = declared.numbers
        return None if fields else boxed(number)

    # Types

    def _constructors(self, name: str) -> tuple[Name, ...]:
        declared = self._find(name)
        return (
            () if declared is None or declared.kind is not ConstantKind.INDUCTIVE else declared.constructors
        )

    def _structure(self, name: str) -> tuple[Member, ...] | None:
        constructors = self._constructors(name)
        maker = self._find(_dotted(constructors[0])) if len(constructors) == 1 else None
        return None if maker is None else tuple(self._parts(maker, 0))

    def _parts(self, maker: _Declared, depth: int) -> Iterator[Member]:
        olean, (_, parameters, _) = maker.module.olean, maker.numbers
        for binder, type_ in list(telescope(olean, maker.type))[parameters:]:
            bare, _ = _unwrapped(olean, type_)
            yield Member(binder, self._shape(olean, bare, depth))

    def _shape(self, olean: Olean, type_: int, depth: int) -> Shape:
        """Return the shape of a field's type."""
        head = _head(olean, _result(olean, type_))
        if not head:
            return Shape.ERASED if _is_sort(olean, _result(olean, type_)) else Shape.OBJECT
        if olean.words[_bare(olean, type_)] == PI:
            return Shape.ERASED if self._is_proposition(head) else Shape.OBJECT
        if head in _SCALARS:
            return _SCALARS[head]
        if self._is_proposition(head):
            return Shape.ERASED
        return self._held(head, depth)

    def _held(self, name: str, depth: int) -> Shape:
        """Return the shape of an inductive type's values: an enumeration's byte, a lone scalar, an object."""
        constructors = [self._find(_dotted(each)) for each in self._constructors(name)]
        makers = [each for each in constructors if each is not None]
        if len(makers) < len(constructors) or depth > _DEEPEST:
            return Shape.OBJECT
        if 1 < len(makers) <= _LARGEST_ENUMERATION and not any(each.numbers[2] for each in makers):
            return Shape.BYTE
        if len(makers) == 1:
            parts = [each for each in self._parts(makers[0], depth + 1) if each.shape is not Shape.ERASED]
            return parts[0].shape if len(parts) == 1 else Shape.OBJECT
        return Shape.OBJECT

    def _is_proposition(self, name: str) -> bool:
        """Return whether a constant makes propositions: the last part of its type is `Prop`."""
        declared = self._find(name)
        if declared is None:
            return False
        olean = declared.module.olean
        result = _bare(olean, _result(olean, declared.type))
        return olean.words[result] == SORT and olean.child(result, 0) == ~0


class _Module:
    """One compiled module, of which little is read."""

    def __init__(self, olean: Olean) -> None:
        self.olean = olean
        self._names = olean.array(olean.object(olean.root, 1), "names")
        self._infos = olean.array(olean.object(olean.root, 2), "constants")
        self._shapes: dict[Name, tuple[Shape, ...]] | None = None

    def last_parts(self) -> list[str]:
        """Return the last part of each constant's name."""
        olean, words, base = self.olean, self.olean.words, self.olean.base
        known: dict[int, str] = {}
        found = []
        for at in self._names:
            held = words[(words[at] - base >> 3) + 2]
            last = known.get(held)
            if last is None:
                place = olean.ref(held, len(words))
                last = known[held] = str(~place) if place < 0 else olean.string(place)
            found.append(last)
        return found

    def declared(self, number: int) -> _Declared:
        """Return one of the constants."""
        return _Declared(self, self.olean.ref(self.olean.words[self._infos[number]], len(self.olean.words)))

    def shapes(self) -> dict[Name, tuple[Shape, ...]]:
        """Return the shapes of the parameters of each compiled function."""
        if self._shapes is None:
            self._shapes = dict(self._compiled())
        return self._shapes

    def _compiled(self) -> Iterator[tuple[Name, tuple[Shape, ...]]]:
        olean = self.olean
        for pair in olean.elements(olean.object(olean.root, 4), "extension entries"):
            if olean.name(olean.child(pair, 0)) != _DECLARATIONS:
                continue
            for place in olean.elements(olean.object(pair, 1), "compiled functions"):
                if olean.words[place] in (_FUNCTION, _EXTERNAL):
                    yield olean.name(olean.child(place, 0)), tuple(self._parameters(olean.object(place, 1)))

    def _parameters(self, array: int) -> Iterator[Shape]:
        """Yield the shape of each `Param`: its index, its type, and whether it is borrowed."""
        for place in self.olean.elements(array, "parameters"):
            type_ = self.olean.child(place, 1)
            number = ~type_ if type_ < 0 else self.olean.words[type_] >> 56
            if number not in _SHAPES:
                raise self.olean.wrong(place, "parameter of a known shape")
            yield _SHAPES[number]


class _Declared:
    """A constant of a module."""

    def __init__(self, module: _Module, info: int) -> None:
        self.module = module
        olean = module.olean
        self.kind = tuple(ConstantKind)[olean.words[info] >> 56]
        self._value = olean.object(info, 0)
        header = olean.object(self._value, 0)
        self.name, self.type = olean.name(olean.child(header, 0)), olean.object(header, 2)

    @property
    def constructors(self) -> tuple[Name, ...]:
        """The constructors of an inductive type."""
        olean = self.module.olean
        return tuple(olean.name(each) for each in olean.list(olean.child(self._value, 4), "constructors"))

    @property
    def numbers(self) -> tuple[int, int, int]:
        """The index of a constructor among those of its type, the type's parameters, and its fields."""
        olean = self.module.olean
        index, parameters, fields = (olean.number(olean.child(self._value, each)) for each in (2, 3, 4))
        return index, parameters, fields


def declared_in(declared: _Declared, stated: Iterable[tuple[str, int]]) -> Iterator[tuple[Olean, str, int]]:
    """Yield each parameter with the file that its type is in."""
    return ((declared.module.olean, name, type_) for name, type_ in stated)


def telescope(olean: Olean, type_: int) -> Iterator[tuple[str, int]]:
    """Yield name and type of each parameter in a function's type; the name is "" if Lean made it up."""
    place = _bare(olean, type_)
    while olean.words[place] == PI:
        name = _dotted(olean.name(olean.child(place, 0)))
        yield "" if _MADE_UP.search(name) else name, olean.object(place, 1)
        place = _bare(olean, olean.object(place, 2))


def _paths(folder: Path) -> list[Path]:
    tops = [folder / f"{top}.olean" for top in _FOLDERS]
    below = [path for top in _FOLDERS for path in (folder / top).rglob("*.olean")]
    return sorted(path for path in (*tops, *below) if path.is_file() and path.suffixes == [".olean"])


def _bare(olean: Olean, place: int) -> int:
    """Return the place of a term without metadata."""
    while olean.words[place] == MDATA:
        place = olean.object(place, 1)
    return place


def _result(olean: Olean, type_: int) -> int:
    """Return the type behind all parameters."""
    place = _bare(olean, type_)
    while olean.words[place] == PI:
        place = _bare(olean, olean.object(place, 2))
    return place


def _applied(olean: Olean, place: int) -> tuple[str, list[int]]:
    """Return the constant that a term applies, "" if it applies none, and the arguments."""
    arguments, place = [], _bare(olean, place)
    while olean.words[place] == APP:
        arguments.append(olean.object(place, 1))
        place = _bare(olean, olean.object(place, 0))
    name = _dotted(olean.name(olean.child(place, 0))) if olean.words[place] == CONST else ""
    return name, arguments[::-1]


def _head(olean: Olean, place: int) -> str:
    return _applied(olean, place)[0]


def _is_sort(olean: Olean, place: int) -> bool:
    return olean.words[_bare(olean, place)] == SORT


def _unwrapped(olean: Olean, type_: int) -> tuple[int, int | None]:
    """Return a parameter's type, and its default value if it has one."""
    head, arguments = _applied(olean, type_)
    if head in (_DEFAULTED, _BY_TACTIC) and len(arguments) == 2:
        return arguments[0], arguments[1] if head == _DEFAULTED else None
    return type_, None


def _dotted(name: Name) -> str:
    return ".".join(map(str, name))


def _parsed(name: str) -> Name:
    return tuple(int(part) if part.isdigit() else part for part in name.split("."))


def _public(name: Name) -> Name:
    """Return a private name without the prefix that names its module."""
    return name[name.index(0) + 1 :] if name[:1] == ("_private",) and 0 in name else name
