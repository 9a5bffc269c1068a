"""Holes of lines: what a hole must be, how an answer gets into it, and what a judged program has of them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from farm.assembly.hole import drafts, filled, piece
from farm.assembly.program import AssemblyOptions, assemble
from farm.assembly.segments import Segment
from farm.errors import ManifestError
from farm.judging.assurance import Assurance
from farm.judging.holes import holes_of
from farm.judging.report import Goal
from farm.judging.submit_options import SubmitOptions
from farm.judging.tiers import Tier
from farm.manifest.entries import read
from farm.manifest.hole import Hole
from farm.runs.holes import write_filled
from farm.runs.prepare.blocks import Preparer
from farm.store.environments import ServedEnvironment
from farm.task import Fills, Task

PROGRAM = "theorem t : True ∧ True := by\n  exact ⟨sorry, by sorry⟩\n"
FIRST = PROGRAM.index("sorry")
HOLE: dict[str, Any] = {"program": PROGRAM, "start": FIRST, "end": FIRST + 5, "is_term": True, "of_holes": 2}
SECOND = {**HOLE, "start": PROGRAM.rindex("sorry"), "end": PROGRAM.rindex("sorry") + 5, "is_term": False}
DIGEST = hashlib.sha256(PROGRAM.encode()).hexdigest()


def line(tmp_path: Path, hole: object, **others: object) -> Path:
    path = tmp_path / "lines.jsonl"
    path.write_text(json.dumps({"generation": "exact h", "hole": hole, **others}) + "\n")
    return path


@pytest.mark.parametrize(
    ("hole", "field", "problem"),
    [
        ("x", "hole", "not an object but a string"),
        ({**HOLE, "program": ""}, "hole.program", "not the text of a program"),
        ({**HOLE, "program": None}, "hole.program", "not the text of a program"),
        ({**HOLE, "end": 4096}, "hole.end", f"4096 is not between 0 and {len(PROGRAM)}"),
        ({**HOLE, "end": FIRST}, "hole.end", f"{FIRST} is not behind the start, {FIRST}"),
        ({**HOLE, "start": -1}, "hole.start", f"-1 is not between 0 and {len(PROGRAM)}"),
        ({**HOLE, "start": 1.5}, "hole.start", "not a whole number"),
        ({**HOLE, "start": True}, "hole.start", "not a whole number"),
        ({**HOLE, "start": 1e400}, "hole.start", "not a whole number"),
        ({**HOLE, "number": 3}, "hole.number", "3 is not between 1 and 2"),
        ({**HOLE, "of_holes": 0}, "hole.of_holes", "0 is not between 1 and 1048576"),
        ({**HOLE, "is_term": "no"}, "hole.is_term", "neither true nor false"),
        (
            {**HOLE, "of": {"program_sha256": "0" * 64}},
            "hole.program",
            "not the program that hole.of.program_sha256 names",
        ),
    ],
)
def test_an_edited_hole_is_refused_with_line_and_field(
    tmp_path: Path, hole: object, field: str, problem: str
) -> None:
    with pytest.raises(ManifestError) as error:
        list(read(line(tmp_path, hole)))
    assert (error.value.line, error.value.field, error.value.problem) == (1, field, problem)


def test_a_hole_takes_its_answer_from_the_generation_alone(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="stands beside a hole"):
        list(read(line(tmp_path, HOLE, predicted_proof="theorem t : True := trivial")))
    with pytest.raises(ManifestError, match="null"):
        list(read(line(tmp_path, HOLE, generation=None)))
    (entry,) = read(line(tmp_path, {**HOLE, "of": {"program_sha256": DIGEST, "line": 3}}))
    assert entry.hole == Hole(program=PROGRAM, start=FIRST, end=FIRST + 5, is_term=True, of_holes=2)


def test_an_answer_stands_in_its_place_and_all_of_the_program_is_the_submissions(tmp_path: Path) -> None:
    (entry,) = read(line(tmp_path, HOLE, generation="```lean4\nby\n  exact h -- so\n```"))
    (program,) = assemble(entry, AssemblyOptions())
    assert program.text == PROGRAM.replace("sorry", "(by\n  exact h -- so\n)", 1)
    kept = [program.text[start:end] for start, end in program.submitted]
    assert kept == [PROGRAM[:FIRST], "  exact h -- so", PROGRAM[FIRST + 5 :]]
    hole = Hole.of(HOLE)
    assert piece(hole, program.text) == "(by\n  exact h -- so\n)"
    assert piece(hole, program.text + "x") is None
    assert piece(hole, "theorem") is None
    assert hole.fills.open(program.text) == PROGRAM
    assert filled(
        PROGRAM, {(FIRST, FIRST + 5): "a", (SECOND["start"], SECOND["end"]): "b"}
    ) == PROGRAM.replace("sorry", "a", 1).replace("sorry", "b")


@pytest.mark.parametrize(
    ("answer", "written"),
    [
        ("exact h", "(\n  exact h\n)"),
        ("intro h\n    exact h", "(\n    intro h\n    exact h\n)"),
        ("  intro h\n  exact h\n", "(\n  intro h\n  exact h\n)"),
        ("⟨a, b⟩", "(\n  exact ⟨a, b⟩\n)"),
        ("", "(\n)"),
    ],
)
def test_lines_of_an_answer_keep_their_columns(answer: str, written: str) -> None:
    hole = Hole.of({**SECOND})
    draft, _ = next(drafts(hole, answer, "", last=True))
    assert piece(hole, draft.text) == written


def test_a_hole_of_several_leaves_the_others_open_and_needs_an_audit(tmp_path: Path) -> None:
    (entry,) = read(line(tmp_path, HOLE))
    task = entry.task_in(Task(axioms=("propext",)))
    fills = Fills(start=FIRST, tail=len(PROGRAM) - FIRST - 5, text="sorry")
    assert task == Task(axioms=("propext",), permit_sorry=("*",), fills=fills)
    assert Task.read(task.stored) == task
    assert Task.of({"fills": {"start": 1}}) == Task()
    assert replace(entry, hole=Hole.of({**HOLE, "of_holes": 1})).task_in(Task()) == Task()
    options = SubmitOptions(
        assembly=AssemblyOptions(), environment="core", assurance=Assurance(tier=Tier.LEAN)
    )
    core = ServedEnvironment(name="core", digest="d", toolchain="t", silent_seconds=0, tiers=tuple(Tier))
    with pytest.raises(ManifestError) as error:
        Preparer(options, {"core": core}).prepared(entry)
    assert error.value.field == "hole"


def goal(start: int, end: int, kind: str = "sorry", text: str = "⊢ True") -> Goal:
    return Goal(kind=kind, goal=text, line=1, column=0, start=start, end=end)


def test_holes_are_the_programs_own_sorries_each_once() -> None:
    end = len(PROGRAM)
    goals = [
        goal(40, 45, text="⊢ b"),
        goal(40, 45, text="⊢ c"),
        goal(20, 25),
        goal(41, 44),
        goal(30, 60, kind="error"),
        goal(5, 10),
        goal(12, 12),
        goal(end - 2, end + 2),
        Goal(kind="sorry", goal="⊢ d", line=1, column=0),
    ]
    found = holes_of(
        PROGRAM, goals, [Segment(15, 15, "formal_statement", 0), Segment(30, 9, "generation", 0)], 6
    )
    assert [(each["number"], each["of_holes"], each["start"], each["goal"]) for each in found] == [
        (1, 1, 40, "⊢ b\n\n⊢ c"),
    ]
    assert (found[0]["line"], found[0]["column"]) == (2, 40 - PROGRAM.index("\n") - 1)


def judged(hole: dict[str, Any], number: int, verdict: str, text: str) -> dict[str, Any]:
    program = PROGRAM[: hole["start"]] + text + PROGRAM[hole["end"] :]
    whole = {**hole, "number": number, "of": {"name": "t", "group": "g", "program_sha256": DIGEST}}
    row = {"name": f"t.hole{number}", "group": "x", "source": "mine", "hole": whole, "generation": text}
    told = {"verdict": verdict, "program_sha256": hashlib.sha256(program.encode()).hexdigest()}
    return {**row, "predicted_proof": program, "farm": {**told, "assembled": True}}


def test_the_first_fine_answer_to_each_hole_is_taken(tmp_path: Path) -> None:
    answers, whole = tmp_path / "answers.jsonl", tmp_path / "whole.jsonl"
    rows = [
        judged(HOLE, 1, "rejected", "a"),
        judged(SECOND, 2, "partial", "b"),
        judged(HOLE, 1, "partial", "c"),
        judged(HOLE, 1, "proved", "d"),
    ]
    answers.write_text("".join(json.dumps(each) + "\n" for each in rows))
    counted = write_filled([answers], whole)
    assert (counted.written, counted.parents, counted.open) == (1, 1, 0)
    (line,) = map(json.loads, whole.read_text().splitlines())
    assert line == {
        "name": "t",
        "group": "g",
        "source": "mine",
        "predicted_proof": PROGRAM.replace("sorry", "c", 1).replace("sorry", "b"),
        "of": rows[0]["hole"]["of"],
    }


def test_answers_that_do_not_fit_their_hole_are_refused(tmp_path: Path) -> None:
    answers, whole = tmp_path / "answers.jsonl", tmp_path / "whole.jsonl"
    wrong = {**judged(HOLE, 1, "partial", "c"), "predicted_proof": "theorem t : True := trivial"}
    wrong["farm"]["program_sha256"] = hashlib.sha256(wrong["predicted_proof"].encode()).hexdigest()
    for row, field in ((wrong, "predicted_proof"), ({"generation": "x", "formal_statement": "x"}, "hole")):
        answers.write_text(json.dumps(row) + "\n")
        with pytest.raises(ManifestError) as error:
            write_filled([answers], whole)
        assert (error.value.line, error.value.field) == (1, field)
    assert not whole.exists()
