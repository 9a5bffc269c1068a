"""Preparation step, the work itself: a piece of a manifest becomes a block. Pure."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple

from farm.assembly.challenge import challenge_to
from farm.assembly.program import Program, assemble
from farm.characters import encoded, first_unstorable
from farm.errors import ManifestError
from farm.judging.verdict import LACKS_ANSWER, UNREADABLE_STATEMENT, Verdict, judge_text
from farm.limits import Limits
from farm.manifest.entries import entries
from farm.manifest.entry import Entry
from farm.runs.children.pieces import Piece
from farm.runs.prepare.options import SubmitOptions, problem_of
from farm.runs.prepare.rows import (
    NULL,
    Block,
    field,
    limits_fields,
    place_fields,
    segments_json,
    spans_json,
    verdict_fields,
    warnings_json,
    words_field,
)
from farm.store.environments import ServedEnvironment

#: Statements up to so many characters, header included, and so many of them, are remembered.
_REMEMBERED_CHARACTERS, _REMEMBERED = 8192, 1024


class Stated(NamedTuple):
    """A challenge as rows and identities name it."""

    sha256: bytes
    source: bytes
    name: str
    is_readable: bool
    fields: bytes
    json: str


class Text(NamedTuple):
    """A program as rows and identities name it; `submitted` and `segments` are JSON."""

    sha256: bytes
    source: bytes
    submitted: str
    segments: str

    @property
    def json(self) -> str:
        """What identities name."""
        return f'"{self.sha256.hex()}",{self.submitted}'


class Prepared(NamedTuple):
    """An entry's job and the check that it asks for; `warnings` are JSON.

    `identity` is what the check has in common with equal ones, None where it is not shared; a `verdict` is
    there where Lean need not be asked.
    """

    entry: Entry
    environment: str
    limits: Limits
    stated: Stated | None
    program: Text
    fallback: Text | None
    warnings: str
    identity: bytes | None
    verdict: Verdict | None

    @property
    def texts(self) -> list[tuple[bytes, bytes]]:
        """The programs and the challenge, each as its sha256 and its UTF-8."""
        named = (self.program, self.fallback, self.stated)
        return [(each.sha256, each.source) for each in named if each is not None]


class _Part(NamedTuple):
    """What rows, as fields, and identities, as JSON, have of one part of a check."""

    fields: bytes
    json: str


def preparer(
    options: SubmitOptions, known: Mapping[str, ServedEnvironment]
) -> Callable[[Piece], Block | None]:
    """Return what makes the block of a piece of a run's manifests, None of a piece of blank lines."""
    return Preparer(options, known).block


class Preparer:
    """Makes blocks of one run's lines."""

    def __init__(self, options: SubmitOptions, known: Mapping[str, ServedEnvironment]) -> None:
        self._options = options
        self._environments = {name: _environment(each, options) for name, each in known.items()}
        self._problem = lru_cache(maxsize=256)(lambda name: problem_of(name, known, options.assurance))
        self._limits = lru_cache(maxsize=256)(lambda timeout: _limits(options.limits(timeout)))

    def block(self, piece: Piece) -> Block | None:
        """Return the block of a piece, None when all its lines are blank."""
        texts: dict[bytes, bytes] = {}
        rows, faults = [], []
        for entry in self._entries(piece):
            try:
                rows.append(self._row(entry, piece.manifest, texts))
            except ManifestError as fault:
                faults.append(fault)
        if faults:
            return Block(jobs=(), checks=(), identities=(), texts=(), faults=tuple(faults))
        if not rows:
            return None
        jobs, checks, identities = zip(*rows, strict=True)
        return Block(jobs=jobs, checks=checks, identities=identities, texts=tuple(texts.items()))

    def _entries(self, piece: Piece) -> Iterator[Entry | ManifestError]:
        return entries(
            piece.path,
            enumerate(io.BytesIO(piece.text), piece.first),
            reassemble=self._options.assembly.reassemble,
            may_lack_answer=self._options.no_answer == "reject",
        )

    def _row(
        self, entry: Entry | ManifestError, manifest: int, texts: dict[bytes, bytes]
    ) -> tuple[bytes, bytes, bytes | None]:
        """Return a line's job, its check, and what that has in common with equal ones; add its texts.

        Raises `ManifestError` for a line that is wrong.
        """
        if isinstance(entry, ManifestError):
            raise entry
        prepared = self.prepared(entry)
        texts.update(prepared.texts)
        place = place_fields(manifest, entry.line)
        return place + _job(prepared), place + self._check(prepared), prepared.identity

    def prepared(self, entry: Entry) -> Prepared:
        """Return an entry's job and check; raises `ManifestError` for an entry that is wrong."""
        environment = entry.environment or self._options.environment
        self._require(environment, entry)
        self._require_group(entry)
        stated = self._stated(entry)
        program = assemble(entry, self._options.assembly)
        source, verdict = _encoded(program)
        if stated is not None and not stated.is_readable:
            verdict = UNREADABLE_STATEMENT
        elif entry.lacks_answer:
            verdict = LACKS_ANSWER
        first = _text(program, source)
        second = None
        if program.fallback is not None and verdict is None:
            second = _text(program.fallback, program.fallback.text.encode())
        limits = self._options.limits(entry.timeout)
        identity = None
        if self._options.share and verdict is None:
            part = self._environments[environment].json, self._limits(entry.timeout).json
            identity = _identity(*part, stated, first, second)
        return Prepared(
            entry=entry,
            environment=environment,
            limits=limits,
            stated=stated,
            program=first,
            fallback=second,
            warnings=warnings_json(program),
            identity=identity,
            verdict=verdict,
        )

    def _check(self, prepared: Prepared) -> bytes:
        """Return the fields of the check, without its place."""
        first, second, stated = prepared.program, prepared.fallback, prepared.stated
        return b"".join(
            (
                self._environments[prepared.environment].fields,
                self._limits(prepared.entry.timeout).fields,
                field(first.sha256),
                NULL + NULL if stated is None else stated.fields,
                field(first.submitted.encode()),
                NULL + NULL if second is None else field(second.sha256) + field(second.submitted.encode()),
                NULL if prepared.identity is None else field(prepared.identity),
                verdict_fields(prepared.verdict),
            )
        )

    def _require(self, environment: str, entry: Entry) -> None:
        if (problem := self._problem(environment)) is not None:
            raise ManifestError(
                entry.path, problem.words, remedy=problem.remedy, line=entry.line, field="environment"
            )

    def _require_group(self, entry: Entry) -> None:
        """Raise `ManifestError` for a group that PostgreSQL would hold as another: their races would mix."""
        if entry.group is not None:
            where, word = "group", entry.group
        elif self._options.stop_on_first_proof:
            where, word = "name", entry.name  # without a group, the name is the group
        else:
            return
        if first_unstorable(word) is not None:
            raise ManifestError(
                entry.path,
                "it contains NUL or half a surrogate pair, which the database cannot tell from others",
                remedy="give the line another group",
                line=entry.line,
                field=where,
            )

    def _stated(self, entry: Entry) -> Stated | None:
        is_short = len(entry.header) + len(entry.formal_statement) <= _REMEMBERED_CHARACTERS
        state = _state if is_short else _state.__wrapped__
        stated = state(entry.header, entry.formal_statement)
        if stated is None and self._options.assurance.requires_statement:
            raise ManifestError(
                entry.path,
                "this line has no statement to compare its proof with (--require-statement)",
                remedy="add a formal_statement, or submit without --require-statement",
                line=entry.line,
                field="formal_statement",
            )
        return stated


@lru_cache(maxsize=_REMEMBERED)
def _state(header: str, statement: str) -> Stated | None:
    """Return the challenge of a statement; remembered, for there are many answers to each."""
    challenge = challenge_to(header, statement)
    if challenge is None:
        return None
    source = encoded(challenge.program)
    digest = sha256(source).digest()
    return Stated(
        sha256=digest,
        source=source,
        name=challenge.name,
        is_readable=first_unstorable(header + statement) is None,
        fields=field(digest) + words_field(challenge.name),
        json=_json([digest.hex(), challenge.name]),
    )


def _limits(limits: Limits) -> _Part:
    numbers = [float(limits.wall_seconds), float(limits.cpu_seconds), limits.memory_mib]
    return _Part(fields=limits_fields(limits), json=_json(numbers))


def _environment(served: ServedEnvironment, options: SubmitOptions) -> _Part:
    """Return an environment, with all that is the same for the run's lines."""
    assurance = options.assurance
    same = {
        "environment": [served.name, served.digest, served.checker_version],
        "tier": assurance.tier,
        "native": assurance.native,
        "axioms": sorted(assurance.axioms),
        "policy": dict(assurance.policy.actions),
    } | ({"goals": True} if options.goals else {})
    return _Part(fields=words_field(served.name), json=_json(same))


def _job(prepared: Prepared) -> bytes:
    """Return the fields of the job, without its place."""
    entry, first, second = prepared.entry, prepared.program, prepared.fallback
    return b"".join(
        (
            words_field(entry.name),
            words_field(entry.group),
            field(first.segments.encode()),
            NULL if second is None else field(second.segments.encode()),
            field(prepared.warnings.encode()),
        )
    )


def _identity(
    environment: str, limits: str, stated: Stated | None, first: Text, second: Text | None
) -> bytes:
    """Return what two checks have in common exactly when they are the same, as 32 bytes."""
    challenge = "null" if stated is None else stated.json
    fallback = "" if second is None else f",{second.json}"
    same = f"[{environment},{limits},{first.json},{challenge}{fallback}]"
    return sha256(same.encode()).digest()


def _json(value: object) -> str:
    """Return the canonical JSON of a value, in ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _text(program: Program, source: bytes) -> Text:
    return Text(
        sha256=sha256(source).digest(),
        source=source,
        submitted=spans_json(program.submitted),
        segments=segments_json(program),
    )


def _encoded(program: Program) -> tuple[bytes, Verdict | None]:
    """Return a program's UTF-8, and its verdict where Lean cannot be given such a text."""
    try:
        source = program.text.encode()
    except UnicodeEncodeError:
        source = encoded(program.text)
    else:
        if b"\0" not in source:  # then there is nothing to look for, which would take longer
            return source, None
    return source, judge_text(program.text)
