"""Preparation step, the rows of the store's staging table, in the format of PostgreSQL's binary COPY."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from struct import Struct
from types import MappingProxyType

from farm.job import Limits
from farm.program import Program
from farm.verdict import Verdict

#: The columns of a block's rows and their PostgreSQL types, in order.
COLUMNS: Mapping[str, str] = MappingProxyType(
    {
        "manifest": "int4",
        "line": "int4",
        "name": "text",
        "group_name": "text",
        "environment": "text",
        "wall_seconds": "float8",
        "cpu_seconds": "float8",
        "memory_mib": "int4",
        "program_sha256": "bytea",
        "challenge_sha256": "bytea",
        "challenge_name": "text",
        "submitted": "text",
        "segments": "text",
        "warnings": "text",
        "identity": "bytea",
        "verdict": "text",
        "reason": "text",
        "detail": "text",
    }
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """Some manifest lines, ready for the store.

    `lines` is how many, `rows` their tuples of `COLUMNS` for ``COPY ... (FORMAT BINARY)`` without its header
    and trailer, `texts` the programs and challenges that they name: each once, as its sha256 and its UTF-8,
    lone surrogates encoded as they are.
    """

    lines: int
    rows: bytes
    texts: tuple[tuple[bytes, bytes], ...]


# A field is its length and its bytes, null is the length -1:
# https://www.postgresql.org/docs/current/sql-copy.html#SQL-COPY-BINARY-FORMAT
NULL = b"\xff\xff\xff\xff"
_length = Struct("!i").pack
_head = Struct("!hiiii").pack
_limits = Struct("!ididii").pack


def head(manifest: int, line: int) -> bytes:
    """Return how a row begins: how many fields it has, and the first two."""
    return _head(len(COLUMNS), 4, manifest, 4, line)


def limits_fields(limits: Limits) -> bytes:
    """Return the fields of the limits."""
    return _limits(8, limits.wall_seconds, 8, limits.cpu_seconds, 4, limits.memory_mib)


def field(content: bytes) -> bytes:
    """Return a field of these bytes."""
    return _length(len(content)) + content


def words_field(words: str | None) -> bytes:
    """Return a field of text, without what PostgreSQL's text cannot hold: NUL and lone surrogates."""
    if words is None:
        return NULL
    return field(words.replace("\0", "\ufffd").encode("utf-8", "replace"))


def verdict_fields(verdict: Verdict | None) -> bytes:
    """Return the fields of a verdict, null without one."""
    if verdict is None:
        return NULL * 3
    return b"".join(map(words_field, (verdict.outcome, verdict.reason, verdict.detail)))


def spans_json(spans: Iterable[tuple[int, int]]) -> str:
    """Return what `json.dumps` does of spans, in a third of the time."""
    return f"[{', '.join([f'[{start}, {end}]' for start, end in spans])}]"


def segments_json(program: Program) -> str:
    """Return what `json.dumps` does of a program's segments, in a third of the time."""
    listed = [f'[{s.start}, {s.length}, "{s.origin}", {s.origin_start}]' for s in program.segments]
    return f"[{', '.join(listed)}]"


def warnings_json(program: Program) -> str:
    """Return what `json.dumps` does of a program's warnings, in a third of the time."""
    listed = [f'["{w.code}", "{w.origin}", {w.line}, {w.column}]' for w in program.warnings]
    return f"[{', '.join(listed)}]"
