"""A small checker that reads exports, as a program: it counts, looks up references, and refuses known proofs.

    python exported.py EXPORT

It needs nothing but the standard library. It ends with 0 if each line refers to earlier ones only, each
constant is declared before a term that is used later mentions it, and no theorem states `False`; else with 1.
It checks no types: no kernel.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

#: The keys of the numbers of an expression's parts.
_PARTS = ("fn", "arg", "type", "body", "value", "struct")
_PLAIN = ("axiom", "def", "thm", "opaque", "quot")


class Refused(Exception):
    """What is wrong with an export."""


class Export:
    """An export that was read: names by number, declarations by name with their kinds, and expressions."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.names: list[str] = [""]
        self.levels = 1
        self.expressions: list[dict[str, Any]] = []
        self.mentions: list[frozenset[int]] = []
        self.declared: dict[str, tuple[str, dict[str, Any]]] = {}
        first, *others = map(json.loads, lines)
        if first["meta"]["format"]["version"] != "3.1.0":
            raise Refused("another format")
        for line in others:
            self._read(line)

    def _read(self, line: dict[str, Any]) -> None:
        if "in" in line:
            ((_, told),) = ((key, value) for key, value in line.items() if key != "in")
            _require(line["in"] == len(self.names) > told["pre"], line)
            prefix = self.names[told["pre"]]
            self.names.append(f"{prefix}.{told.get('str', told.get('i'))}".lstrip("."))
        elif "il" in line:
            ((kind, told),) = ((key, value) for key, value in line.items() if key != "il")
            parts = told if isinstance(told, list) else [told]
            _require(line["il"] == self.levels, line)
            _require(max(parts) < (len(self.names) if kind == "param" else self.levels), line)
            self.levels += 1
        elif "ie" in line:
            self._expression(line)
        else:
            self._declaration(line)

    def _expression(self, line: dict[str, Any]) -> None:
        ((kind, told),) = ((key, value) for key, value in line.items() if key != "ie")
        _require(line["ie"] == len(self.expressions), line)
        parts = [told[key] for key in _PARTS if key in told] if isinstance(told, dict) else []
        named = [told[key] for key in ("name", "typeName") if isinstance(told, dict) and key in told]
        _require(all(part < len(self.expressions) for part in parts), line)
        _require(all(name < len(self.names) for name in named), line)
        if kind in ("sort", "const"):
            levels = [told] if kind == "sort" else told["us"]
            _require(all(level < self.levels for level in levels), line)
        own = [told["name"]] if kind == "const" else [told["typeName"]] if kind == "proj" else []
        self.expressions.append({kind: told})
        self.mentions.append(frozenset(own).union(*(self.mentions[part] for part in parts)))

    def _declaration(self, line: dict[str, Any]) -> None:
        ((kind, told),) = line.items()
        members = [told] if kind in _PLAIN else [each for group in told.values() for each in group]
        for each in members:
            _require(max([0, *each["levelParams"], *each.get("all", ())]) < len(self.names), line)
            name = self.names[each["name"]]
            _require(name not in self.declared, name)
            self.declared[name] = (kind, each)
        for each in members:
            terms = [each["type"], *([each["value"]] if "value" in each else [])]
            terms += [rule["rhs"] for rule in each.get("rules", ())]
            for mentioned in frozenset().union(*(self.mentions[term] for term in terms)):
                _require(self.names[mentioned] in self.declared, self.names[mentioned])
        if kind == "thm":
            _require(self._is_not_false(told["type"]), self.names[told["name"]])

    def _is_not_false(self, term: int) -> bool:
        constant = self.expressions[term].get("const")
        return constant is None or self.names[constant["name"]] != "False"


def _require(right: bool, what: object) -> None:
    if not right:
        raise Refused(f"wrong: {what}")


def read(file: Path) -> Export:
    """Read an export; raises Refused."""
    return Export(_lines(file))


def _lines(file: Path) -> Iterator[str]:
    with file.open(encoding="utf-8") as lines:
        yield from lines


if __name__ == "__main__":
    try:
        print(f"{len(read(Path(sys.argv[1])).declared)} declarations")  # noqa: T201
    except Refused as error:
        print(error)  # noqa: T201
        sys.exit(1)
