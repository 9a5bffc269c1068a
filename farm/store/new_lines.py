"""New lines and items: the job, the check and the texts of each, as values, COPY rows and JSON. Pure.

The fields of `NewJob` and `NewCheck` are columns of the tables `jobs` and `checks`. No other list of these
columns exists: every statement that inserts, copies or reads them takes their names from here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from farm.characters import storable_json
from farm.errors import ManifestError
from farm.judging.verdict import Verdict
from farm.store.columns import (
    Bigint,
    Bytes,
    Float,
    Integer,
    Segments,
    Spans,
    Text,
    Warnings,
    columns_of,
    encoder,
)


class NewJob(NamedTuple):
    """A line's own columns of its job."""

    name: Text
    group_name: Text | None
    segments: Segments
    fallback_segments: Segments | None
    restated_segments: Segments | None
    warnings: Warnings


class NewCheck(NamedTuple):
    """The columns of a check in which two lines of a run can differ.

    `identity` is the cache key, None for a check that is not shared. A program begins with its line's context
    up to `context_end`, 0 without one. `task` is the JSON of what its proof has to show beyond the usual, and
    `kind` the proof system that its programs were assembled for, None for a check of an older release.
    """

    environment: Text
    wall_seconds: Float
    cpu_seconds: Float
    memory_mib: Integer
    program_sha256: Bytes
    submitted: Spans
    fallback_sha256: Bytes | None
    fallback_submitted: Spans | None
    restated_sha256: Bytes | None
    restated_submitted: Spans | None
    challenge_sha256: Bytes | None
    challenge_name: Text | None
    context_end: Integer
    task: Text | None = None
    image: Bigint = 0
    kind: Text | None = None
    identity: Bytes | None = None


class _Place(NamedTuple):
    manifest: Integer
    line: Integer


class _Verdict(NamedTuple):
    verdict: Text | None
    reason: Text | None
    detail: Text | None


class NewLine(NamedTuple):
    """A line or item: its job, and the check that it waits for.

    It has a `verdict` where its text alone decides. `texts` are its programs and its challenge, each as
    sha256 and UTF-8, with lone surrogates encoded as they are.
    """

    line: int
    job: NewJob
    check: NewCheck
    verdict: Verdict | None
    texts: tuple[tuple[bytes, bytes], ...] = ()


_UNJUDGED = _Verdict(None, None, None)

#: Columns of a job, of a check, and of a check that is not stored yet: with its line and its known verdict.
JOB_COLUMNS = {**columns_of(_Place), **columns_of(NewJob)}
CHECK_COLUMNS = columns_of(NewCheck)
STAGED_COLUMNS = {**columns_of(_Place), **CHECK_COLUMNS, **columns_of(_Verdict)}

#: Columns of a check that refer to the texts of `programs`.
TEXT_COLUMNS = tuple(name for name in CHECK_COLUMNS if name.endswith("_sha256"))

_job_fields, _check_fields = encoder(JOB_COLUMNS), encoder({**columns_of(_Place), **CHECK_COLUMNS})
_verdict_fields = encoder(columns_of(_Verdict))
_NO_VERDICT = _verdict_fields(_UNJUDGED)


def _verdict_columns(verdict: Verdict | None) -> _Verdict:
    return _UNJUDGED if verdict is None else _Verdict(verdict.outcome, verdict.reason, verdict.detail)


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """Some lines of a manifest, encoded for binary COPY.

    For each line: the fields of `JOB_COLUMNS`, those of `STAGED_COLUMNS`, and the check's cache key or None.
    `texts` are the programs and challenges of all, each once. Where a line is wrong there are only `faults`,
    one for each wrong line.
    """

    jobs: tuple[bytes, ...] = ()
    checks: tuple[bytes, ...] = ()
    identities: tuple[bytes | None, ...] = ()
    texts: tuple[tuple[bytes, bytes], ...] = ()
    faults: tuple[ManifestError, ...] = ()

    @property
    def lines(self) -> int:
        """The number of lines."""
        return len(self.jobs)


def block(lines: Iterable[tuple[int, NewLine]]) -> Block:
    """Return the block of some lines, each with the number of its manifest."""
    jobs, checks, identities, texts = [], [], [], dict[bytes, bytes]()
    for manifest, new in lines:
        place = (manifest, new.line)
        jobs.append(_job_fields((*place, *new.job)))
        judged = _NO_VERDICT if new.verdict is None else _verdict_fields(_verdict_columns(new.verdict))
        checks.append(_check_fields((*place, *new.check)) + judged)
        identities.append(new.check.identity)
        texts.update(new.texts)
    return Block(
        jobs=tuple(jobs), checks=tuple(checks), identities=tuple(identities), texts=tuple(texts.items())
    )


def check_record(new: NewLine, **more: object) -> dict[str, object]:
    """Return the columns of a line's check, with more of them."""
    return {**more, **new.check._asdict(), **_verdict_columns(new.verdict)._asdict()}


def records_json(records: Iterable[dict[str, object]]) -> str:
    """Return records as JSON for `jsonb_to_recordset`, with bytes in PostgreSQL's hex format."""
    return storable_json(
        [
            {name: f"\\x{value.hex()}" if isinstance(value, bytes) else value for name, value in each.items()}
            for each in records
        ]
    )
