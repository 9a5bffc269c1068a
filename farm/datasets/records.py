"""Datasets step, records: turns a JSON object of a Lean benchmark into a problem, whatever its keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from farm.assembly.declaration import read_target
from farm.assembly.faults import Unstated
from farm.datasets.lean_files import only_theorem
from farm.datasets.problem import FilePlace, Problem
from farm.datasets.reading import objects, require_field, survivors, text_field
from farm.lean_text.header import header_end

#: The names that benchmarks give to the same thing; the first one there counts.
NAMES = ("name", "full_name", "theorem_name", "problem_name", "problem_id", "id")
STATEMENTS = (
    *("formal_statement", "formal_stmt", "lean4_statement", "lean4_formalization", "lean4_code"),
    "statement",
)
HEADERS = ("header", "lean4_src_header", "src_header")
#: Declarations that stand between header and statement.
HELPERS = ("helper",)
INFORMAL = (
    *("informal_prefix", "informal_statement", "informal_stmt", "nl_statement", "natural_language"),
    "problem",
)
DIFFICULTIES = ("difficulty", "level")

_SPLITS = {"test": "test", "valid": "valid", "validation": "valid", "val": "valid"}


def lean_records(path: Path, *, split: str) -> Iterator[Problem]:
    """Yield the problems of a file with JSON; raises ManifestError.

    `split` is that of lines which name none themselves, where the file's name says none either.
    """
    usual = split_of(path) or split
    for place, fields in objects(path):
        yield _problem(place, fields, usual)


def split_of(path: Path) -> str:
    """Return the split that the name of a file or folder says, "" for none."""
    stem = path.name.partition(".")[0].lower().replace("_", "-")
    return next((_SPLITS[part] for part in reversed(stem.split("-")) if part in _SPLITS), "")


def _problem(place: FilePlace, fields: Mapping[str, object], usual: str) -> Problem:
    name = require_field(place, fields, NAMES, "name")
    statement = require_field(place, fields, STATEMENTS, "Lean 4 statement")
    header, statement = _parts(place, fields, statement)
    target = read_target(statement)
    if not target.name:
        raise place.fault(
            f"{name}: the statement declares no theorem", "mend the line", field=first_of(fields, STATEMENTS)
        )
    split = text_field(place, fields, ("split",)) or usual
    return Problem(
        place=place,
        name=name,
        split=_SPLITS.get(split, split),
        header=header,
        statement=statement[: target.kept],
        more=_more(place, fields),
    )


def _parts(place: FilePlace, fields: Mapping[str, object], statement: str) -> tuple[str, str]:
    """Return the header and the statement, with the text between the two."""
    header = text_field(place, fields, HEADERS) or ""
    helper = (text_field(place, fields, HELPERS) or "").strip()
    if helper:
        statement = f"{helper}\n\n{statement}"
    if header or not header_end(statement):
        return header, statement
    try:
        stated = only_theorem(statement)
    except Unstated as error:
        raise place.fault(str(error), "mend the line") from error
    return stated.header, stated.statement


def first_of(fields: Mapping[str, object], names: tuple[str, ...]) -> str | None:
    """Return the first of these names whose field is there and not null."""
    return next((name for name in names if fields.get(name) is not None), None)


def _more(place: FilePlace, fields: Mapping[str, object]) -> dict[str, object]:
    """Return the other fields that a line keeps: informal statement, difficulty, and unknown fields."""
    used = [first_of(fields, names) for names in (NAMES, STATEMENTS, HEADERS, HELPERS, INFORMAL)]
    found: dict[str, object] = {
        "informal_prefix": text_field(place, fields, INFORMAL),
        "difficulty": next((fields[name] for name in DIFFICULTIES if fields.get(name) is not None), None),
    }
    told = {name: value for name, value in found.items() if value is not None}
    return told | survivors(fields, {*used, "split"} - {None})
