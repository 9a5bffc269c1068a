"""What is to be proved, as a program, and whether a program states it in the dataset's own words."""

from __future__ import annotations

import pytest

from farm.challenge import Challenge, challenge_of, is_stated
from farm.manifest import Entry

HEADER = "import Mathlib\n"


def challenge(statement: str, header: str = HEADER) -> Challenge:
    texts = {"header": header, "formal_statement": statement, "generation": "", "predicted_proof": ""}
    found = challenge_of(Entry(path="", line=1, name="", **texts))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("statement", "program"),
    [
        ("theorem t : p := by sorry", "theorem t : p := sorry\n"),
        ("theorem t : p := by\n", "theorem t : p := sorry\n"),
        ("theorem t : p :=", "theorem t : p := sorry\n"),
        ("theorem t : p", "theorem t : p := sorry\n"),
        ("theorem t (h : x := 1) : p := by\n  intro h\n  sorry", "theorem t (h : x := 1) : p := sorry\n"),
        ("def a := 1\n\ntheorem t : p :=\nby", "def a := 1\n\ntheorem t : p := sorry\n"),
        ("/-- x := y -/ lemma t : p := by", "/-- x := y -/ lemma t : p := sorry\n"),
        ("theorem t : p := by\n  -- theorem t : p :=\n  sorry", "theorem t : p := sorry\n"),
    ],
)
def test_a_challenge_is_the_statement_with_a_sorry(statement: str, program: str) -> None:
    found = challenge(statement)
    assert (found.program, found.name) == (HEADER + program, "t")


def test_a_header_ends_its_line() -> None:
    assert challenge("theorem t : p := by", "import A").program == "import A\ntheorem t : p := sorry\n"
    assert challenge("theorem t : p := by", "").program == "theorem t : p := sorry\n"


@pytest.mark.parametrize("statement", ["", " \n"])
def test_there_is_no_challenge_without_a_statement(statement: str) -> None:
    texts = {"header": "", "formal_statement": statement, "generation": "g", "predicted_proof": ""}
    assert challenge_of(Entry(path="", line=1, name="", **texts)) is None


def test_what_declares_nothing_is_a_challenge_too() -> None:
    assert challenge("nonsense").program == f"{HEADER}nonsense := sorry\n"


STATED = "theorem t : p := by"


@pytest.mark.parametrize(
    ("before", "middle", "after", "stated"),
    [
        ("", STATED, " x", True),
        ("-- first\n/- second -/\n", STATED, " x", True),
        ("theorem helper : q := x\n", STATED, " helper", False),
        ("theorem helper : q := x -- done\n", STATED, " helper", False),
        ("/-", STATED, "-/", False),
        ("-- ", STATED, " x", False),
        ('def s := "', STATED, '"', False),
        ("def s := {x //-", STATED, " x -/", False),
        ("example := x |--", STATED, " x", False),
        ("", "theorem t : q := by", " x", False),
        (STATED, " skip", "", False),
        ("", "theorem t : p", " := by x", False),
    ],
)
def test_a_statement_is_stated_where_lean_reads_it_as_code(
    before: str, middle: str, after: str, stated: bool
) -> None:
    program = HEADER + before + middle + after
    first, second = len(HEADER), len(HEADER + before + middle)
    spans = [(first, first + len(before)), (second, len(program))]
    submitted = [(start, end) for start, end in spans if start < end]
    assert is_stated(challenge(STATED), program, submitted) is stated


@pytest.mark.parametrize("said", ["--", "/-", "-- x", "--\n"])
def test_nothing_is_stated_behind_a_comment_that_takes_in_what_is_the_datasets(said: str) -> None:
    program = f"{said}def p := q -- -/\n{STATED} x"
    own = [(0, len(said)), (len(program) - 2, len(program))]
    assert is_stated(challenge(STATED, header="def p := q -- -/\n"), program, own) is said.endswith("\n")
