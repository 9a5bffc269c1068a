"""Holes step: writes the open places of a run's programs as lines, and puts their answers together again.

The program of a line comes back with every hole, so that an answer is put into its place and all else is the
parent's. No goal is read again as a statement: it is text for a model.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from farm.assembly.challenge import challenge_to
from farm.assembly.hole import filled, piece
from farm.characters import encoded
from farm.errors import ManifestError, UsageError
from farm.judging.holes import cut, holes_of
from farm.judging.report import Goal
from farm.judging.verdict import Outcome
from farm.manifest.entries import entries, fingerprint
from farm.manifest.hole import Hole
from farm.manifest.lines import opened, printable
from farm.manifest.rewrite import write
from farm.store.queries import Queries, StoredManifest, StoredRun
from farm.store.records import Judged

#: Fields of a line that belong to its answer and verdict, or to the place of an earlier hole.
_LEFT_OUT = frozenset(
    {"generation", "predicted_proof", "proof_status", "farm", "search", "proof", "hole", "cut", "of", "open"}
)
_FINE = frozenset({Outcome.PROVED, Outcome.PARTIAL})

Row = dict[str, Any]


@dataclass(slots=True)
class Counted:
    """What a command did: the lines that it wrote, of so many lines with holes, and others.

    `with_errors` counts lines that Lean refused, `without_goals` those judged without goals, and `open` the
    programs that still have a hole.
    """

    written: int = 0
    parents: int = 0
    with_errors: int = 0
    without_goals: int = 0
    open: int = 0


def write_holes(queries: Queries, run: StoredRun, target: Path, *, cuts: bool = False) -> Counted:
    """Write a line for each hole of a run's programs; with `cuts`, one for each program with an error.

    Such a program is cut at its first error: a sorry stands in place of what fails. Raises ManifestError
    where a manifest is not as it was submitted, and UsageError for a run without goals.
    """
    counted = Counted()
    found = list(_written(queries, run, counted, cuts=cuts))
    if counted.without_goals and not counted.parents and not counted.with_errors:
        raise UsageError(f"run {run.id} has no goals; have it judged with them: farm submit MANIFEST --goals")
    write(target, found)
    counted.written = len(found)
    return counted


def _written(queries: Queries, run: StoredRun, counted: Counted, *, cuts: bool) -> Iterator[str]:
    for manifest in queries.manifests(run.id):
        for row, judged in _rows(queries, run, manifest):
            for each in _of_line(row, judged, counted, cuts=cuts):
                yield json.dumps(each, ensure_ascii=False)


def _rows(queries: Queries, run: StoredRun, manifest: StoredManifest) -> Iterator[tuple[Row, Judged]]:
    """Yield the judged lines of a manifest with the fields that they have in its file."""
    if fingerprint(manifest.path) not in manifest.fingerprints:
        remedy = f"get it back with: farm export {run.id} --manifest {manifest.number} -o OTHER.jsonl"
        raise ManifestError(
            printable(manifest.path, None), "has changed since it was submitted", remedy=remedy
        )
    with opened(manifest.path) as lines, closing(queries.judged(run.id, manifest.number)) as every:
        judged = next(every, None)
        for number, text in lines:
            if judged is None:
                return
            if judged.line == number:
                yield json.loads(text.removeprefix(b"\xef\xbb\xbf")), judged
                judged = next(every, None)


def _of_line(row: Row, judged: Judged, counted: Counted, *, cuts: bool) -> Iterator[Row]:
    verdict = judged.verdict
    if verdict is None or verdict.outcome == Outcome.PROVED:
        return
    if verdict.goals is None:
        counted.without_goals += 1
        return
    if any(each.severity == "error" for each in verdict.messages):
        counted.with_errors += 1
        found = _cut(row, judged, verdict.goals) if cuts else None
        yield from [] if found is None else [found]
        return
    holes = holes_of(judged.program, verdict.goals, judged.segments, _own_start(row, judged.program))
    if holes and not cuts:
        counted.parents += 1
        kept = {name: value for name, value in row.items() if name not in _LEFT_OUT}
        of = _parent(row, judged)
        for hole in holes:
            number = hole["number"]
            named = {"name": f"{judged.name or f'line{judged.line}'}.hole{number}"}
            group = f"{judged.run_id}.{judged.manifest}.{judged.line}.hole{number}"
            yield {**kept, **named, "group": group, "hole": {**hole, "of": of}}


def _parent(row: Row, judged: Judged) -> Row:
    grouped = {"group": row["group"]} if row.get("group") is not None else {}
    return {
        "run": judged.run_id,
        "manifest": judged.manifest,
        "line": judged.line,
        "name": judged.name,
        "program_sha256": judged.sha256.hex(),
        **grouped,
    }


def _own_start(row: Mapping[str, Any], program: str) -> int:
    """Return the end of the dataset's text, where a program begins with it."""
    header, context, statement = (
        str(row.get(each) or "") for each in ("header", "context", "formal_statement")
    )
    challenge = challenge_to(header, statement, context)
    stated = "" if challenge is None else challenge.program.removesuffix(" sorry\n")
    return len(stated) if program.startswith(stated) else 0


def _cut(row: Row, judged: Judged, goals: Sequence[Goal]) -> Row | None:
    """Return the line of a program that is cut at its first error; None where Lean names no place for it."""
    found = cut(judged.program, goals)
    if found is None:
        return None
    kept = {name: value for name, value in row.items() if name not in _LEFT_OUT}
    place = {"line": found.error.line, "column": found.error.column, "of": _parent(row, judged)}
    return {**kept, "predicted_proof": found.program, "cut": place}


# Answers


@dataclass(slots=True)
class _Parent:
    """A program with holes, the fields of its line, and the texts that fill holes, by number."""

    row: Row
    holes: dict[int, Hole] = field(default_factory=dict)
    pieces: dict[int, str] = field(default_factory=dict)


def write_filled(answers: Sequence[Path], target: Path, *, with_open: bool = False) -> Counted:
    """Write a line for each program whose holes have an answer that was judged fine.

    With `with_open` a program is written although holes stay open. Raises ManifestError.
    """
    parents: dict[str, _Parent] = {}
    for path in answers:
        _gather(path, parents)
    counted = Counted(parents=len(parents))
    lines = list[str]()
    for parent in parents.values():
        missing = sorted(set(range(1, _most(parent) + 1)) - parent.pieces.keys())
        counted.open += bool(missing)
        if not missing or with_open:
            lines.append(json.dumps(_whole(parent, missing), ensure_ascii=False))
    write(target, lines)
    counted.written = len(lines)
    return counted


def _most(parent: _Parent) -> int:
    return max(each.of_holes for each in parent.holes.values())


def _gather(path: Path, parents: dict[str, _Parent]) -> None:
    with opened(path) as lines:
        rows = {number: text for number, text in lines if text.strip()}
    for entry in entries(str(path), rows.items(), may_lack_answer=True):
        if isinstance(entry, ManifestError):
            raise entry
        if entry.hole is None:
            raise ManifestError(
                str(path), "missing", line=entry.line, field="hole", remedy="name lines that farm holes wrote"
            )
        row = json.loads(rows[entry.line].removeprefix(b"\xef\xbb\xbf"))
        parent = parents.setdefault(_key(row, entry.hole), _Parent(row=row))
        parent.holes[entry.hole.number] = entry.hole
        told = row.get("farm") or {}
        if entry.hole.number not in parent.pieces and told.get("verdict") in _FINE:
            text = piece(entry.hole, str(row.get("predicted_proof") or ""))
            if text is None:
                problem = "not the hole's program with an answer in its place"
                raise ManifestError(
                    str(path),
                    problem,
                    line=entry.line,
                    field="predicted_proof",
                    remedy="submit the line again",
                )
            parent.pieces[entry.hole.number] = text


def _key(row: Row, hole: Hole) -> str:
    of = json.dumps(row["hole"].get("of"), sort_keys=True)
    return f"{of}{hashlib.sha256(encoded(hole.program)).hexdigest()}"


def _whole(parent: _Parent, missing: Sequence[int]) -> Row:
    left_out = _LEFT_OUT | {"name", "group"}
    kept = {name: value for name, value in parent.row.items() if name not in left_out}
    of = parent.row["hole"].get("of") or {}
    named = {name: of[name] for name in ("name", "group") if of.get(name)}
    program = next(iter(parent.holes.values())).program
    places = {(each.start, each.end): number for number, each in parent.holes.items()}
    answers = {place: parent.pieces[number] for place, number in places.items() if number in parent.pieces}
    still = {"open": list(missing)} if missing else {}
    return {**named, **kept, "predicted_proof": filled(program, answers), "of": of, **still}
