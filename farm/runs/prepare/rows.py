"""Preparation step, the rows of jobs and checks, in the format of PostgreSQL's binary COPY."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from struct import Struct
from types import MappingProxyType

from farm.assembly.program import Program
from farm.assembly.segments import Segment, starts_in
from farm.characters import storable
from farm.errors import ManifestError
from farm.judging.verdict import Verdict
from farm.lean_text.positions import line_and_column
from farm.limits import Limits
from farm.manifest.entry import Entry

#: The columns of a line's job and their PostgreSQL types, in order.
JOB_COLUMNS: Mapping[str, str] = MappingProxyType(
    {
        "manifest": "int4",
        "line": "int4",
        "name": "text",
        "group_name": "text",
        "segments": "json",
        "fallback_segments": "json",
        "restated_segments": "json",
        "warnings": "json",
    }
)
#: Those of the check that it asks for; a verdict is there where Lean need not be asked.
CHECK_COLUMNS: Mapping[str, str] = MappingProxyType(
    {
        "manifest": "int4",
        "line": "int4",
        "environment": "text",
        "wall_seconds": "float8",
        "cpu_seconds": "float8",
        "memory_mib": "int4",
        "program_sha256": "bytea",
        "challenge_sha256": "bytea",
        "challenge_name": "text",
        "submitted": "json",
        "fallback_sha256": "bytea",
        "fallback_submitted": "json",
        "restated_sha256": "bytea",
        "restated_submitted": "json",
        "context_end": "int4",
        "identity": "bytea",
        "image": "int8",
        "verdict": "text",
        "reason": "text",
        "detail": "text",
    }
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """Some manifest lines, ready for the store.

    Of each line: the fields of `JOB_COLUMNS` and those of `CHECK_COLUMNS` as ``COPY ... (FORMAT BINARY)``
    wants them, and what its check has in common with equal ones, None where it is not shared. `texts` are
    the programs and challenges that they name: each once, as its sha256 and its UTF-8, lone surrogates
    encoded as they are. Where a line is wrong there are only `faults`, one for each wrong line.
    """

    jobs: tuple[bytes, ...]
    checks: tuple[bytes, ...]
    identities: tuple[bytes | None, ...]
    texts: tuple[tuple[bytes, bytes], ...]
    faults: tuple[ManifestError, ...] = ()

    @property
    def lines(self) -> int:
        """How many lines these are."""
        return len(self.jobs)


# A field is its length and its bytes, null is the length -1:
# https://www.postgresql.org/docs/current/sql-copy.html#SQL-COPY-BINARY-FORMAT
NULL = b"\xff\xff\xff\xff"
_length = Struct("!i").pack
_integer = Struct("!ii").pack
_place = Struct("!iiii").pack
_image = Struct("!iq").pack
_limits = Struct("!ididii").pack


def place_fields(manifest: int, line: int) -> bytes:
    """Return the fields that say which line it is."""
    return _place(4, manifest, 4, line)


def limits_fields(limits: Limits) -> bytes:
    """Return the fields of the limits."""
    return _limits(8, limits.wall_seconds, 8, limits.cpu_seconds, 4, limits.memory_mib)


def field(content: bytes) -> bytes:
    """Return a field of these bytes."""
    return _length(len(content)) + content


def image_field(image: int) -> bytes:
    """Return the field of an image's number."""
    return _image(8, image)


def integer_field(number: int) -> bytes:
    """Return a field of a number of 32 bits."""
    return _integer(4, number)


def words_field(words: str | None) -> bytes:
    """Return a field of text, without what PostgreSQL's text cannot hold: NUL and lone surrogates."""
    if words is None:
        return NULL
    return field(storable(words).encode())


def verdict_fields(verdict: Verdict | None) -> bytes:
    """Return the fields of a verdict, null without one."""
    if verdict is None:
        return NULL * 3
    return b"".join(map(words_field, (verdict.outcome, verdict.reason, verdict.detail)))


def spans_json(spans: Iterable[tuple[int, int]]) -> str:
    """Return what `json.dumps` does of spans, in a third of the time."""
    return f"[{', '.join([f'[{start}, {end}]' for start, end in spans])}]"


def segments_json(program: Program, entry: Entry) -> str:
    """Return a program's segments as JSON, each with the line and column in its field at which it begins."""
    starts = _starts(program.segments, entry)
    listed = [
        f'[{each.start}, {each.length}, "{each.origin}", {each.origin_start}, {line}, {column}]'
        for each, (line, column) in zip(program.segments, starts, strict=True)
    ]
    return f"[{', '.join(listed)}]"


def _starts(segments: Sequence[Segment], entry: Entry) -> list[tuple[int, int]]:
    fields: dict[str, str] = {each.origin: getattr(entry, each.origin) for each in segments}
    if len(segments) <= _FEW:  # counting line feeds is quicker than listing them
        return [line_and_column(fields[each.origin], each.origin_start) for each in segments]
    return list(map(starts_in(segments, fields), range(len(segments))))


_FEW = 16


def warnings_json(program: Program) -> str:
    """Return what `json.dumps` does of a program's warnings, in a third of the time."""
    listed = [f'["{w.code}", "{w.origin}", {w.line}, {w.column}]' for w in program.warnings]
    return f"[{', '.join(listed)}]"
