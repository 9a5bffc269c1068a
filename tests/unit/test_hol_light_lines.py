"""Lines of HOL Light: which term is the goal, which part of an answer the tactic, and wrong lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.assembly.faults import StatementFault
from farm.assembly.program import AssemblyOptions, Program
from farm.kinds import Kind
from farm.manifest.entry import Entry
from farm.systems.hol_light.assembly import assemble, challenge, parts
from farm.systems.known import system

STATEMENT = "let aime-1983-p9 = `!x:real. x <= x`;;\n"


def entry(generation: str, *, statement: str = STATEMENT, header: str = "", predicted: str = "") -> Entry:
    """Return a line with this answer."""
    return Entry(
        path="m.jsonl",
        line=1,
        name="n",
        header=header,
        formal_statement=statement,
        generation=generation,
        predicted_proof=predicted,
    )


def program(generation: str, **fields: str) -> Program:
    """Return the program of a line."""
    (only,) = assemble(entry(generation, **fields), AssemblyOptions())
    return only


@pytest.mark.parametrize(
    "answer",
    [
        "REAL_ARITH_TAC",
        "REAL_ARITH_TAC;;",
        "Use this:\n```ocaml\nREAL_ARITH_TAC\n```\nThat is all.",
        "```hol\nREAL_ARITH_TAC;;\n```",
        "```\nREAL_ARITH_TAC\n```",
        "```ocaml\nprove(`!x:real. x <= x`, REAL_ARITH_TAC);;\n```",
        "```ocaml\nlet th = prove\n (`!x:real. x <= x`,\n  REAL_ARITH_TAC);;\n```",
        "```ocaml\ng `!x:real. x <= x`;;\ne (REAL_ARITH_TAC);;\n```",
        "e(REAL_ARITH_TAC);;",
        "<think>ARITH_TAC? No.</think>\nREAL_ARITH_TAC",
        "```python\nprint(1)\n```\n```ocaml\nREAL_ARITH_TAC\n```",
    ],
)
def test_the_tactic_of_an_answer_is_found(answer: str) -> None:
    assert program(answer).text == "prove(`!x:real. x <= x`,\nREAL_ARITH_TAC\n);;\n"


@pytest.mark.parametrize(
    "answer",
    [
        "e (GEN_TAC);; e (ARITH_TAC);;",
        "prove(`T`, ARITH_TAC);; let x = (1)",
        "(A) THEN (B)",
        "let t = A in (t)",
    ],
)
def test_what_is_no_simple_call_is_left_as_it_is(answer: str) -> None:
    found = parts(program(answer).text)
    assert found is not None
    assert found.tactic.strip() == answer.removesuffix(";;")


def test_the_goal_is_the_dataset_s_whatever_the_answer_states() -> None:
    assert parts(program("prove(`T`, REWRITE_TAC[]);;").text) == ("!x:real. x <= x", "\nREWRITE_TAC[]\n", 24)


def test_every_part_of_a_program_has_its_field() -> None:
    answer = "```ocaml\nREPEAT GEN_TAC THEN\nREAL_ARITH_TAC\n```"
    made = program(answer)
    fields = {"formal_statement": STATEMENT, "generation": answer}
    assert [segment.origin for segment in made.segments] == ["formal_statement", "generation"]
    for segment in made.segments:
        of_field = fields[segment.origin][segment.origin_start : segment.origin_start + segment.length]
        assert made.text[segment.start : segment.start + segment.length] == of_field


def test_the_first_block_counts_where_that_is_asked_for() -> None:
    answer = "```ocaml\nA_TAC\n```\n```ocaml\nB_TAC\n```"
    (first,) = assemble(entry(answer), AssemblyOptions(extract_code_mode="first"))
    assert "A_TAC" in first.text
    assert "B_TAC" in program(answer).text


def test_an_answer_without_a_tactic_is_warned_about() -> None:
    assert [warning.code for warning in program("```ocaml\n```").warnings] == ["no_answer"]
    assert [warning.code for warning in program("<think>so").warnings] == ["unclosed_thinking", "no_answer"]


def test_an_exported_program_is_taken_as_it_is() -> None:
    exported = program("REAL_ARITH_TAC").text
    assert program("CHEAT_TAC", predicted=exported).text == exported
    (again,) = assemble(entry("OTHER_TAC", predicted=exported), AssemblyOptions(reassemble=True))
    assert "OTHER_TAC" in again.text


@pytest.mark.parametrize(
    ("statement", "name", "goal"),
    [
        (STATEMENT, "aime-1983-p9", "!x:real. x <= x"),
        ("let a-1 =\nlet a-1 = `T`;;", "a-1", "T"),
        ("`1 + 1 = 2`", "goal", "1 + 1 = 2"),
        ("let x = `!a.\n  a = a:num`;;", "x", "!a.\n  a = a:num"),
    ],
)
def test_the_goal_is_what_stands_between_the_backquotes(statement: str, name: str, goal: str) -> None:
    found = challenge("", "", statement)
    assert (found.name, found.program) == (name, goal)


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("!x. x = x", "no term between backquotes"),
        ("", "no term between backquotes"),
        ("let a = `T", "no term between backquotes"),
        ("`T` `F`", "more than one term"),
        ("`T` and `", "more than one term"),
        ("` `", "the term is empty"),
    ],
)
def test_a_statement_that_is_none_is_told_with_a_remedy(statement: str, problem: str) -> None:
    for ask in (lambda: challenge("", "", statement), lambda: program("A", statement=statement)):
        with pytest.raises(StatementFault, match=problem) as caught:
            ask()
        assert caught.value.field == "formal_statement"
        assert caught.value.remedy.startswith("write ")


def test_a_header_is_told_where_it_belongs() -> None:
    with pytest.raises(StatementFault, match="no headers") as caught:
        program("A", header='loadt "Library/transc.ml";;')
    assert caught.value.field == "header"
    assert "load" in caught.value.remedy


def test_the_kind_s_lines_are_assembled_by_this() -> None:
    assert system(Kind.HOL_LIGHT).assemble is assemble


@given(st.text(alphabet='`();,etp rov\nA_\\"*'))
def test_whatever_an_answer_is_the_goal_stays(answer: str) -> None:
    found = parts(program(answer).text)
    assert found is not None
    assert found.goal == "!x:real. x <= x"


@pytest.mark.parametrize(
    "text", ["", "prove(T, A);;", "prove(`T`, A)", "let th = prove(`T`,A);;", "x prove(`T`,A);;"]
)
def test_what_is_no_program_has_no_parts(text: str) -> None:
    assert parts(text) is None
