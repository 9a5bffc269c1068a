"""Datasets step, records: one JSON object of a Lean benchmark becomes a problem, whatever names it uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from farm.assembly.declaration import read_target
from farm.datasets.lean_files import only_theorem
from farm.datasets.problem import Place, Problem, Unstated
from farm.datasets.reading import objects, require_field, text_field
from farm.lean_text.header import header_end

#: The names that benchmarks give to the same thing; the first one there counts.
NAMES = ("name", "full_name", "theorem_name", "problem_name", "problem_id", "id")
STATEMENTS = ("formal_statement", "lean4_statement", "lean4_formalization", "lean4_code")
HEADERS = ("header", "lean4_src_header", "src_header")
INFORMAL = ("informal_prefix", "informal_statement", "nl_statement", "natural_language", "problem")
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


def _problem(place: Place, fields: Mapping[str, object], usual: str) -> Problem:
    name = require_field(place, fields, NAMES, "name")
    statement = require_field(place, fields, STATEMENTS, "Lean 4 statement")
    header = text_field(place, fields, HEADERS) or ""
    if not header and header_end(statement):
        header, statement = _taken_apart(place, statement)
    target = read_target(statement)
    if not target.name:
        raise place.fault(
            f"{name}: the statement declares no theorem", "mend the line", field=_first(fields, STATEMENTS)
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


def _taken_apart(place: Place, program: str) -> tuple[str, str]:
    try:
        stated = only_theorem(program)
    except Unstated as error:
        raise place.fault(str(error), "mend the line") from error
    return stated.header, stated.statement


def _first(fields: Mapping[str, object], names: tuple[str, ...]) -> str:
    return next(name for name in names if fields.get(name) is not None)


def _more(place: Place, fields: Mapping[str, object]) -> dict[str, object]:
    """Return what else a line is to keep: the words of the problem, its difficulty, its tags."""
    informal = text_field(place, fields, INFORMAL)
    difficulty = next((fields[name] for name in DIFFICULTIES if fields.get(name) is not None), None)
    found: dict[str, object] = {
        "informal_prefix": informal,
        "difficulty": difficulty,
        "tags": fields.get("tags"),
    }
    return {name: value for name, value in found.items() if value is not None}
