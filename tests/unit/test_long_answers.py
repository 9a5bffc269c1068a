"""Answers of any length: where a text is longer, the program that is made of it stays the same."""

from __future__ import annotations

import re

import pytest

from farm.assembly.program import AssemblyOptions, assemble
from farm.lean_text.header import header_end
from farm.manifest.entry import Entry

HEADER = "prelude\nimport Core\n"
STATEMENT = "theorem t : 1 = 1 := by"
PROVED = f"{STATEMENT}\n  rfl\n"
SHORT, SIZES = 600, (600_000, 2_000_000)


def comment(characters: int) -> str:
    """Return a comment of this length, of short lines."""
    return "/- " + "x y z\n" * (characters // 6) + "-/\n"


def words(characters: int) -> str:
    return "we say a word. " * (characters // 15) + "\n"


def lines(characters: int) -> str:
    return "-- a line of words\n" * (characters // 19)


def fences(characters: int) -> str:
    return "```text\na plan of the proof, which is long\n```\n" * (characters // 46)


REPEATED = re.compile(
    r"\s*(?:/-(?:\s*+x y z)++\s*-/\s*|(?:we say a word\. ?)++|(?:-- a line of words\s*)++)\s*"
)
#: What is long, and the answer around it.
ANSWERS = {
    "a comment behind the proof": (comment, "```lean4\n" + PROVED + "{}```"),
    "a comment above the theorem": (comment, "```lean4\n{}" + PROVED + "```"),
    "a comment above the imports": (comment, "```lean4\n{}" + HEADER + PROVED + "```"),
    "a comment above a bare proof": (comment, "```lean4\n{}rfl\n```"),
    "a comment in a bare proof": (comment, "```lean4\nshow 1 = 1\n{}rfl\n```"),
    "a comment between the statement and the proof": (comment, "```lean4\n" + STATEMENT + "\n{}  rfl\n```"),
    "lines of comments above a bare proof": (lines, "```lean4\n{}rfl\n```"),
    "a line of a bare proof": (words, "```lean4\nshow 1 = 1\nexact rfl -- {}```"),
    "prose above the block": (words, "{}```lean4\n" + PROVED + "```"),
    "prose above the theorem": (words, "Here it is.\n{}\n" + PROVED),
    "other blocks above": (fences, "{}```lean4\n" + PROVED + "```"),
}


def shape(long: str, answer: str, statement: str = STATEMENT) -> tuple[str, list[str]]:
    """Return the program that is made of an answer, without what is repeated in it, and the warnings."""
    entry = Entry(
        path="",
        line=1,
        name="t",
        header=HEADER,
        formal_statement=statement,
        predicted_proof="",
        generation=answer.replace("{}", long),
    )
    program, *_ = assemble(entry, AssemblyOptions())
    return REPEATED.sub("\n", program.text), [each.code for each in program.warnings]


@pytest.mark.parametrize("what", ANSWERS)
def test_the_program_of_a_long_answer_is_that_of_a_short_one(what: str) -> None:
    made, answer = ANSWERS[what]
    usual = shape(made(SHORT), answer)
    for characters in SIZES:
        assert shape(made(characters), answer) == usual


def test_a_long_answer_to_a_statement_without_by_is_read_as_tactics_too() -> None:
    answer, statement = "```lean4\n{}show 1 = 1\nrfl\n```", "theorem t : 1 = 1 :="
    assert shape(comment(SIZES[0]), answer, statement) == shape(comment(SHORT), answer, statement)


def test_of_a_comment_only_the_last_line_is_moved_with_the_code_behind_it() -> None:
    text, _ = shape("", "```lean4\nshow 1 = 1\n/- one\ntwo\nthree -/ exact id\n  rfl\n```")
    assert text.endswith("  show 1 = 1\n  /- one\ntwo\n  three -/ exact id\n    rfl")


def test_a_comment_of_any_length_may_stand_above_the_imports_of_a_program() -> None:
    for characters in (SHORT, *SIZES):
        above = comment(characters)
        assert header_end(f"{above}{HEADER}{PROVED}") == len(above) + len(HEADER.rstrip())
