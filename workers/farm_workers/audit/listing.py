"""Audit step, as a process: finds declarations of an environment by parts of their names.

It is called as `farm_workers.audit.__main__` is. It prints one JSON object: the number of declarations whose
names contain all given words, whatever their case, and the first of them, short names before long ones. The
names of a whole library take a while to read, so they are kept in a file, which the next call reads.
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from farm_workers.audit.declarations import KINDS
from farm_workers.audit.names import dotted
from farm_workers.audit.olean import MalformedOlean, Name, opened

#: Parts of names that Lean makes itself, besides those that begin with an underscore.
_MADE = re.compile(r"(?:match|proof|eq)_\d+|eq_def|sizeOf_spec|noConfusionType|injEq")
#: More objects than the largest module of a library has among its names.
_BUDGET = 50_000_000


def main(words: Sequence[str] | None = None) -> None:
    """Print the declarations found."""
    parser = argparse.ArgumentParser(prog="listing")
    parser.add_argument("--kept", type=Path, required=True)
    parser.add_argument("--word", action="append", required=True)
    parser.add_argument("--most", type=int, required=True)
    parser.add_argument("roots", type=Path, nargs="+")
    arguments = parser.parse_intermixed_args(words)
    lines = _kept(arguments.kept, arguments.roots)
    total, first = found(lines, arguments.word, arguments.most)
    shown = [dict(zip(("name", "kind", "module"), line.split("\t"), strict=True)) for line in first]
    print(json.dumps({"total": total, "declarations": shown}))  # noqa: T201


def found(lines: Iterable[str], words: Sequence[str], most: int) -> tuple[int, list[str]]:
    """Return how many lines have names with all words, and the first of these lines."""
    lowered = [word.lower() for word in words]
    matching = []
    for line in lines:
        name = line.partition("\t")[0].lower()
        if all(word in name for word in lowered):
            matching.append(line)
    return len(matching), heapq.nsmallest(most, matching, key=lambda line: (line.index("\t"), line))


def _kept(file: Path, roots: Sequence[Path]) -> list[str]:
    """Return the lines of the file, which is made if it is missing and can be written."""
    with suppress(FileNotFoundError):
        return file.read_text(encoding="utf-8").splitlines()
    lines = [f"{name}\t{kind}\t{module}" for name, kind, module in listed(roots)]
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        number, new = tempfile.mkstemp(dir=file.parent)
        with os.fdopen(number, "w", encoding="utf-8") as out:
            out.write("\n".join(lines))
        Path(new).replace(file)
    return lines


def listed(roots: Sequence[Path]) -> Iterator[tuple[str, str, str]]:
    """Yield name, kind and module of the declarations in all modules of these folders.

    Left out are declarations that Lean makes for itself, and modules in another format than the audit's.
    """
    seen = set[str]()
    for root in roots:
        for file in sorted(root.rglob("*.olean")):
            module = ".".join(file.relative_to(root).with_suffix("").parts)
            if module in seen:  # Lean, too, takes it from the first folder
                continue
            seen.add(module)
            try:
                for name, kind in _constants(file):
                    yield name, kind, module
            except (MalformedOlean, OSError) as error:
                print(f"{module} is left out: {error}", file=sys.stderr)  # noqa: T201


def _constants(file: Path) -> Iterator[tuple[str, str]]:
    """Yield the constants of one file: of a module in parts, those that other modules see."""
    with opened(file, _BUDGET) as olean:
        names = olean.elements(olean.object(olean.root, 1), "names")
        infos = olean.elements(olean.object(olean.root, 2), "constants")
        for place, info in zip(names, infos, strict=False):
            kind = KINDS.get(olean.words[info]) if info >= 0 else None
            if kind is None:
                raise olean.wrong(info, "constant")
            name = olean.name(place)
            if is_readable(name):
                yield dotted(name), str(kind)


def is_readable(name: Name) -> bool:
    """Return whether a person has written the name, as far as it shows."""
    return bool(name) and all(
        isinstance(part, str)
        and part.isprintable()
        and not part.startswith("_")
        and not _MADE.fullmatch(part)
        for part in name
    )
