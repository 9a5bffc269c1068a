"""Report step: reads the lines of runs from the store, and their fields from their manifests, in one pass.

Lines are counted into pools and not kept.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from farm.errors import ManifestChanged, ManifestError, UsageError
from farm.manifest.lines import Fingerprint, Lines, opened, printable
from farm.reports.pools import LinePool
from farm.store.outcomes import LineOutcome, outcomes
from farm.store.queries import Queries, StoredManifest, StoredRun

#: The field of verdicts that lines are split by, whatever fields their manifests have.
ERROR_KIND = "error_kind"
#: A field with more values than these splits nothing.
MOST_VALUES = 1000


class Problems:
    """The problems that have been met, numbered, and how they are called.

    All lines of a group are answers to one problem; without a group, all lines of a name are, in whatever run
    they stand. A line with neither is a problem of its own.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        #: By number; as long as is fit to be shown.
        self.names: list[str] = []

    def number(self, run: StoredRun, line: LineOutcome) -> int:
        """Return the number of a line's problem."""
        name = line.name if line.group is None else line.group
        if name or line.group is not None:
            name = shortened(name)
            key = ("n" if line.group is None else "g") + name
        else:
            key = f"l{run.rechecks or run.id} {line.manifest}:{line.line}"
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.names)
            self.names.append(name if key[0] != "l" else run.place(line.manifest, line.line))
        return number


class Reader:
    """Reads runs into pools, `total` for all of them together if there are `several`."""

    def __init__(self, queries: Queries, *, by: str | None = None, several: bool = False) -> None:
        self._queries = queries
        self._several = several
        self.field = None if by is None else Field(by)
        self.problems = Problems()
        #: All lines that were read, and those of each value of the field; None is for lines without it.
        self.total = LinePool()
        self.values: dict[str | None, LinePool] = {}

    def read(self, run: StoredRun) -> LinePool:
        """Read the lines of a run that is reported, and return them by themselves.

        Raises `UsageError` for a run without lines and a field with too many values, `ManifestError` where
        the field cannot be read, and `ServerDown`.
        """
        pool = LinePool() if self._several else self.total
        for line, value in self._lines(run):
            problem = self.problems.number(run, line)
            pool.add(problem, line)
            if self._several:
                self.total.add(problem, line)
            if self.field is not None:
                self._of(value).add(problem, line)
        return self._whole(run, pool)

    def read_beside(self, run: StoredRun) -> LinePool:
        """Read the lines of a run that others are compared with; raises as `read` does, fields apart."""
        pool = LinePool()
        with closing(outcomes(self._queries.engine, run.id)) as lines:
            for line in lines:
                pool.add(self.problems.number(run, line), line)
        return self._whole(run, pool)

    def _whole(self, run: StoredRun, pool: LinePool) -> LinePool:
        self._queries.require_there(run.id)
        if not pool.lines:
            raise UsageError(f"run {run.id} has no lines, so there is nothing to report")
        return pool

    def require_field(self) -> None:
        """Raise `UsageError` when no line that was read has the field."""
        if self.field is None or self.field.is_found:
            return
        name, others = printable(self.field.name), ", ".join(map(printable, self.field.others))
        raise UsageError(f"--by {name}: no line has this field; the lines have {others}")

    def _of(self, value: str | None) -> LinePool:
        pool = self.values.get(value)
        if pool is None:
            if len(self.values) == MOST_VALUES:
                name = printable(self.field.name if self.field else "")
                raise UsageError(
                    f"--by {name}: the field has more than {MOST_VALUES} different values; "
                    "choose one that many lines share"
                )
            pool = self.values[value] = LinePool()
        return pool

    def _lines(self, run: StoredRun) -> Iterator[tuple[LineOutcome, str | None]]:
        with closing(outcomes(self._queries.engine, run.id)) as lines:
            if self.field is None:
                for line in lines:
                    yield line, None
                return
            if self.field.name == ERROR_KIND:
                self.field.is_found = True
                for line in lines:
                    yield line, line.error_kind
                return
            manifests = self._queries.manifests(run.id)
            if not manifests:
                raise UsageError(f"--by {printable(self.field.name)}: run {run.id} has no manifests to read")
            for number, found in groupby(lines, key=attrgetter("manifest")):
                yield from self._with_values(run.id, manifests[number], found, self.field)

    def _with_values(
        self, run_id: str, manifest: StoredManifest, lines: Iterator[LineOutcome], field: Field
    ) -> Iterator[tuple[LineOutcome, str | None]]:
        with field_values(manifest.path, field) as values:
            for line in lines:
                yield line, values.at(line.line)
            # An export may have replaced the file before it was opened, or since.
            now = self._queries.manifest(run_id, manifest.number)
            values.require({*manifest.fingerprints, *now.fingerprints})


def require_distinct(runs: Sequence[StoredRun]) -> None:
    """Raise `UsageError` when a run is given twice."""
    ids = [run.id for run in runs]
    for each in ids:
        if ids.count(each) > 1:
            raise UsageError(f"run {each} is given twice; its lines would count twice. Give each run once")


#: At most this many field names are kept for a message.
_MOST_NAMES = 50
#: A longer value is represented by its beginning and a hash.
_LONGEST = 200
#: More digits than these are a text; Python refuses to count with very many.
_MOST_DIGITS = 20

_REMEDY = "put the submitted file back, or leave out --by"


def _whole(digits: str) -> int | str:
    return int(digits) if len(digits) <= _MOST_DIGITS else digits


# That there is nothing behind the object is known: the file is one that was submitted.
_decoded = json.JSONDecoder(parse_int=_whole).raw_decode
_encoded = json.JSONEncoder(ensure_ascii=False, sort_keys=True).encode


class Field:
    """One field, and whether any line that was read has it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_found = False
        #: Fields of the lines that were read before one had this one; a dict, for they have an order.
        self.others: dict[str, None] = {}

    def value(self, line: bytes) -> str | None:
        """Return the value as a text, JSON where it is none, None without the field.

        Raises ValueError when the line is no JSON object, and RecursionError.
        """
        fields, _ = _decoded(line.decode().lstrip())
        if not isinstance(fields, dict):
            raise ValueError(line[:1])  # noqa: TRY004 - as the decoder says that a line is no line
        if self.name not in fields:
            if not self.is_found and len(self.others) < _MOST_NAMES:
                self.others.update(dict.fromkeys(fields))
            return None
        self.is_found = True
        return shown(fields[self.name])


def shown(value: object) -> str:
    """Return a value of a field as a text of bounded length; different values keep different texts."""
    return shortened(value if isinstance(value, str) else _encoded(value))


def shortened(text: str) -> str:
    """Return a text, or the beginning of a long one and its hash."""
    if len(text) <= _LONGEST:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{text[: _LONGEST // 2]}... (sha256 {digest})"


class FieldValues:
    """The values of a field in one manifest as it was submitted, line after line."""

    def __init__(self, lines: Lines, field: Field) -> None:
        self._lines, self._field = lines, field
        self._rest: Iterator[tuple[int, bytes]] = iter(lines)

    def at(self, line: int) -> str | None:
        """Return the value at a line; calls must come in ascending order.

        Raises `ManifestError`, a `ManifestChanged` if the file no longer has that line.
        """
        for number, text in self._rest:
            if number == line:
                try:
                    return self._field.value(text)
                except (ValueError, RecursionError) as error:
                    raise changed(self._lines.path) from error
        raise changed(self._lines.path)

    def require(self, known: Collection[Fingerprint]) -> None:
        """Raise `ManifestChanged` unless the file is one of those that the farm has read or written."""
        if self._lines.fingerprint() not in known:
            raise changed(self._lines.path)


@contextmanager
def field_values(path: Path, field: Field) -> Iterator[FieldValues]:
    """Give the values of a field in a manifest, which is open inside the block; raises `ManifestError`."""
    try:
        with opened(path) as lines:
            yield FieldValues(lines, field)
    except ManifestChanged:
        raise
    except ManifestError as error:
        problem = f"{error.problem}, and --by reads the field from there"
        raise ManifestError(error.path, problem, remedy=_REMEDY) from error


def changed(path: Path) -> ManifestChanged:
    """Return the error that says that the field's values are gone."""
    problem = "has changed since it was submitted, so --by cannot know the values of the judged lines"
    return ManifestChanged(printable(path, None), problem, remedy=_REMEDY)
