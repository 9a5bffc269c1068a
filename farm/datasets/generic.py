"""Datasets step, any other benchmark: reads rows whose fields the user names, and folders of Lean files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from farm.assembly.declaration import read_target
from farm.assembly.faults import Unstated
from farm.datasets.layouts import Found, in_files
from farm.datasets.lean_files import only_theorem
from farm.datasets.problem import FilePlace, LeftOut, Problem
from farm.datasets.reading import rows, survivors
from farm.datasets.records import HEADERS, NAMES, first_of
from farm.errors import UsageError
from farm.kinds import Kind
from farm.lean_text.header import header_end
from farm.manifest.lines import printable, reading, unusable

#: Folders with such names hold no file of a benchmark's own.
_NOT_ITS_OWN = re.compile(r"\..*|lake-packages|build")


@dataclass(frozen=True, kw_only=True, slots=True)
class Columns:
    """The fields of a row that hold its parts; "" leaves the choice to the farm.

    `header` may also be the header's text.
    """

    statement: str
    name: str = ""
    header: str = ""
    system: str = Kind.LEAN


def rows_of(path: Path, columns: Columns) -> Found:
    """Yield the problems of a file with rows, without rows that have no statement.

    Raises ManifestError for a file that cannot be read, and UsageError for a field that no row has.
    """
    if path.is_dir():
        raise unusable(path, "is a folder", "give one of its files, or read it with: farm dataset folder")
    seen: dict[str, None] = {}
    for place, fields in rows(path):
        seen |= dict.fromkeys(fields)
        yield _problem(place, fields, columns)
    for option, field in (("--statement", columns.statement), ("--name", columns.name)):
        _require_field(path, option, field, seen)
    if not _is_text(columns.header):
        _require_field(path, "--header", columns.header, seen)


def _is_text(header: str) -> bool:
    """Return whether a header is given as text: no field that people use has a blank in its name."""
    return re.search(r"\s", header) is not None


def _require_field(path: Path, option: str, field: str, seen: Mapping[str, None]) -> None:
    if field and seen and field not in seen:
        there = ", ".join(printable(each) for each in seen)
        raise UsageError(
            f"{option} {printable(field)}: no row of {printable(path, None)} has this field; the rows have "
            f"{there}. Choose one of these"
        )


def _problem(place: FilePlace, fields: Mapping[str, object], columns: Columns) -> Problem | LeftOut:
    name_field = columns.name or first_of(fields, NAMES)
    header_field = columns.header or (first_of(fields, HEADERS) if columns.system == Kind.LEAN else None)
    try:
        given = _header(fields, header_field or "")
        header, statement, declared = _stated(columns.system, given, _text(fields, columns))
    except Unstated as error:
        return LeftOut(place=place, why=str(error))
    name = fields.get(name_field) if name_field else None
    split = fields.get("split")
    return Problem(
        place=place,
        name=str(name or declared or place),
        split=str(split or ""),
        header=header,
        statement=statement,
        more=survivors(fields, {columns.statement, header_field, name_field, "split"}),
    )


def _text(fields: Mapping[str, object], columns: Columns) -> str:
    text = fields.get(columns.statement)
    if not isinstance(text, str) or not text.strip():
        raise Unstated(f"its {printable(columns.statement)} is no text, or blank")
    return text


def _header(fields: Mapping[str, object], field: str) -> str:
    """Return the header of a row, from a field or given as text; it ends its last line."""
    header = field if _is_text(field) else fields.get(field)
    if header is not None and not isinstance(header, str):
        raise Unstated(f"its {printable(field)} is no text")
    return f"{header}\n\n" if header and not header.endswith("\n") else header or ""


def _stated(system: str, header: str, statement: str) -> tuple[str, str, str]:
    """Return header, statement and the name that it declares; raises Unstated.

    The header of a statement that is a whole program is its own one, unless a row gives another.
    """
    if system != Kind.LEAN:
        return "", statement, ""
    if header_end(statement):
        stated = only_theorem(statement)
        return header or stated.header, stated.statement, stated.name
    target = read_target(statement)
    if not target.name:
        raise Unstated("declares no theorem with a name")
    return header, statement[: target.kept], target.name


def files_of(path: Path, match: str) -> Found:
    """Yield the problems of a folder's files of Lean, at any depth.

    `match` is a glob that chooses them: each file then states a problem. Without one, "", all files are read,
    and those that leave no theorem with a ``sorry`` are a library where others do.
    """
    if path.is_file():
        yield from in_files(path.parent, (path,))
        return
    with reading(path):
        found = tuple(sorted(_chosen(path, match or "**/*.lean")))
    if not found:
        raise unusable(
            path, f"holds no file that matches {printable(match or '**/*.lean')}", "give another --match"
        )
    yield from in_files(path, found, each_states=bool(match))


def _chosen(path: Path, match: str) -> Iterator[Path]:
    try:
        matched = list(path.glob(match))
    except (ValueError, NotImplementedError) as error:
        raise UsageError(f"--match {printable(match)}: {error}; give a glob such as **/*.lean") from error
    for each in matched:
        folders = each.relative_to(path).parts[:-1]
        if each.is_file() and not any(_NOT_ITS_OWN.fullmatch(part) for part in folders):
            yield each
