"""Preparation step, the work itself: a piece of a manifest becomes a block. Pure."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple, NoReturn

from farm.assembly.faults import StatementFault
from farm.assembly.program import Program
from farm.assembly.segments import Segment, starts_in
from farm.assembly.tasked import NoTask, programs_of
from farm.characters import encoded, first_unstorable
from farm.errors import ManifestError
from farm.judging.submit_options import SubmitOptions
from farm.judging.tiers import Tier
from farm.judging.verdict import LACKS_ANSWER, UNREADABLE_STATEMENT, Verdict, judge_text, unusable_line
from farm.kinds import Kind
from farm.lean_text.positions import line_and_column
from farm.manifest.entries import entries
from farm.manifest.entry import Entry
from farm.runs.children.pieces import ManifestPiece
from farm.runs.prepare.identity import cache_key, environment_key
from farm.runs.prepare.problems import problem_of
from farm.store.candidates import in_columns
from farm.store.environments import ServedEnvironment
from farm.store.new_lines import Block, NewCheck, NewJob, NewLine, block
from farm.systems.known import system
from farm.task import OF_STATEMENTS, UNAUDITED
from farm.task import Kind as Asks

#: Length of statements, header included, and number of statements whose challenge is cached.
_REMEMBERED_CHARACTERS, _REMEMBERED = 8192, 1024
#: With at most as many segments, each is placed by itself.
_FEW = 16


class StoredChallenge(NamedTuple):
    """A challenge as it is stored."""

    sha256: bytes
    source: bytes
    name: str
    is_readable: bool


class Assembled(NamedTuple):
    """The challenge and the candidate programs of an entry; with a `verdict` where these cannot be made."""

    stated: StoredChallenge | None
    programs: tuple[Program, ...]
    verdict: Verdict | None = None


class Text(NamedTuple):
    """A program's text as it is stored."""

    sha256: bytes
    source: bytes
    program: Program


def preparer(
    options: SubmitOptions, known: Mapping[str, ServedEnvironment]
) -> Callable[[ManifestPiece], Block | None]:
    """Return a function that makes the block of a piece of a manifest, None for a piece of blank lines."""
    return Preparer(options, known).block


class Preparer:
    """Prepares the lines of one run."""

    def __init__(self, options: SubmitOptions, known: Mapping[str, ServedEnvironment]) -> None:
        self._options = options
        self._keys = {name: environment_key(each, options) for name, each in known.items()}
        self._kinds = {name: each.kind for name, each in known.items()}
        self._problem = lru_cache(maxsize=256)(lambda name: problem_of(name, known, options.assurance))

    def block(self, piece: ManifestPiece) -> Block | None:
        """Return the block of a piece, None when all its lines are blank."""
        lines, faults = [], []
        for entry in self._entries(piece):
            try:
                if isinstance(entry, ManifestError):
                    raise entry
                lines.append((piece.manifest, self.prepared(entry)))
            except ManifestError as fault:
                faults.append(fault)
        if faults:
            return Block(faults=tuple(faults))
        return block(lines) if lines else None

    def _entries(self, piece: ManifestPiece) -> Iterator[Entry | ManifestError]:
        return entries(
            piece.path,
            enumerate(io.BytesIO(piece.text), piece.first),
            reassemble=self._options.assembly.reassemble,
            may_lack_answer=self._options.no_answer == "reject" or self._options.task.kind is Asks.STATEMENT,
        )

    def prepared(self, entry: Entry) -> NewLine:
        """Return an entry's job and check; raises `ManifestError` for an entry that is wrong."""
        environment = entry.environment or self._options.environment
        self._require(environment, entry)
        self._require_group(entry)
        kind = self._kinds[environment]
        task, asks = self._task(entry, kind), entry.task.within(self._options.task).kind
        self._require_answer(entry, asks)
        stated, programs, unusable = self._assembled(entry, kind, asks)
        source, verdict = _encoded(programs[0])
        if unusable is not None:
            verdict = unusable
        elif stated is not None and not stated.is_readable:
            verdict = UNREADABLE_STATEMENT
        elif entry.lacks_answer and asks is not Asks.STATEMENT:
            verdict = LACKS_ANSWER
        if verdict is not None:  # no other program will be tried
            programs = programs[:1]
        texts = [_text(programs[0], source), *(_text(each, each.text.encode()) for each in programs[1:])]
        image = system(kind).image(entry, programs[0])
        check = self._check(environment, entry, texts, stated, image)._replace(task=task, kind=kind)
        if self._options.share and verdict is None:
            check = check._replace(identity=cache_key(self._keys[environment], check))
        stored = [(each.sha256, each.source) for each in (*texts, stated) if each is not None]
        return NewLine(entry.line, _job(entry, programs), check, verdict, tuple(stored))

    def _check(
        self,
        environment: str,
        entry: Entry,
        texts: Sequence[Text],
        stated: StoredChallenge | None,
        image: int,
    ) -> NewCheck:
        """Return an entry's check without its cache key."""
        limits = self._options.limits(entry.timeout)
        return NewCheck(
            environment=environment,
            wall_seconds=limits.wall_seconds,
            cpu_seconds=limits.cpu_seconds,
            memory_mib=limits.memory_mib,
            **in_columns("sha256", [each.sha256 for each in texts]),
            **in_columns("submitted", [each.program.submitted for each in texts]),
            challenge_sha256=stated and stated.sha256,
            challenge_name=stated and stated.name,
            context_end=texts[0].program.context_end,
            image=image,
        )

    def _task(self, entry: Entry, kind: str) -> str | None:
        """Return an entry's task as it is stored; raises `ManifestError` where its system knows no tasks."""
        whole = entry.task_in(self._options.task)
        if entry.hole is not None and kind != Kind.LEAN:
            self._refuse(entry, "hole", f"lines of {kind} have no holes", "name an environment with Lean")
        if (task := whole.stored) is None:
            return None
        asked, audited = list(json.loads(task)), whole.needs_audit
        of_statement = next((each for each in asked if each in OF_STATEMENTS), None)
        if kind != Kind.LEAN:
            remedy = "leave it out, or name an environment with Lean"
            self._refuse(entry, asked[0], f"lines of {kind} cannot ask for this", remedy)
        if audited and self._options.assurance.tier == Tier.LEAN:
            self._refuse(entry, audited, *UNAUDITED)
        other = "hole" if entry.hole is not None and whole.kind is not Asks.PROVE else whole.excluded
        if other is not None:
            self._refuse(entry, other, f"the task {whole.kind} has no such demand", "leave it out")
        if of_statement and not entry.formal_statement.strip():
            self._refuse(
                entry, of_statement, "this line has no formal_statement", "add the statement, or leave it out"
            )
        return task

    def _require_answer(self, entry: Entry, asks: Asks) -> None:
        """Raise `ManifestError` for a line that needs an answer and has none, unless the run rejects it."""
        if entry.lacks_answer and asks is not Asks.STATEMENT and self._options.no_answer != "reject":
            remedy = "give the line a generation, or the task statement"
            self._refuse(entry, "generation", "missing or null", remedy)

    def _refuse(self, entry: Entry, field: str, problem: str, remedy: str) -> NoReturn:
        raise ManifestError(entry.path, problem, remedy=remedy, line=entry.line, field=field)

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

    def _assembled(self, entry: Entry, kind: str, asks: Asks) -> Assembled:
        """Assemble an entry; raises `ManifestError` for a statement of which nothing can be asked."""

        def assemble(entry: Entry) -> tuple[Program, ...]:
            return system(kind).assemble(entry, self._options.assembly)

        try:
            stated = self._stated(entry, kind)
            programs = programs_of(entry, asks, assemble)
        except NoTask as fault:
            raise ManifestError(
                entry.path, str(fault), remedy=fault.remedy, line=entry.line, field=fault.field
            ) from fault
        except StatementFault as fault:
            return _unusable(entry, fault)
        return Assembled(_stored(stated, programs), programs)

    def _stated(self, entry: Entry, kind: str) -> StoredChallenge | None:
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


def _stored(stated: StoredChallenge | None, programs: Sequence[Program]) -> StoredChallenge | None:
    """Return the challenge that is stored for these programs; `farm.store.candidates` says which of two."""
    negation = programs[-1].challenge
    if stated is None or negation is None:
        return stated
    source = encoded(negation.program)
    name = negation.name if programs[0].challenge is not None else stated.name
    return stated._replace(sha256=sha256(source).digest(), source=source, name=name)


def _unusable(entry: Entry, fault: StatementFault) -> Assembled:
    """Return a line from which no program can be made: it keeps the line's own texts.

    Its challenge has no name, so that a second judgement refuses it in the same way.
    """
    origin = "predicted_proof" if entry.predicted_proof else "generation"
    text = entry.predicted_proof or entry.generation
    program = Program(text=text, segments=(Segment(0, len(text), origin, 0),), warnings=())
    verdict = unusable_line(fault.field, str(fault), fault.remedy)
    if fault.field == "predicted_proof":
        return Assembled(None, (program,), verdict)
    source = encoded(entry.formal_statement)
    digest = sha256(source).digest()
    stated = StoredChallenge(sha256=digest, source=source, name="", is_readable=False)
    return Assembled(stated, (program,), verdict)


@lru_cache(maxsize=_REMEMBERED)
def _state(kind: str, header: str, context: str, statement: str) -> StoredChallenge | None:
    """Return the challenge of a statement; remembered, for there are many answers to each."""
    challenge = system(kind).challenge(header, context, statement)
    if challenge is None:
        return None
    source = encoded(challenge.program)
    digest = sha256(source).digest()
    return StoredChallenge(
        sha256=digest,
        source=source,
        name=challenge.name,
        is_readable=first_unstorable(header + context + statement) is None,
    )


def _job(entry: Entry, programs: Sequence[Program]) -> NewJob:
    return NewJob(
        name=entry.name,
        group_name=entry.group,
        **in_columns("segments", [_placed(each, entry) for each in programs]),
        warnings=[(each.code, each.origin, each.line, each.column) for each in programs[0].warnings],
    )


def _placed(program: Program, entry: Entry) -> list[tuple[int | str, ...]]:
    """Return a program's segments, each with the line and column in its field at which it begins."""
    starts = _starts(program.segments, entry)
    return [(*segment, *start) for segment, start in zip(program.segments, starts, strict=True)]


def _starts(segments: Sequence[Segment], entry: Entry) -> list[tuple[int, int]]:
    fields: dict[str, str] = {each.origin: entry.text_of(each.origin) for each in segments}
    if len(segments) <= _FEW:  # counting line feeds is quicker than listing them
        return [line_and_column(fields[each.origin], each.origin_start) for each in segments]
    return list(map(starts_in(segments, fields), range(len(segments))))


def _text(program: Program, source: bytes) -> Text:
    return Text(sha256(source).digest(), source, program)


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
