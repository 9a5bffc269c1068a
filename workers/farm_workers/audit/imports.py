"""Audit step, as a process: lists a compiled module's imports, and the names that they declare.

It is called as `farm_workers.audit.__main__` is. With the module alone it prints its imports as one JSON
object; with ``--into FOLDER ROOT...`` it writes there two files, ``names`` and ``axioms``: the constants of
all modules that are imported, directly or not, one a line, and those of them that are axioms.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from farm_workers.audit.declarations import ConstantKind, Module, imports_of, whole
from farm_workers.audit.names import dotted
from farm_workers.audit.olean import MalformedOlean, Name, opened


def main(words: Sequence[str] | None = None) -> None:
    """Print or write the imports; exit status 2 when a module is missing or unreadable."""
    parser = argparse.ArgumentParser(prog="imports")
    parser.add_argument("module", type=Path)
    parser.add_argument("--into", type=Path)
    parser.add_argument("roots", type=Path, nargs="*")
    arguments = parser.parse_intermixed_args(words)
    try:
        if arguments.into is None:
            print(json.dumps({"imports": list(map(dotted, _imports(arguments.module)))}))  # noqa: T201
            return
        found = index(_closure(arguments.module, arguments.roots))
    except (MalformedOlean, OSError) as error:
        sys.exit(f"imports: {error}")
    for file, names in (("names", found.names), ("axioms", found.axioms)):
        (arguments.into / file).write_text("\n".join(sorted(map(dotted, names))), encoding="utf-8")
    print(json.dumps({"names": len(found.names), "axioms": len(found.axioms)}))  # noqa: T201


@dataclass(frozen=True, kw_only=True, slots=True)
class Index:
    """The constants of some modules, and those of them that are axioms."""

    names: frozenset[Name]
    axioms: frozenset[Name]


def index(paths: Iterable[Path]) -> Index:
    """Read only the constants' names and kinds in compiled modules."""
    names: set[Name] = set()
    axioms: set[Name] = set()
    for path in paths:
        with ExitStack() as files:
            module = whole(files, path)
            names.update(module.names)
            axioms.update(module.of_kind(ConstantKind.AXIOM))
    return Index(names=frozenset(names), axioms=frozenset(axioms))


def _imports(module: Path) -> tuple[Name, ...]:
    with opened(module) as olean:
        Module(olean)  # checks the root
        return tuple(each.module for each in imports_of(olean))


def _closure(module: Path, roots: Sequence[Path]) -> Iterator[Path]:
    """Yield the files of all imported modules, each once; raises OSError for a missing one."""
    seen: set[Name] = set()
    waiting = list(_imports(module))
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            file = module_file(name, roots)
            yield file
            waiting += _imports(file)


def module_file(name: Name, roots: Iterable[Path]) -> Path:
    """Return the file of a module below the first folder that has it; raises FileNotFoundError."""
    parts = [str(part) for part in name]
    for root in roots:
        file = root.joinpath(*parts[:-1], f"{parts[-1]}.olean")
        if file.is_file():
            return file
    raise FileNotFoundError(f"no root has the module {dotted(name)}")
