"""Datasets step, reading: reads files of a copy as texts and as JSON objects, or raises one clear error."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path

from farm.datasets.problem import FilePlace
from farm.manifest.entries import FIELDS
from farm.manifest.lines import encoding_of, opened, printable, reading, unusable

#: No file of a benchmark comes near this size; a larger one is another kind of file.
MOST_MIB = 512

_DATA = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".json", ".json.gz")


def is_data(path: Path) -> bool:
    """Return whether a file's name says that it holds JSON."""
    return path.name.lower().endswith(_DATA)


def files(folder: Path, suffix: str) -> tuple[Path, ...]:
    """Return the files right in a folder with this suffix, by name; none if the folder does not exist."""
    if not folder.is_dir():
        return ()
    with reading(folder):
        return tuple(sorted(each for each in folder.iterdir() if each.suffix == suffix and each.is_file()))


def data_files(folder: Path) -> tuple[Path, ...]:
    """Return the files with JSON right in a folder, by name."""
    if not folder.is_dir():
        return ()
    with reading(folder):
        return tuple(sorted(each for each in folder.iterdir() if is_data(each) and each.is_file()))


def text_of(path: Path) -> str:
    """Return the text of a file; raises ManifestError when it cannot be read or is not UTF-8."""
    with reading(path):
        if path.stat().st_size > MOST_MIB << 20:
            raise unusable(path, f"is larger than {MOST_MIB} MiB", "give a file of the benchmark")
        content = path.read_bytes()
    return _decoded(FilePlace(path=path), content)


def _decoded(place: FilePlace, content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if (wrong := encoding_of(content)) is not None:
            raise place.fault(wrong.problem, wrong.remedy) from error
        line = place.line or content.count(b"\n", 0, error.start) + 1
        column = error.start - content.rfind(b"\n", 0, error.start)
        raise FilePlace(path=place.path, line=line).fault(
            f"invalid UTF-8 at byte {column} of the line", "save the file as UTF-8"
        ) from error


def objects(path: Path) -> Iterator[tuple[FilePlace, Mapping[str, object]]]:
    """Yield the objects of a `.jsonl` or `.json` file, each with its place; raises ManifestError.

    A `.json` file holds an array of objects, or an object whose values are objects, with names for keys.
    """
    if path.name.lower().endswith((".json", ".json.gz")):
        yield from _of_one_value(path)
        return
    with opened(path) as lines:
        for number, line in lines:
            place = FilePlace(path=path, line=number)
            if not line.isspace():
                yield place, _object(place, _value(place, line))


def rows(path: Path) -> Iterator[tuple[FilePlace, Mapping[str, object]]]:
    """Yield the rows of a file with JSON, or of a `.csv` or `.tsv` file whose first line names the fields.

    Raises ManifestError; one of Parquet is refused with the command that converts it.
    """
    name = path.name.lower()
    if name.endswith(".parquet"):
        raise unusable(path, "is a file of Parquet, which the farm does not read", _CONVERSION)
    if name.endswith((".csv", ".tsv")):
        yield from _of_table(path, "\t" if name.endswith(".tsv") else ",")
    elif is_data(path):
        yield from objects(path)
    else:
        raise unusable(path, "is no file of rows", "give a .jsonl, .json, .csv or .tsv file")


_CONVERSION = (
    "convert it first, with pandas and pyarrow installed: python -c 'import pandas, sys; "
    'pandas.read_parquet(sys.argv[1]).to_json(sys.argv[2], orient="records", lines=True)\' '
    "FILE.parquet FILE.jsonl"
)


def _of_table(path: Path, separator: str) -> Iterator[tuple[FilePlace, Mapping[str, object]]]:
    """Yield the rows of a table; a field that a short row lacks is null. A place is the row's last line."""
    csv.field_size_limit(MOST_MIB << 20)
    table = csv.reader(io.StringIO(text_of(path), newline=""), delimiter=separator)
    names: list[str] = []
    try:
        for row in table:
            place = FilePlace(path=path, line=table.line_num)
            if not names:
                names = _columns(place, row)
            elif len(row) > len(names):
                raise place.fault(f"has {len(row)} fields, the first line {len(names)}", "mend this row")
            elif row:
                yield place, dict(zip_longest(names, row))
    except csv.Error as error:
        raise FilePlace(path=path, line=table.line_num).fault(str(error), "mend this row") from error


def _columns(place: FilePlace, row: list[str]) -> list[str]:
    if twice := [name for name in row if row.count(name) > 1]:
        raise place.fault(f"names the field {printable(twice[0])} twice", "rename one of the two")
    return row


def object_of(path: Path) -> Mapping[str, object]:
    """Return the one object that a `.json` file holds; raises ManifestError."""
    place = FilePlace(path=path)
    return _object(place, _value(place, _content(path)))


def has_rows(path: Path) -> bool:
    """Return whether a file with JSON can hold problems: a `.json` file may be one object of settings."""
    if not path.name.lower().endswith((".json", ".json.gz")):
        return True
    value = _value(FilePlace(path=path), _content(path))
    rows = list(value.values()) if isinstance(value, dict) else value
    return isinstance(rows, list) and all(isinstance(each, dict) for each in rows)


def _of_one_value(path: Path) -> Iterator[tuple[FilePlace, Mapping[str, object]]]:
    place = FilePlace(path=path)
    value = _value(place, _content(path))
    if isinstance(value, dict) and value and all(isinstance(each, dict) for each in value.values()):
        value = [{"name": name, **each} for name, each in value.items()]
    if not isinstance(value, list):
        raise place.fault(
            "holds no list of problems", "give an array of objects, or write one a line (.jsonl)"
        )
    for each in value:
        yield place, _object(place, each)


def _content(path: Path) -> bytes:
    if path.suffix.lower() != ".gz":
        return text_of(path).encode("utf-8")
    with reading(path), gzip.open(path) as packed:
        try:
            content = packed.read((MOST_MIB << 20) + 1)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise unusable(path, f"is not a complete .gz file: {error}", "compress it again") from error
    if len(content) > MOST_MIB << 20:
        raise unusable(path, f"is larger than {MOST_MIB} MiB", "give a file of the benchmark")
    return content


def _value(place: FilePlace, line: bytes) -> object:
    try:
        return json.loads(_decoded(place, line))
    except json.JSONDecodeError as error:
        if (wrong := encoding_of(line)) is not None:
            raise place.fault(wrong.problem, wrong.remedy) from error
        at = place if place.line is not None else FilePlace(path=place.path, line=error.lineno)
        raise at.fault(
            f"malformed JSON at column {error.colno}: {error.msg}",
            "download the file again, or mend this line",
        ) from error
    except (RecursionError, ValueError) as error:
        raise place.fault(f"cannot be read as JSON: {error}", "mend this line") from error


def _object(place: FilePlace, value: object) -> Mapping[str, object]:
    if isinstance(value, dict):
        return value
    raise place.fault("is not an object", "write each problem as one JSON object")


#: Names that a manifest's lines give a meaning to; see docs/use/datasets.md.
_TAKEN = FIELDS | {"source", "split", "sample"}


def survivors(fields: Mapping[str, object], used: Collection[str | None]) -> dict[str, object]:
    """Return the fields that no other field of the line stands for, with their values as they are.

    A field whose name means something else in a manifest becomes ``original_NAME``.
    """
    return {
        f"original_{name}" if name in _TAKEN else name: value
        for name, value in fields.items()
        if name not in used
    }


def text_field(place: FilePlace, fields: Mapping[str, object], names: Sequence[str]) -> str | None:
    """Return the text of the first of these fields that is there and not null; raises ManifestError."""
    for name in names:
        value = fields.get(name)
        if value is None:
            continue
        if not isinstance(value, str):
            raise place.fault("is not a string", "write it as a string", field=name)
        if not _can_be_written(value):
            raise place.fault("holds half of a character (a lone surrogate)", "mend the text", field=name)
        return value
    return None


def require_field(place: FilePlace, fields: Mapping[str, object], names: Sequence[str], what: str) -> str:
    """Return the same, and raise ManifestError if the line has none of them, or only a blank one."""
    text = text_field(place, fields, names)
    if text is not None and text.strip():
        return text
    there = ", ".join(printable(each) for each in list(fields)[:12]) or "no field"
    raise place.fault(
        f"has no {what}; the line has {there}",
        f"give a file with the field {names[0]}, or check that this is a file of that benchmark",
    )


def _can_be_written(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
