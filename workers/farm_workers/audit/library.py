"""Audit step, as a process: reads all modules of a library as data, and writes its table of dependencies.

It is called as `farm_workers.audit.__main__` is, with the file to write, the digest of the environment and
the folders of the modules. A constant rests on the constants in its type and its value, and an inductive
type on its constructors, as in Lean's own ``collectAxioms`` (``src/Lean/Util/CollectAxioms.lean``, 4.35.0).
"""

from __future__ import annotations

import argparse
import functools
import json
import operator
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from farm_workers.audit.declarations import ConstantKind, Module, imports_of, whole
from farm_workers.audit.dependencies import BadTable, Below, Contents, write
from farm_workers.audit.kernel import SORRY
from farm_workers.audit.mentions import Mentions
from farm_workers.audit.names import dotted
from farm_workers.audit.olean import MalformedOlean, Name, opened
from farm_workers.audit.rests import components

#: The box of the process ends it before it has visited so many objects.
_BUDGET = 1 << 60
_SUFFIX = ".olean"


def main(words: Sequence[str] | None = None) -> None:
    """Write the table, and print its size and the modules that could not be read."""
    parser = argparse.ArgumentParser(prog="library")
    parser.add_argument("into", type=Path)
    parser.add_argument("environment")
    parser.add_argument("roots", type=Path, nargs="*")
    arguments = parser.parse_args(words)
    try:
        contents = read(arguments.roots)
        with arguments.into.open("wb") as out:
            write(contents, arguments.environment, out)
    except (BadTable, OSError, MemoryError) as error:
        sys.exit(f"library: {error or 'out of memory'}")
    told = {"modules": len(contents.modules), "constants": len(contents.constants), "unread": contents.unread}
    print(json.dumps(told))  # noqa: T201


def read(roots: Sequence[Path]) -> Contents:
    """Return the dependencies of the constants of all modules in these folders.

    A module in another format, a truncated one, and one of a cycle are left out, with the reason.
    """
    contents, files = Contents(), dict[Name, Path]()
    for root in roots:
        for name, file in modules_below(root):
            files.setdefault(name, file)  # Lean, too, takes a module from the first folder
    library = _Library(contents)
    for name, imports in _in_order(files, contents.unread):
        try:
            with ExitStack() as opened_files:
                library.add(name, imports, whole(opened_files, files[name], _BUDGET))
        except (MalformedOlean, OSError) as error:
            contents.unread[dotted(name)] = str(error)
    library.finish()
    return contents


def modules_below(root: Path) -> Iterator[tuple[Name, Path]]:
    """Yield the modules in a folder and below it, through symbolic links too, with their files.

    Raises OSError for a folder that cannot be read.
    """
    walked = set[str]()
    for here, below, names in os.walk(root, followlinks=True, onerror=_require_missing):
        walked.add(os.path.realpath(here))
        below[:] = [each for each in sorted(below) if os.path.realpath(f"{here}/{each}") not in walked]
        folders = Path(here).relative_to(root).parts
        for name in sorted(names):
            if name.endswith(_SUFFIX):
                yield (*folders, name.removesuffix(_SUFFIX)), Path(here, name)


def _require_missing(error: OSError) -> None:
    """Raise the error of a folder that is there: a search path may name others, which Lean passes over."""
    if not isinstance(error, FileNotFoundError):
        raise error


def _in_order(files: dict[Name, Path], unread: dict[str, str]) -> Iterator[tuple[Name, list[Name]]]:
    """Yield the modules, each behind its imports, with its imports."""
    imports = dict[Name, list[Name]]()
    for name, file in files.items():
        try:
            with opened(file, _BUDGET) as olean:
                Module(olean)  # checks the root
                imports[name] = [each.module for each in imports_of(olean)]
        except (MalformedOlean, OSError) as error:
            unread[dotted(name)] = str(error)
    for group in components(imports, lambda name: [each for each in imports[name] if each in imports]):
        for name in group:
            if len(group) > 1 or name in imports[name]:
                unread[dotted(name)] = "it imports itself by way of others"
            else:
                yield name, imports[name]


class _Library:
    """Adds up the dependencies of constants, module by module; a set is the bits of a number."""

    def __init__(self, contents: Contents) -> None:
        self._contents = contents
        self._elements: dict[tuple[str, Name], int] = {}
        self._below: dict[Name, int] = {}
        #: The module of each name; of a name of several modules, the sets in each.
        self._homes = contents.homes
        self._several: dict[Name, dict[int, int]] = {}
        self._numbers: dict[Name, int] = {}
        #: The modules that each module imports, directly or not, as bits.
        self._visible: list[int] = []

    def add(self, name: Name, imports: Sequence[Name], module: Module) -> None:
        """Add a module, all of whose readable imports were added."""
        if module.repeated:
            raise MalformedOlean("it declares a name more than once")
        number = len(self._visible)
        known = [self._numbers[each] for each in imports if each in self._numbers]
        visible = functools.reduce(operator.or_, (self._visible[each] | 1 << each for each in known), 0)
        for constant, below in self._rests(module, visible).items():
            if constant in self._homes:
                self._several.setdefault(constant, {self._homes[constant]: self._below[constant]})[number] = (
                    below
                )
            self._homes[constant], self._below[constant] = number, below
        self._numbers[name] = number
        self._visible.append(visible)
        self._contents.modules.append(name)
        self._contents.imports.append(known)

    def finish(self) -> None:
        """Put all sets into the contents."""
        numbers = dict[int, int]()

        def number(below: int) -> int:
            if below not in numbers:
                numbers[below] = len(numbers)
                self._contents.sets.append(self._set(below))
            return numbers[below]

        for name, below in self._below.items():
            if name not in self._several:
                self._contents.constants[name] = number(below)
        for name, homes in self._several.items():
            self._contents.repeated[name] = {home: number(below) for home, below in homes.items()}

    def _set(self, below: int) -> Below:
        found: dict[str, set[Name]] = {"axioms": set(), "sorries": set(), "unknown": set()}
        for (sort, name), number in self._elements.items():
            if below >> number & 1:
                found[sort].add(name)
        return Below(**{sort: frozenset(names) for sort, names in found.items()})

    def _element(self, sort: str, name: Name) -> int:
        return 1 << self._elements.setdefault((sort, name), len(self._elements))

    def _imported(self, name: Name, visible: int) -> int:
        """Return the dependencies of an imported constant, for a module that imports these modules."""
        homes = self._several.get(name)
        if homes is None:  # declared once, or not at all
            return self._below[name] if name in self._homes else self._element("unknown", name)
        seen = [below for home, below in homes.items() if visible >> home & 1]
        return functools.reduce(operator.or_, seen or homes.values())

    def _rests(self, module: Module, visible: int) -> dict[Name, int]:
        """Return the dependencies of a module's constants.

        In the bits of its terms its own constants come first, then a mark of each sorry, then the elements.
        """
        names = list(module.names)
        places = {name: place for place, name in enumerate(names)}
        mark = 1 << len(names)

        def bits(name: Name) -> int:
            own = places.get(name)
            rest = self._imported(name, visible) << len(names) + 1 if own is None else 1 << own
            return rest | mark if name == SORRY else rest

        mentions = Mentions(module.olean, bits)
        direct = [self._direct(module, name, mentions, bits) for name in names]
        return dict(zip(names, _closed(direct, len(names)), strict=True))

    def _direct(self, module: Module, name: Name, mentions: Mentions, bits: Callable[[Name], int]) -> int:
        """Return the bits of a constant's own terms, of its constructors, and its own."""
        constant, count = module.constant(name), len(module.names)
        assert constant is not None  # noqa: S101 - it is one of the module's names
        if constant.kind is ConstantKind.QUOTIENT:  # as in Lean's own search
            return 0
        found = mentions.of(constant)
        for each in constant.constructors:
            found |= bits(each)
        own = self._element("axioms", name) if constant.kind is ConstantKind.AXIOM else 0
        if found >> count & 1:
            own |= self._element("sorries", name)
        return found & ~(1 << count) | own << count + 1


def _closed(direct: Sequence[int], count: int) -> list[int]:
    """Return the elements below each constant, given the constants and elements that each mentions."""
    own = (1 << count) - 1
    parts = [list(_places(bits & own)) for bits in direct]
    found = [bits >> count + 1 for bits in direct]
    for group in components(range(count), parts.__getitem__):
        below = 0
        for place in group:
            below |= found[place]
            for part in parts[place]:
                below |= found[part]
        for place in group:
            found[place] = below
    return found


def _places(bits: int) -> Iterator[int]:
    """Yield the places of the bits of a number that are set."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest
