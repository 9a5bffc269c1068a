"""Datasets step, miniCTX: reads theorems with the text before them, and ntp-toolkit's fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from farm.datasets.problem import FilePlace, LeftOut, Problem
from farm.datasets.reading import objects, require_field, survivors, text_field
from farm.datasets.records import first_of

_CONTEXTS = ("srcContext", "srcUpToDecl")
_STATEMENTS = ("theoremStatement", "decl")
_NAMES = ("theoremName", "declName", "declId")
#: Lean refuses them, and a context must not be changed: its positions are those of a file.
_REFUSED = {"\t": "a tab", "\r": "a carriage return"}


def context_records(path: Path, *, split: str) -> Iterator[Problem | LeftOut]:
    """Yield the problems of a file of miniCTX or of ntp-toolkit; raises ManifestError.

    The split is the file's name where lines name none: a file is a project. Names may be missing or the same
    in several files, so a problem's group is the place of its theorem.
    """
    usual = split or path.name.partition(".")[0].removeprefix("minictx-").removeprefix("minictx_")
    for place, fields in objects(path):
        context = text_field(place, fields, _CONTEXTS)
        statement = require_field(place, fields, _STATEMENTS, "statement")
        if context is None:
            require_field(place, fields, _CONTEXTS, "text before the theorem")
        refused = [word for mark, word in _REFUSED.items() if mark in (context or "") or mark in statement]
        if refused:
            yield LeftOut(place=place, why=f"its text has {refused[0]}, which Lean refuses")
        else:
            yield _problem(place, fields, context or "", statement, usual)


def _problem(
    place: FilePlace, fields: Mapping[str, object], context: str, statement: str, usual: str
) -> Problem:
    file = text_field(place, fields, ("file",)) or place.path.name
    where = f"{file}:{context.count(chr(10)) + 1}"
    found: dict[str, object] = {
        "file": file,
        "commit": _inside(fields, "theoremCreated", "commit") or _inside(fields, "fileCreated", "commit"),
        "proof_type": _inside(fields, "proofMetadata", "proofType"),
    }
    told = {name: value for name, value in found.items() if value is not None}
    used = {first_of(fields, names) for names in (_CONTEXTS, _STATEMENTS, _NAMES)} | {"split"}
    return Problem(
        place=place,
        name=text_field(place, fields, _NAMES) or where,
        split=text_field(place, fields, ("split",)) or usual,
        context=context,
        statement=statement,
        group=where,
        more=told | survivors(fields, used),
    )


def _inside(fields: Mapping[str, object], outer: str, inner: str) -> object:
    value = fields.get(outer)
    return value.get(inner) if isinstance(value, dict) else None
