"""A line's program for the page: numbered lines, the origin of each, and the messages beside it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import NamedTuple

from farm.assembly.segments import LineMap, Segment
from farm.judging.places import beside
from farm.judging.report import Goal, Message
from farm.lean_text.policy.rules import Action, Hit
from farm.service.page.escaping import cut
from farm.store.records import Judged, StoredVerdict

#: Limits of the shown part of a program and of its messages; the whole program can be downloaded.
MOST_LINES = 3_000
MOST_CHARACTERS = 200_000
MOST_COLUMNS = 2_000
MOST_NOTES = 150
MOST_SAID = 60_000
MOST_IN_A_NOTE = 6_000

#: The origin of a piece of a program, by the field of its segment.
_ORIGINS = {
    "header": "header",
    "context": "header",
    "formal_statement": "statement",
    "generation": "answer",
    "predicted_proof": "answer",
    "hole": "hole",
}
#: The origin of the model's text before the statement, and of the farm's text between the pieces.
PREAMBLE, FARM = "preamble", "farm"
#: The origins in the order of the legend.
ORIGINS = ("header", "preamble", "statement", "hole", "answer", "farm")


class ShownSpan(NamedTuple):
    """A piece of the whole program by its offsets, with its origin."""

    start: int
    end: int
    origin: str


class Piece(NamedTuple):
    """A piece of one line, with its origin."""

    text: str
    origin: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Note:
    """A message about a line of the program, 0 for none; `place` names the line's field as well.

    `kind` is ``error``, ``warning``, ``information``, ``goal`` or ``policy``. `left_out` counts omitted
    characters.
    """

    kind: str
    title: str
    text: str
    line: int
    place: str
    left_out: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """A line of the program.

    `origin` is the first of its origins; an empty line has that of the line before. `label` names all its
    origins if they differ from those of the line before, else it is "".
    """

    number: int
    pieces: tuple[Piece, ...]
    origin: str = FARM
    label: str = ""
    left_out: int = 0
    notes: tuple[Note, ...] = ()

    @property
    def origins(self) -> tuple[str, ...]:
        """The origins of its pieces that are not blank."""
        return tuple(dict.fromkeys(piece.origin for piece in self.pieces if piece.text.strip()))

    @property
    def is_mixed(self) -> bool:
        """Whether its pieces have different origins."""
        return len(self.origins) > 1


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownProgram:
    """The shown part of a program.

    `elsewhere` has the messages about no shown line. `lines_left_out` and `notes_left_out` count the rest.
    """

    rows: tuple[Row, ...]
    elsewhere: tuple[Note, ...]
    origins: tuple[str, ...]
    lines_left_out: int
    notes_left_out: int


def program(job: Judged) -> ShownProgram:
    """Return a line's program with its messages, goals and policy hits."""
    text = job.program
    notes, notes_left_out = _bounded(list(_notes(job, job.verdict)) if job.verdict else [])
    lines = text.split("\n")
    kept = _kept(lines)
    by_line: dict[int, list[Note]] = {}
    for note in notes:
        by_line.setdefault(note.line if 0 < note.line <= kept else 0, []).append(note)
    rows = _labelled(_rows(lines[:kept], spans(len(text), job.segments)))
    return ShownProgram(
        rows=tuple(replace(row, notes=tuple(by_line.get(row.number, ()))) for row in rows),
        elsewhere=tuple(by_line.get(0, ())),
        origins=tuple(each for each in ORIGINS if any(p.origin == each for row in rows for p in row.pieces)),
        lines_left_out=len(lines) - kept,
        notes_left_out=notes_left_out,
    )


def spans(length: int, segments: Sequence[Segment]) -> Iterator[ShownSpan]:
    """Yield the spans of a program of this length; the text between segments is the farm's."""
    stated = max((each.start for each in segments if each.origin == "formal_statement"), default=0)
    at = 0
    for each in segments:
        start, end = min(length, max(at, each.start)), min(length, each.start + each.length)
        if at < start:
            yield ShownSpan(at, start, FARM)
        if start < end:
            is_before = each.origin == "generation" and each.start < stated
            yield ShownSpan(start, end, PREAMBLE if is_before else _ORIGINS.get(each.origin, FARM))
        at = max(at, start, end)
    if at < length:
        yield ShownSpan(at, length, FARM)


def _kept(lines: Sequence[str]) -> int:
    """Return the number of shown lines, at least one."""
    sizes = accumulate(min(len(line), MOST_COLUMNS) + 1 for line in lines[:MOST_LINES])
    return max(1, sum(size <= MOST_CHARACTERS for size in sizes))


def _rows(lines: Sequence[str], found: Iterator[ShownSpan]) -> Iterator[Row]:
    """Yield a row for each line, cut at the borders of the spans, which come in order."""
    span, start = next(found, None), 0
    for number, line in enumerate(lines, 1):
        end, behind, got = start + len(line), start + min(len(line), MOST_COLUMNS), list[Piece]()
        while span is not None and span.start < end:
            first, last = max(start, span.start), min(behind, span.end)
            if first < last:
                got.append(Piece(line[first - start : last - start], span.origin))
            if span.end > end:
                break
            span = next(found, None)
        yield Row(number=number, pieces=tuple(got), left_out=end - behind)
        start = end + 1


def _labelled(rows: Iterator[Row]) -> list[Row]:
    before: tuple[str, ...] = (FARM,)
    labelled = list[Row]()
    for row in rows:
        now = row.origins or before
        label = " + ".join(now) if now != before or not labelled else ""
        labelled.append(replace(row, origin=now[0], label=label))
        before = now
    return labelled


def _notes(job: Judged, verdict: StoredVerdict) -> Iterator[Note]:
    lines = job.lines()
    for each in verdict.messages:
        yield _note(each.severity, each.severity, each.text, each, lines)
    for goal in verdict.goals or ():
        yield _note("goal", f"goal at the {goal.kind}", goal.goal, goal, lines)
    for hit in verdict.hits:
        words = hit.text if hit.action is Action.REPORT else f"{hit.text} ({hit.action})"
        yield _note("policy", f"policy: {hit.rule}", words, hit, lines)


def _note(kind: str, title: str, text: str, at: Message | Goal | Hit, lines: LineMap) -> Note:
    """Return a note; a submission may have forged Lean's message, so no field is trusted."""
    kind = kind if kind in ("error", "warning", "goal", "policy") else "information"
    head, left_out = cut(text, MOST_IN_A_NOTE)
    place = beside(at.line, at.column, lines.locate)
    return Note(kind=kind, title=title[:80], text=head, line=at.line, place=place, left_out=left_out)


def _bounded(notes: Sequence[Note]) -> tuple[list[Note], int]:
    """Return the first notes within the limits, and the number of the others."""
    sizes = accumulate(len(note.text) for note in notes[:MOST_NOTES])
    kept = sum(size <= MOST_SAID for size in sizes)
    return list(notes[:kept]), len(notes) - kept
