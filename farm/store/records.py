"""A stored line or item: its program and its verdict.

An export reads one for every line. So a row stays as PostgreSQL sends it, and its JSON is parsed on use; and
this module imports the driver alone, because the children of an export start a new interpreter.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from typing import Any, NamedTuple

import psycopg

from farm import documents
from farm.assembly.segments import LineMap, Segment, starts_in
from farm.characters import decoded
from farm.judging.audit import Audit
from farm.judging.places import Place, moved
from farm.judging.report import Goal, Message
from farm.judging.verdict import Outcome, Particulars, Reason, Verdict, judge_text
from farm.lean_text.policy.rules import Action, Hit
from farm.store.candidates import counted

# The origin in the segments of a program that was not assembled; it has no other meaning there.
_BROUGHT = '"predicted_proof"'

# Rows the server sends at once.
_ROWS = 100

#: The state of a line as people see it: a check that its worker has not begun still waits.
SHOWN_STATUS = """
    CASE WHEN cancelled IS NOT NULL THEN 'cancelled' WHEN status = 'running' AND ahead THEN 'queued'
         ELSE status END
"""

# The query reads a few lines of many, or streams them in order: each is looked up in the indexes. LIMIT keeps
# the planner, whatever it assumes about the tables' sizes, from hashing a whole table.
_JUDGED = """
    SELECT jobs.run_id, jobs.manifest, jobs.line, name, group_name, {shown},
           cancelled, with_own, attempt, environment, tier,
           (SELECT source FROM programs WHERE sha256 = counted LIMIT 1), counted,
           ({segments})::text, warnings::text, verdict.*
    FROM {lines}
    JOIN LATERAL (SELECT * FROM checks WHERE id = check_id LIMIT 1) AS asked ON true
    CROSS JOIN LATERAL ({sharing}) AS sharing
    LEFT JOIN LATERAL (
        SELECT verdict, reason, detail, messages::text, hits::text, audit::text, verdicts.goals::text,
               statement, trusts, verdicts.wall_seconds, verdicts.cpu_seconds, peak_memory_kib,
               isolation, verdicts.environment_digest, toolchain, verdicts.checker_version, preamble,
               CASE WHEN is_own THEN trace_id END, facts::text, contested
        FROM verdicts WHERE verdicts.check_id = jobs.check_id AND cancelled IS NULL LIMIT 1
    ) AS verdict ON true
    CROSS JOIN LATERAL (
        SELECT {sha256} AS counted
    ) AS program
    {where}
"""
# No key is told that another one had the same text: whether an earlier line of the same owner has the check,
# and whether such a line brought it. Of very many equal lines only some are looked at.
_OF_OWN = """
    SELECT jobs.shared AND coalesce(bool_or(earlier), false) AS with_own,
           NOT jobs.shared OR coalesce(bool_or(brought), false) AS is_own
    FROM (SELECT * FROM runs WHERE id = jobs.run_id LIMIT 1) AS ours
    CROSS JOIN LATERAL (
        SELECT NOT equal.shared AS brought,
               (theirs.created_at, theirs.id, equal.line) < (ours.created_at, ours.id, jobs.line) AS earlier
        FROM (
            SELECT run_id, line, shared FROM jobs AS equal
            WHERE jobs.shared AND equal.check_id = jobs.check_id LIMIT 1000
        ) AS equal
        JOIN LATERAL (SELECT * FROM runs WHERE id = equal.run_id LIMIT 1) AS theirs ON true
        WHERE theirs.owner IS NOT DISTINCT FROM ours.owner
    ) AS same
"""
_OF_A_MANIFEST = _JUDGED.format(
    segments=counted("segments"),
    sha256=counted("sha256"),
    shown=SHOWN_STATUS,
    sharing="SELECT jobs.shared AS with_own, true AS is_own",
    lines="jobs",
    where="""
        WHERE jobs.run_id = %(run_id)s AND manifest = %(manifest)s AND line BETWEEN %(first)s AND %(last)s
        ORDER BY line
    """,
)
_OF_LINES = _JUDGED.format(
    segments=counted("segments"),
    sha256=counted("sha256"),
    shown=SHOWN_STATUS,
    sharing=_OF_OWN,
    lines="""
        unnest(CAST(%(runs)s AS text[]), CAST(%(manifests)s AS integer[]), CAST(%(lines)s AS integer[]))
            WITH ORDINALITY AS wanted (run, part, nth, place)
        JOIN LATERAL (
            SELECT * FROM jobs WHERE run_id = run AND manifest = part AND jobs.line = nth LIMIT 1
        ) AS jobs ON true
    """,
    where="ORDER BY place",
)

#: An item of a batch: the batch, and its line, from 1.
Item = tuple[str, int]

#: A line of a run: the run, the number of its manifest, from 0, and its own, from 1.
RunLine = tuple[str, int, int]

#: Lines are integer.
LAST_LINE = 2**31 - 1


class StoredVerdict(NamedTuple):
    """A recorded verdict: its columns, and the values of those that are JSON."""

    outcome: str
    reason: str
    detail: str
    messages_json: str
    hits_json: str
    audit_json: str | None
    goals_json: str | None
    statement: str | None
    trusts: list[str]
    wall_seconds: float
    cpu_seconds: float
    peak_memory_kib: int
    isolation: str
    environment_digest: str
    toolchain: str
    checker_version: str
    preamble: str | None
    #: Of the trace in which the check was carried out; None where it was not traced, or traced for others.
    trace_id: str | None
    facts_json: str | None
    #: Whether a line of another key proved the contrary.
    contested: bool = False

    @property
    def particulars(self) -> Particulars:
        """The fields of the verdict that have no column."""
        return documents.decoded(Particulars, {} if self.facts_json is None else _parsed(self.facts_json))

    @property
    def messages(self) -> tuple[Message, ...]:
        """Lean's messages."""
        return tuple(Message(**message) for message in parsed(self.messages_json))

    @property
    def hits(self) -> tuple[Hit, ...]:
        """The policy's findings."""
        return tuple(Hit(**hit | {"action": Action(hit["action"])}) for hit in parsed(self.hits_json))

    @property
    def audit(self) -> Audit | None:
        """The audit, None where there was none, or an early release stored one without an answer."""
        with suppress(ValueError):
            return None if self.audit_json is None else documents.decoded(Audit, _parsed(self.audit_json))
        return None

    @property
    def rests_on_sorry_of(self) -> tuple[str, ...]:
        """The constants that the dataset admits and the proof rests on."""
        audit = self.audit if self.trusts else None
        return () if audit is None else audit.rests_on_sorry_of

    @property
    def goals(self) -> tuple[Goal, ...] | None:
        """The goals at errors and sorries, None where they were not requested or not available."""
        return None if self.goals_json is None else tuple(Goal(**each) for each in parsed(self.goals_json))

    @property
    def judged(self) -> Verdict:
        """The verdict in judging's own words."""
        return Verdict(outcome=Outcome(self.outcome), reason=Reason(self.reason), detail=self.detail)


class Judged(NamedTuple):
    """A manifest line or item with its verdict, None for an unfinished one."""

    run_id: str
    manifest: int
    line: int
    name: str
    group: str | None
    status: str
    cancelled: str | None
    shared: bool
    attempt: int
    environment: str
    tier: str
    source: bytes
    sha256: bytes
    segments_json: str
    warnings_json: str
    verdict: StoredVerdict | None

    @property
    def program(self) -> str:
        """The program that the verdict judges, or the first one that Lean will get."""
        return decoded(self.source)

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Where the pieces of the program came from."""
        return tuple(Segment._make(each[:4]) for each in parsed(self.segments_json))

    def lines(self, fields: Mapping[str, object] | None = None) -> LineMap:
        """Return the map from places in the program to places in the line's own fields.

        A line that an earlier release submitted has its `fields` alone: without them no place is known.
        """
        return line_map(self.segments_json, self.program, fields)

    def detail(self, lines: LineMap | None = None) -> str:
        """Return the verdict's sentence with the line's own place; "" without a verdict."""
        if self.verdict is None:
            return ""
        return moved(self.verdict.detail, self._place(self.verdict), (lines or self.lines()).locate)

    def _place(self, verdict: StoredVerdict) -> Place | None:
        """Return the place that the sentence names; of a text that Lean cannot read, the text has it."""
        place = verdict.particulars.place
        if place is None and verdict.reason == Reason.INVALID_TEXT:
            found = judge_text(self.program)
            return found.place if found is not None and found.detail == verdict.detail else None
        return place

    @property
    def is_brought(self) -> bool:
        """Whether the program is the line's own `predicted_proof`, not assembled from its answer."""
        return _BROUGHT in self.segments_json

    @property
    def warnings(self) -> list[tuple[str, str, int, int]]:
        """The warnings of the assembly: code, field, line and column."""
        return parsed(self.warnings_json)


# PostgreSQL puts no space before it, and nothing behind it.
_decoded = json.JSONDecoder().raw_decode


def _parsed(words: str) -> Any:
    return _decoded(words)[0]


_OF_A_LINE = len(Judged._fields) - 1


def line_map(segments: str, program: str, fields: Mapping[str, object] | None = None) -> LineMap:
    """Return the map from a program to the fields that its segments, as JSON, came from."""
    pieces = parsed(segments)
    if all(len(each) > _OF_A_SEGMENT for each in pieces):
        known = [Segment._make(each[:_OF_A_SEGMENT]) for each in pieces]
        return LineMap(known, program, lambda number: tuple(pieces[number][_OF_A_SEGMENT:]))
    if fields is None:
        return LineMap((), program, starts_in((), {}))
    known = [Segment._make(each) for each in pieces]
    # The line may have changed since: its fields need not be as they were.
    texts = {each.origin: str(fields.get(each.origin, "")) for each in known}
    return LineMap(known, program, starts_in(known, texts))


#: The fields of a stored segment that a `Segment` has; behind them stand its line and column in its field.
_OF_A_SEGMENT = len(Segment._fields)


def parsed(words: str) -> list[Any]:
    """Return a JSON array; most are empty, and an export asks for three of them in every line."""
    return [] if words == "[]" else _parsed(words)


def judged(
    connection: psycopg.Connection[Any], run_id: str, manifest: int, *, first: int = 0, last: int = LAST_LINE
) -> Generator[Judged]:
    """Yield the lines of a manifest from the first to the last, both included, streamed from the server."""
    values = {"run_id": run_id, "manifest": manifest, "first": first, "last": last}
    # Binary rows, for programs are twice as long in text.
    for row in connection.cursor(binary=True).stream(_OF_A_MANIFEST, values, size=_ROWS):
        yield _judged(row)


#: Reads lines of a manifest, as `judged` does over a connection of its own.
LineReader = Callable[[str, int, int, int], Generator[Judged]]

#: Raised by a `LineReader`.
ReadError = psycopg.Error


def line_reader(connected: Callable[[], psycopg.Connection[Any]]) -> LineReader:
    """Return a reader over the connection that is given at each read."""
    return lambda run_id, manifest, first, last: judged(connected(), run_id, manifest, first=first, last=last)


def own_line_reader(address: Mapping[str, Any]) -> LineReader:
    """Return a reader that connects at its first read; the address is that of `driver_arguments`."""
    return line_reader(cache(partial(psycopg.connect, autocommit=True, **address)))


def judged_items(connection: psycopg.Connection[Any], items: Sequence[Item]) -> Iterator[Judged]:
    """Read items of batches; returns an iterator in the order given, without unknown ones."""
    values = _parameters([(run, 0, line) for run, line in items])
    return map(_judged, connection.cursor(binary=True).execute(_OF_LINES, values))


def sentences(connection: psycopg.Connection[Any], lines: Sequence[RunLine]) -> dict[RunLine, str]:
    """Return the sentences of the verdicts on these lines, each with the line's own place.

    The programs are read one after the other, because each may have megabytes.
    """
    rows = connection.cursor(binary=True).stream(_OF_LINES, _parameters(lines))
    return {(each.run_id, each.manifest, each.line): each.detail() for each in map(_judged, rows)}


def _parameters(lines: Sequence[RunLine]) -> dict[str, list[Any]]:
    runs, manifests, numbers = (list(each) for each in zip(*lines, strict=True)) if lines else ([], [], [])
    return {"runs": runs, "manifests": manifests, "lines": numbers}


def _judged(row: tuple[Any, ...]) -> Judged:
    verdict = None if row[_OF_A_LINE] is None else StoredVerdict._make(row[_OF_A_LINE:])
    return Judged._make((*row[:_OF_A_LINE], verdict))
