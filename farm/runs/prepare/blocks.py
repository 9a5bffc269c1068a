"""Preparation step, the work itself: a piece of a manifest becomes a block. Pure."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple

from farm.assembly.faults import ForeignStatement, StatementFault
from farm.assembly.kinds import assembling
from farm.assembly.program import Program
from farm.assembly.segments import Segment
from farm.characters import encoded, first_unstorable
from farm.errors import ManifestError
from farm.judging.verdict import LACKS_ANSWER, UNREADABLE_STATEMENT, Verdict, judge_text, unusable_line
from farm.limits import Limits
from farm.manifest.entries import entries
from farm.manifest.entry import Entry
from farm.runs.children.pieces import Piece
from farm.runs.prepare.identity import (
    UNSTATED,
    Part,
    Programs,
    Text,
    challenge_part,
    check_fields,
    environment_part,
    identity,
    limits_part,
)
from farm.runs.prepare.options import SubmitOptions, problem_of
from farm.runs.prepare.rows import (
    NULL,
    Block,
    field,
    image_field,
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
    part: Part


class Assembled(NamedTuple):
    """What an entry's proof is compared with, and its program; `verdict` where neither can be had."""

    stated: Stated | None
    program: Program
    verdict: Verdict | None = None


class Prepared(NamedTuple):
    """An entry's job and the check that it asks for; `warnings` are JSON.

    `identity` is what the check has in common with equal ones, None where it is not shared; a `verdict` is
    there where Lean need not be asked.
    """

    entry: Entry
    environment: str
    limits: Limits
    stated: Stated | None
    programs: Programs
    warnings: str
    identity: bytes | None
    image: int
    verdict: Verdict | None

    @property
    def texts(self) -> list[tuple[bytes, bytes]]:
        """The programs and the challenge, each as its sha256 and its UTF-8."""
        named = (*self.programs, self.stated)
        return [(each.sha256, each.source) for each in named if each is not None]


def preparer(
    options: SubmitOptions, known: Mapping[str, ServedEnvironment]
) -> Callable[[Piece], Block | None]:
    """Return what makes the block of a piece of a run's manifests, None of a piece of blank lines."""
    return Preparer(options, known).block


class Preparer:
    """Makes blocks of one run's lines."""

    def __init__(self, options: SubmitOptions, known: Mapping[str, ServedEnvironment]) -> None:
        self._options = options
        self._environments = {
            name: environment_part(each, options.assurance, goals=options.goals)
            for name, each in known.items()
        }
        self._kinds = {name: each.kind for name, each in known.items()}
        self._problem = lru_cache(maxsize=256)(lambda name: problem_of(name, known, options.assurance))
        self._limits = lru_cache(maxsize=256)(lambda timeout: limits_part(options.limits(timeout)))

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
        kind = self._kinds[environment]
        stated, program, unusable = self._assembled(entry, kind)
        source, verdict = _encoded(program)
        if unusable is not None:
            verdict = unusable
        elif stated is not None and not stated.is_readable:
            verdict = UNREADABLE_STATEMENT
        elif entry.lacks_answer:
            verdict = LACKS_ANSWER
        limits = self._options.limits(entry.timeout)
        prepared = Prepared(
            entry=entry,
            environment=environment,
            limits=limits,
            stated=stated,
            programs=_programs(program, entry, source, alone=verdict is not None),
            warnings=warnings_json(program),
            identity=None,
            image=assembling(kind).image(entry, program),
            verdict=verdict,
        )
        if not self._options.share or verdict is not None:
            return prepared
        return prepared._replace(identity=identity(*self._parts(prepared)))

    def _parts(self, prepared: Prepared) -> tuple[Part, Part, Part, Programs]:
        """Return what the check consists of."""
        return (
            self._environments[prepared.environment],
            self._limits(prepared.entry.timeout),
            UNSTATED if prepared.stated is None else prepared.stated.part,
            prepared.programs,
        )

    def _check(self, prepared: Prepared) -> bytes:
        """Return the fields of the check, without its place."""
        return b"".join(
            (
                check_fields(*self._parts(prepared)),
                NULL if prepared.identity is None else field(prepared.identity),
                image_field(prepared.image),
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

    def _assembled(self, entry: Entry, kind: str) -> Assembled:
        """Assemble an entry; raises `ManifestError` for a statement of a system that no farm has."""
        try:
            return Assembled(
                self._stated(entry, kind), assembling(kind).assemble(entry, self._options.assembly)
            )
        except ForeignStatement as fault:
            raise ManifestError(
                entry.path, str(fault), remedy=fault.remedy, line=entry.line, field=fault.field
            ) from fault
        except StatementFault as fault:
            return _unusable(entry, fault)

    def _stated(self, entry: Entry, kind: str) -> Stated | None:
        said = len(entry.header) + len(entry.context) + len(entry.formal_statement)
        state = _state if said <= _REMEMBERED_CHARACTERS else _state.__wrapped__
        stated = state(kind, entry.header, entry.context, entry.formal_statement)
        if stated is None and self._options.assurance.requires_statement:
            raise ManifestError(
                entry.path,
                "this line has no statement to compare its proof with (--require-statement)",
                remedy="add a formal_statement, or submit without --require-statement",
                line=entry.line,
                field="formal_statement",
            )
        return stated


def _unusable(entry: Entry, fault: StatementFault) -> Assembled:
    """Return a line from which no program can be made: its texts are kept as the line has them.

    Its challenge has no name, so that a judge that is asked again refuses it in the same way.
    """
    origin = "predicted_proof" if entry.predicted_proof else "generation"
    text = entry.predicted_proof or entry.generation
    program = Program(text=text, segments=(Segment(0, len(text), origin, 0),), warnings=())
    verdict = unusable_line(fault.field, str(fault), fault.remedy)
    if fault.field == "predicted_proof":
        return Assembled(None, program, verdict)
    source = encoded(entry.formal_statement)
    digest = sha256(source).digest()
    stated = Stated(sha256=digest, source=source, name="", is_readable=False, part=challenge_part(digest, ""))
    return Assembled(stated, program, verdict)


@lru_cache(maxsize=_REMEMBERED)
def _state(kind: str, header: str, context: str, statement: str) -> Stated | None:
    """Return the challenge of a statement; remembered, for there are many answers to each."""
    challenge = assembling(kind).challenge(header, context, statement)
    if challenge is None:
        return None
    source = encoded(challenge.program)
    digest = sha256(source).digest()
    return Stated(
        sha256=digest,
        source=source,
        name=challenge.name,
        is_readable=first_unstorable(header + context + statement) is None,
        part=challenge_part(digest, challenge.name),
    )


def _job(prepared: Prepared) -> bytes:
    """Return the fields of the job, without its place."""
    entry, programs = prepared.entry, prepared.programs
    return b"".join(
        (
            words_field(entry.name),
            words_field(entry.group),
            field(programs.first.segments.encode()),
            words_field(programs.fallback and programs.fallback.segments),
            words_field(programs.restated and programs.restated.segments),
            field(prepared.warnings.encode()),
        )
    )


def _programs(program: Program, entry: Entry, source: bytes, *, alone: bool) -> Programs:
    """Return a program and, unless it is `alone`, those that may be tried after it."""
    first, second, last = _text(program, entry, source), program.restated, program.fallback
    if alone:
        return Programs(first)
    return Programs(
        first,
        None if second is None else _text(second, entry, second.text.encode()),
        None if last is None else _text(last, entry, last.text.encode()),
    )


def _text(program: Program, entry: Entry, source: bytes) -> Text:
    return Text(
        sha256=sha256(source).digest(),
        source=source,
        submitted=spans_json(program.submitted),
        segments=segments_json(program, entry),
        context_end=program.context_end,
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
