"""What is to be proved, as a program."""

from __future__ import annotations

import pytest

from farm.assembly.challenge import Challenge, challenge_to

HEADER = "import Mathlib\n"


def challenge(statement: str, header: str = HEADER) -> Challenge:
    found = challenge_to(header, statement)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("statement", "program"),
    [
        ("theorem t : p := by sorry", "theorem t : p := sorry\n"),
        ("theorem t : p := by\n", "theorem t : p := sorry\n"),
        ("theorem t : p :=", "theorem t : p := sorry\n"),
        ("theorem t : p", "theorem t : p\n  := sorry\n"),
        ("theorem t : p -- as is", "theorem t : p\n  := sorry\n"),
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
    assert challenge_to("", statement) is None


def test_what_declares_nothing_is_a_challenge_too() -> None:
    assert challenge("nonsense").program == f"{HEADER}nonsense\n  := sorry\n"
