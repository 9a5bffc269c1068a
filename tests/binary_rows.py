"""What the tests of blocks share: a manifest's rows as blocks hold them, and as Python computes them."""

from __future__ import annotations

import hashlib
import json
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from farm.assembly.challenge import challenge_to
from farm.assembly.images import image_of
from farm.assembly.program import AssemblyOptions, assemble
from farm.judging.submit_options import SubmitOptions
from farm.judging.tiers import Tier
from farm.judging.verdict import UNREADABLE_STATEMENT, judge_text
from farm.lean_text.positions import line_and_column
from farm.manifest.entries import read
from farm.manifest.lines import opened
from farm.runs.prepare.manifests import preparing
from farm.store.columns import Column
from farm.store.environments import ServedEnvironment
from farm.store.new_lines import JOB_COLUMNS, STAGED_COLUMNS, Block

CORE = ServedEnvironment(
    name="core", digest="0" * 64, toolchain="v4.35.0", silent_seconds=0.0, tiers=tuple(Tier)
)
OTHER = ServedEnvironment(
    name="other", digest="1" * 64, toolchain="v4.35.0", silent_seconds=0.0, tiers=tuple(Tier)
)
OPTIONS = SubmitOptions(assembly=AssemblyOptions(), environment="core")

Row = dict[str, object]

TASK = {"header": "import Mathlib\n", "formal_statement": "theorem a : 1 = 1 := by\n", "generation": "rfl"}
#: Fields that make lines of every sort; the last five cannot be given to Lean.
SORTS: tuple[dict[str, object], ...] = (
    {},
    {"name": "n\0\ud800", "group": "gé", "timeout": 7.5, "environment": "other"},
    {"generation": "```lean4\ntheorem a : 1 = 1 := by\n  simp\n```", "name": "ℝ"},
    {"generation": "no fence", "formal_statement": "theorem «x\ud800» : 1 = 2 := by sorry"},
    {"predicted_proof": "theorem b : 2 = 2 := rfl", "formal_statement": "", "group": ""},
    {"generation": "<think>unclosed", "timeout": None, "name": None},
    {"generation": "```lean4\nopen Nat in\ntheorem a : 1 = 1 := by\n  simp\n```"},
    {"generation": "rfl\0"},
    {"generation": "```lean4\nopen Nat in\ntheorem a : 1 = 1 := by\n  simp\0\n```"},
    {"predicted_proof": "\ud800"},
    {"generation": "\udfff", "header": ""},
    {"predicted_proof": "x\n\0\ud800", "name": ""},
    {"context": "import A\n\n/-- é -/\n", "header": None},
    {"context": "import A\ud800\n", "header": ""},
)


@contextmanager
def prepared(
    path: Path,
    number: int,
    options: SubmitOptions,
    known: Iterable[ServedEnvironment],
    *,
    processes: int | None = None,
) -> Iterator[Iterator[Block]]:
    """Prepare one manifest."""
    with preparing(options, known, processes=processes) as prepare, opened(path) as lines:
        yield prepare(lines, number)


def text_of(*several: dict[str, object]) -> bytes:
    """Return the lines of tasks with these fields."""
    return b"".join(json.dumps(TASK | fields).encode() + b"\n" for fields in several)


def many(lines: int) -> bytes:
    """Return so many different lines, of every sort, with blank ones among them."""
    pieces = []
    for number in range(lines):
        sort = SORTS[number % len(SORTS)]
        pieces.append(
            text_of(sort | {"number": number, "generation": f"{sort.get('generation')} -- {number}"})
        )
        if number % 97 == 0:
            pieces.append(b" \t\r\n\n")
    return b"".join(pieces)


def rows_of(blocks: Iterable[Block]) -> list[Row]:
    """Return the rows of blocks, decoded."""
    return [
        _decoded(job, JOB_COLUMNS) | _decoded(check, STAGED_COLUMNS)
        for block in blocks
        for job, check in zip(block.jobs, block.checks, strict=True)
    ]


def texts_of(blocks: Iterable[Block]) -> dict[bytes, bytes]:
    """Return the texts of blocks."""
    return {sha256: text for block in blocks for sha256, text in block.texts}


_READ: dict[str, Callable[[bytes], object]] = {
    "int4": lambda field: struct.unpack("!i", field)[0],
    "float8": lambda field: struct.unpack("!d", field)[0],
    "text": bytes.decode,
    "json": json.loads,
    "bytea": bytes,
    "int8": lambda field: struct.unpack("!q", field)[0],
}


def _decoded(fields: bytes, columns: Mapping[str, Column]) -> Row:
    at = 0
    row: Row = {}
    for column, kind in columns.items():
        (length,) = struct.unpack_from("!i", fields, at)
        at += 4
        row[column] = None if length < 0 else _READ[kind.type](fields[at : at + length])
        at += max(0, length)
    assert at == len(fields)
    return row


def expected(path: Path, number: int, options: SubmitOptions = OPTIONS) -> list[Row]:
    """Return what the rows of a manifest must be, `identity` apart, one line after the other."""
    return [_row(entry, number, options) for entry in read(path)]


def _row(entry, number, options) -> Row:  # type: ignore[no-untyped-def]
    program, *others = assemble(entry, options.assembly)
    challenge = challenge_to(entry.header, entry.formal_statement, entry.context)
    verdict = judge_text(program.text)
    if challenge and re.search("[\0\ud800-\udfff]", entry.header + entry.context + entry.formal_statement):
        verdict = UNREADABLE_STATEMENT
    other = None if verdict or not others else others[-1]
    restated = None if verdict or len(others) < 2 else others[0]
    limits = options.limits(entry.timeout)
    source = challenge and challenge.program.encode("utf-8", "surrogatepass")
    return {
        "manifest": number,
        "line": entry.line,
        "name": storable(entry.name),
        "group_name": storable(entry.group),
        "environment": entry.environment or options.environment,
        "kind": "lean",
        "wall_seconds": limits.wall_seconds,
        "cpu_seconds": limits.cpu_seconds,
        "memory_mib": limits.memory_mib,
        "program_sha256": _sha256(program.text),
        "challenge_sha256": source and hashlib.sha256(source).digest(),
        "challenge_name": challenge and storable(challenge.name),
        "image": image_of(entry, program),
        "submitted": [list(span) for span in program.submitted],
        "fallback_sha256": other and _sha256(other.text),
        "fallback_submitted": other and [list(span) for span in other.submitted],
        "restated_sha256": restated and _sha256(restated.text),
        "restated_submitted": restated and [list(span) for span in restated.submitted],
        "context_end": program.context_end,
        "task": None,
        "fallback_segments": other and _placed(other.segments, entry),
        "restated_segments": restated and _placed(restated.segments, entry),
        "segments": _placed(program.segments, entry),
        "warnings": [[w.code, w.origin, w.line, w.column] for w in program.warnings],
        "verdict": verdict and str(verdict.outcome),
        "reason": verdict and str(verdict.reason),
        "detail": verdict and storable(verdict.detail),
    }


def _placed(segments, entry) -> list[list[object]]:  # type: ignore[no-untyped-def]
    """Return segments with the line and column in their field at which each begins."""
    return [[*each, *line_and_column(getattr(entry, each.origin), each.origin_start)] for each in segments]


def _sha256(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def storable(words: str | None) -> str | None:
    """Return the words as the store keeps them."""
    return None if words is None else re.sub("[\0\ud800-\udfff]", "\ufffd", words)
