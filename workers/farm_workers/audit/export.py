"""Audit step, as a process: writes a compiled module, with all that it rests on, as text for other kernels.

It is called as `farm_workers.audit.__main__` is, with the module, the file to write and the folders of the
imported modules. Format 3.1.0 of https://github.com/leanprover/lean4export: a line of JSON for each name,
level, expression and declaration, each after all that it refers to. Metadata and unsafe constants are left
out, and of terms that differ only in the names and brackets of binders the first stands for all.

The same modules give the same text. Nothing recurs on terms or on constants; what is in memory grows with the
terms that are written and the names of the imports, and the box of the process limits it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TextIO

from farm_workers.audit.declarations import Constant, ConstantKind, Module, Safety, whole
from farm_workers.audit.imports import module_file
from farm_workers.audit.names import dotted
from farm_workers.audit.olean import MalformedOlean, Name, Olean
from farm_workers.audit.terms import (
    APP,
    BVAR,
    CONST,
    LAMBDA,
    LET,
    LEVEL_IMAX,
    LEVEL_MAX,
    LEVEL_PARAMETER,
    LEVEL_PARTS,
    LEVEL_SUCC,
    LITERAL,
    MDATA,
    NAT,
    PARTS,
    PI,
    PROJECTION,
    SORT,
    parts_of,
)

#: The process's own limits end it before it has visited so many objects.
_BUDGET = 1 << 60
_BINDERS = ("default", "implicit", "strictImplicit", "instImplicit")
_HINTS = ("opaque", "abbrev")
_QUOTIENT: tuple[tuple[Name, str], ...] = (
    (("Quot",), "type"),
    (("Quot", "mk"), "ctor"),
    (("Quot", "lift"), "lift"),
    (("Quot", "ind"), "ind"),
)
#: A kernel computes with literals, if it knows these.
_OF_NAT: tuple[Name, ...] = (("Nat",),)
_OF_TEXT: tuple[Name, ...] = (("Char", "ofNat"), ("String", "ofList"))


def main(words: Sequence[str] | None = None) -> None:
    """Write the export of a module; exit status 2 when a module is missing or unreadable."""
    parser = argparse.ArgumentParser(prog="export")
    parser.add_argument("module", type=Path)
    parser.add_argument("into", type=Path)
    parser.add_argument("roots", type=Path, nargs="*")
    arguments = parser.parse_args(words)
    try:
        with arguments.into.open("w", encoding="utf-8") as out:
            written = export(arguments.module, arguments.roots, out)
    except (MalformedOlean, OSError, MemoryError) as error:
        sys.exit(f"export: {error or 'out of memory'}")
    print(json.dumps({"declarations": written}))  # noqa: T201


def export(module: Path, roots: Sequence[Path], out: TextIO) -> int:
    """Write a module's export; return the number of its declarations. Raises MalformedOlean and OSError."""
    with contextlib.ExitStack() as files:
        own = _Source(whole(files, module, _BUDGET))
        sources = [own, *(_Source(each) for each in _imported(files, own.module, roots))]
        writer = _Writer(sources, out)
        writer.begin(own.module)
        for name in own.module.names:
            writer.declare(name)
        return writer.declared


def _imported(files: contextlib.ExitStack, module: Module, roots: Sequence[Path]) -> Iterator[Module]:
    seen, waiting = set[Name](), [each.module for each in module.imports]
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            found = whole(files, module_file(name, roots), _BUDGET)
            yield found
            waiting += [each.module for each in found.imports]


class _Source:
    """A module with the numbers of those of its levels and expressions that are written, by their places."""

    def __init__(self, module: Module) -> None:
        self.module, self.olean = module, module.olean
        self.levels: dict[int, int] = {~0: 0}
        self.expressions: dict[int, int] = {}


class _Writer:
    def __init__(self, sources: Sequence[_Source], out: TextIO) -> None:
        self._out = out
        self._homes = {name: source for source in reversed(sources) for name in source.module.names}
        self._names: dict[Name, int] = {(): 0}
        self._levels: dict[tuple[object, ...], int] = {}
        self._expressions: dict[tuple[object, ...], int] = {}
        self._done: set[Name] = set()
        self.declared = 0

    def begin(self, module: Module) -> None:
        """Write the line about the format and the Lean of a module."""
        lean = {"githash": module.git_hash, "version": module.lean_version}
        exporter = {"name": "lean-proof-farm", "version": "1"}
        self._line({"meta": {"exporter": exporter, "lean": lean, "format": {"version": "3.1.0"}}})

    def _line(self, content: object) -> None:
        self._out.write(json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n")

    # Declarations

    def declare(self, name: Name) -> None:
        """Write a constant and its family, after all constants that they rest on."""
        stack = [(unit, iter(self._needed(unit))) for unit in self._unit(name)]
        while stack:
            unit, needed = stack[-1]
            following = next((each for each in needed if each not in self._done), None)
            if following is None:
                self._write_unit(unit)
                stack.pop()
            else:
                stack += [(each, iter(self._needed(each))) for each in self._unit(following)]

    def _unit(self, name: Name) -> list[tuple[Name, ...]]:
        """Return the constants that are declared with one, [] if they are written or never are."""
        if name in self._done:
            return []
        constant = self._constant(name)
        if constant.safety is Safety.UNSAFE:
            self._done.add(name)
            return []
        unit = self._family(constant)
        self._done.update(unit)
        return [unit]

    def _family(self, constant: Constant) -> tuple[Name, ...]:
        if constant.kind is ConstantKind.QUOTIENT:
            return tuple(each for each, _ in _QUOTIENT)
        if constant.kind is ConstantKind.CONSTRUCTOR and constant.parent is not None:
            constant = self._constant(constant.parent)
        if not constant.family:
            return (constant.name,)
        home = self._homes[constant.name].module
        makers = [maker for each in constant.family for maker in self._constant(each).constructors]
        recursors = {each for one in constant.family for each in home.recursors.get(one, ())}
        return (*constant.family, *makers, *sorted(recursors, key=dotted))

    def _constant(self, name: Name) -> Constant:
        home = self._homes.get(name)
        found = home and home.module.constant(name)
        if not found:
            raise MalformedOlean(f"no module declares {dotted(name)}, which another constant refers to")
        return found

    def _needed(self, unit: tuple[Name, ...]) -> list[Name]:
        """Return the constants that the terms of a unit mention, in the order of the file."""
        first: list[Name] = [("Eq",)] if unit[0] == _QUOTIENT[0][0] else []
        found = dict.fromkeys(first)
        for name in unit:
            olean = self._homes[name].olean
            seen, todo = set[int](), list(self._constant(name).expressions())
            while todo:
                place = todo.pop()
                if place not in seen:
                    seen.add(place)
                    todo += parts_of(olean, place)
                    found.update(dict.fromkeys(self._mentioned(olean, place)))
        return list(found)

    def _mentioned(self, olean: Olean, place: int) -> Iterable[Name]:
        shape = olean.words[place]
        if shape in (CONST, PROJECTION):
            return (olean.name(olean.child(place, 0)),)
        if shape == LITERAL:
            is_nat = olean.words[olean.object(place, 0)] == NAT
            return (name for name in (_OF_NAT if is_nat else _OF_TEXT) if name in self._homes)
        return ()

    def _write_unit(self, unit: tuple[Name, ...]) -> None:
        constants = [self._constant(name) for name in unit]
        self.declared += len(constants)
        kind = constants[0].kind
        if kind is ConstantKind.QUOTIENT:
            for constant, (_, word) in zip(constants, _QUOTIENT, strict=True):
                self._line({"quot": self._header(constant) | {"kind": word}})
        elif kind is ConstantKind.INDUCTIVE:
            lists = {"types": self._inductive, "ctors": self._constructor, "recs": self._recursor}
            kinds = (ConstantKind.INDUCTIVE, ConstantKind.CONSTRUCTOR, ConstantKind.RECURSOR)
            written = {
                key: [write(each) for each in constants if each.kind is wanted]
                for (key, write), wanted in zip(lists.items(), kinds, strict=True)
            }
            self._line({"inductive": written})
        else:
            self._line(self._plain(constants[0]))

    def _plain(self, constant: Constant) -> dict[str, object]:
        """Return the line of an axiom, a definition, a theorem or an opaque constant."""
        header, home = self._header(constant), self._homes[constant.name]
        if constant.kind is ConstantKind.AXIOM:
            return {"axiom": header | {"isUnsafe": False}}
        assert constant.value is not None  # noqa: S101 - all other kinds have one
        valued = header | {"value": self._expression(home, constant.value)}
        valued["all"] = [self._name(each) for each in constant.block]
        if constant.kind is ConstantKind.THEOREM:
            return {"thm": valued}
        if constant.kind is ConstantKind.OPAQUE:
            return {"opaque": valued | {"isUnsafe": False}}
        return {"def": valued | {"hints": self._hints(home, constant), "safety": constant.safety.value}}

    def _hints(self, home: _Source, constant: Constant) -> object:
        olean = home.olean
        ref = olean.child(olean.object(home.module.names[constant.name], 0), 2)
        return _HINTS[~ref] if ref < 0 else {"regular": olean.words[ref + 1] & 0xFFFFFFFF}

    def _header(self, constant: Constant) -> dict[str, object]:
        return {
            "name": self._name(constant.name),
            "levelParams": [self._name(each) for each in constant.parameters],
            "type": self._expression(self._homes[constant.name], constant.type),
        }

    def _inductive(self, constant: Constant) -> dict[str, object]:
        parameters, indices, nested, recursive, reflexive = constant.numbers
        return self._header(constant) | {
            "numParams": parameters,
            "numIndices": indices,
            "all": [self._name(each) for each in constant.family],
            "ctors": [self._name(each) for each in constant.constructors],
            "numNested": nested,
            "isRec": bool(recursive),
            "isUnsafe": False,
            "isReflexive": bool(reflexive),
        }

    def _constructor(self, constant: Constant) -> dict[str, object]:
        index, parameters, fields = constant.numbers
        return self._header(constant) | {
            "induct": self._name(constant.parent or ()),
            "cidx": index,
            "numParams": parameters,
            "numFields": fields,
            "isUnsafe": False,
        }

    def _recursor(self, constant: Constant) -> dict[str, object]:
        parameters, indices, motives, minors, k = constant.numbers
        home = self._homes[constant.name]
        rules = [
            {
                "ctor": self._name(rule.constructor),
                "nfields": rule.fields,
                "rhs": self._expression(home, rule.value),
            }
            for rule in constant.rules
        ]
        return self._header(constant) | {
            "all": [self._name(each) for each in constant.family],
            "numParams": parameters,
            "numIndices": indices,
            "numMotives": motives,
            "numMinors": minors,
            "rules": rules,
            "k": bool(k),
            "isUnsafe": False,
        }

    # Names, levels and expressions: each is written once, and then known by its number

    def _name(self, name: Name) -> int:
        for length in range(1, len(name) + 1):
            part, prefix = name[:length], self._names[name[: length - 1]]
            if part not in self._names:
                self._names[part] = number = len(self._names)
                last = part[-1]
                kind, key = ("str", "str") if isinstance(last, str) else ("num", "i")
                self._line({kind: {"pre": prefix, key: last}, "in": number})
        return self._names[name]

    def _level(self, home: _Source, root: int) -> int:
        olean, known, todo = home.olean, home.levels, [root]
        found = set[int]()
        while todo:
            place = todo.pop()
            if place in known or place in found:
                continue
            if place < 0 or olean.words[place] not in LEVEL_PARTS:
                raise olean.wrong(place, "level")
            found.add(place)
            todo += [olean.child(place, word - 1) for word in LEVEL_PARTS[olean.words[place]]]
        for place in sorted(found):
            known[place] = self._new_level(home, place)
        return known[root]

    def _new_level(self, home: _Source, place: int) -> int:
        olean, shape = home.olean, home.olean.words[place]
        parts = [home.levels[olean.child(place, word - 1)] for word in LEVEL_PARTS[shape]]
        if shape == LEVEL_PARAMETER:
            told: dict[str, object] = {"param": self._name(olean.name(olean.child(place, 0)))}
        elif shape == LEVEL_SUCC:
            told = {"succ": parts[0]}
        elif shape in (LEVEL_MAX, LEVEL_IMAX):
            told = {"max" if shape == LEVEL_MAX else "imax": parts}
        else:
            raise olean.wrong(place, "level without a hole")
        return self._numbered(self._levels, (shape, *map(str, told.values())), told, "il", first=1)

    def _numbered(
        self,
        known: dict[tuple[object, ...], int],
        key: tuple[object, ...],
        told: dict[str, object],
        mark: str,
        *,
        first: int = 0,
    ) -> int:
        number = known.get(key)
        if number is None:
            number = known[key] = len(known) + first
            self._line(told | {mark: number})
        return number

    def _expression(self, home: _Source, root: int) -> int:
        olean, known, found, todo = home.olean, home.expressions, set[int](), [root]
        while todo:
            place = todo.pop()
            if place not in known and place not in found:
                found.add(place)
                todo += parts_of(olean, place)
        for place in sorted(found):
            known[place] = self._new_expression(home, place)
        return known[root]

    def _new_expression(self, home: _Source, place: int) -> int:
        olean, shape = home.olean, home.olean.words[place]
        parts = [home.expressions[olean.object(place, word - 1)] for word in PARTS[shape]]
        if shape == MDATA:
            return parts[0]
        own, told = self._told(home, place, shape, parts)
        return self._numbered(self._expressions, (shape, *own, *parts), told, "ie")

    def _told(
        self, home: _Source, place: int, shape: int, parts: list[int]
    ) -> tuple[tuple[object, ...], dict[str, object]]:
        """Return what tells an expression from others besides its parts, and its line without the number."""
        olean = home.olean
        if shape == APP:
            return (), {"app": {"fn": parts[0], "arg": parts[1]}}
        if shape in (LAMBDA, PI):
            binder: dict[str, object] = {"name": self._named(home, place), "type": parts[0]}
            binder |= {"body": parts[1], "binderInfo": _BINDERS[olean.words[place + 5] & 3]}
            return (), {"lam" if shape == LAMBDA else "forallE": binder}
        if shape == LET:
            bound = {"name": self._named(home, place), "type": parts[0], "value": parts[1], "body": parts[2]}
            return (), {"letE": bound | {"nondep": False}}
        if shape == BVAR:
            index = olean.nat(olean.child(place, 0))
            return (index,), {"bvar": index}
        if shape == SORT:
            level = self._level(home, olean.child(place, 0))
            return (level,), {"sort": level}
        if shape == CONST:
            levels = tuple(self._level(home, each) for each in olean.list(olean.child(place, 1), "levels"))
            name = self._named(home, place)
            return (name, levels), {"const": {"name": name, "us": levels}}
        if shape == PROJECTION:
            name, index = self._named(home, place), olean.nat(olean.child(place, 1))
            return (name, index), {"proj": {"typeName": name, "idx": index, "struct": parts[0]}}
        if shape == LITERAL:
            return self._literal(olean, olean.object(place, 0))
        raise olean.wrong(place, "closed expression")

    def _named(self, home: _Source, place: int) -> int:
        return self._name(home.olean.name(home.olean.child(place, 0)))

    def _literal(self, olean: Olean, place: int) -> tuple[tuple[object, ...], dict[str, object]]:
        value = olean.child(place, 0)
        if olean.words[place] == NAT:
            number = _decimal(olean.nat(value))
            return ("nat", number), {"natVal": number}
        text = olean.string(value)
        return ("str", text), {"strVal": text}


def _decimal(number: int) -> str:
    """Return a number's digits; Python refuses long ones unless it is told not to."""
    sys.set_int_max_str_digits(0)
    return str(number)


if __name__ == "__main__":
    main()
