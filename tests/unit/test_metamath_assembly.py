"""Lines of Metamath become blocks: a dataset's statement with the proof of an answer."""

from __future__ import annotations

import pytest
from farm_workers.systems.metamath.block import examine
from farm_workers.systems.metamath.database import Database

from farm.assembly.faults import StatementFault
from farm.assembly.program import AssemblyOptions, Program
from farm.assembly.segments import LineMap, starts_in
from farm.kinds import Kind
from farm.manifest.entry import Entry
from farm.systems.known import system

BASE = "$c |- wff ( ) -> $. $v ph ps x y $. wph $f wff ph $. wps $f wff ps $. wx $f wff x $. wy $f wff y $."
STATEMENT = "${\n  $d ph ps $.\n  t1.1 $e |- ph $.\n  t1 $p |- ps $= ? $.\n$}"
WHOLE = "${ $d ph ps $. t1.1 $e |- ph $.\n t1 $p |- ps $= t1.1 wph $. $}"
BLOCK = "${\n  $d ph ps $.\n  t1.1 $e |- ph $.\n  t1 $p |- ps $=\n    PROOF $.\n$}\n"

METAMATH = system(Kind.METAMATH)


def entry(generation: str = "", statement: str = STATEMENT, **others: str) -> Entry:
    fields = {"header": "", "predicted_proof": "", **others}
    return Entry(
        path="m.jsonl", line=1, name="t1", formal_statement=statement, generation=generation, **fields
    )


def assembled(generation: str, statement: str = STATEMENT, **options: object) -> Program:
    (only,) = METAMATH.assemble(entry(generation, statement), AssemblyOptions(**options))  # type: ignore[arg-type]
    return only


def codes(program: Program) -> list[str]:
    return [warning.code for warning in program.warnings]


@pytest.mark.parametrize(
    "answer",
    [
        "```metamath\nt1.1 wph\n```",
        "```mm\nt1.1 wph\n```",
        "```\nt1.1 wph\n```",
        "t1.1 wph",
        "I prove it.\n\n```metamath\nt1.1 wph\n```\nThat is all.",
        "```python\nprint()\n```\n```metamath\nt1.1 wph\n```",
        "```\nwrong\n```\n```mm\nt1.1 wph\n```\n```\nwrong\n```",
        "<think>```mm\nwrong\n```</think>\n```mm\nt1.1 wph\n```",
        "**FINAL ANSWER**\n```mm\nt1.1 wph\n```",
        f"```metamath\n{WHOLE}\n```",
        "```metamath\nt1 $p |- ps $= t1.1 wph $.\n```",
        "$= t1.1 wph $.",
        "```metamath\n  t1.1 wph $.\n```",
        "```metamath\n$( by hand $) $= t1.1 wph $( done $) $.\n```",
        "```metamath\nlemma $p |- ph $= wph $. t1 $p |- ps $= t1.1 wph $.\n```",
        "```metamath\n$( a $p comment $) t1 $p |- ps $= t1.1 wph $.\n```",
    ],
)
def test_the_proof_of_an_answer_stands_in_the_statements_block(answer: str) -> None:
    program = assembled(answer)

    assert program.text == BLOCK.replace("PROOF", "t1.1 wph")
    assert [program.text[start:end] for start, end in program.submitted] == ["t1.1 wph"]
    assert set(codes(program)) <= {"no_code_fence"}


def test_white_space_between_steps_is_kept_and_comments_are_not() -> None:
    assert "t1.1\n   wph\nwps $." in assembled("```mm\nt1.1\n   wph $( x $) wps\n```").text


def test_a_place_in_the_proof_is_a_place_in_the_answer() -> None:
    answer = "Here:\n```mm\nt1.1\n  bad\n```"
    program = assembled(answer)
    lines = LineMap(program.segments, program.text, starts_in(program.segments, {"generation": answer}))

    at = program.text.index("bad")
    line, column = program.text.count("\n", 0, at) + 1, at - program.text.rindex("\n", 0, at) - 1
    assert lines.locate(line, column) == ("generation", 4, 2)


def test_conditions_on_new_variables_come_along_and_those_on_stated_ones_do_not() -> None:
    block = WHOLE.replace("$d ph ps $.", "$d ph ps $. $d x y ph ps $. $d ph ( ph $.")
    program = assembled(f"```mm\n{block}\n```")

    extra = [line.strip() for line in program.text.splitlines() if "$d" in line]
    assert extra == ["$d x y $.", "$d x ph $.", "$d x ps $.", "$d y ph $.", "$d y ps $.", "$d ph ps $."]
    assert [program.text[start:end] for start, end in program.submitted] == ["t1.1 wph"]
    stated = "t1 $p |- ( ph -> ps ) $= ? $."
    weaker = assembled("```mm\n${ $d ph ps $. t1 $p |- ( ph -> ps ) $= wph $. $}\n```", stated)
    assert "$d" not in weaker.text


def test_an_answer_about_something_else_is_told() -> None:
    assert codes(assembled("```mm\nother $p |- ps $= wph $.\n```")) == ["name_differs"]
    assert codes(assembled("```mm\nt1 $p |- ph $= t1.1 $.\n```")) == ["statement_differs"]
    assert codes(assembled("```mm\nwph")) == ["unclosed_fence"]
    assert codes(assembled("")) == ["no_code_fence", "no_proof"]
    assert assembled("```mm\n1\n```\n```mm\n2\n```", extract_code_mode="first").text == BLOCK.replace(
        "PROOF", "1"
    )


WRAPPED = [
    "$( @{ @d ph ps $@ t1.1 @e |- ph $@ @( said by @) t1 @p |- ps @= ? @. @} $)",
    "$( ${ $d ph ps $. t1.1 $e |- ph $. t1 $p |- ps $= $} $)",
    "$( why $) ${ $d ph ps $. t1.1 $e |- ph $. $( (Contributed by me.) $) t1 $p |- ps $= ( a b ) ABC $. $}",
]


@pytest.mark.parametrize("statement", WRAPPED)
def test_statements_in_the_forms_of_datasets_are_one(statement: str) -> None:
    assert assembled("wph", statement).text == BLOCK.replace("PROOF", "wph")
    assert METAMATH.challenge("", "", statement) == METAMATH.challenge("", "", STATEMENT)


def test_a_challenge_is_the_block_with_a_gap() -> None:
    challenge = METAMATH.challenge("", "", STATEMENT)

    assert challenge is not None
    assert (challenge.name, challenge.program) == ("t1", BLOCK.replace("\n    PROOF", " ?"))
    assert METAMATH.challenge("", "", " \n") is None
    told = examine(Database(BASE), assembled("wph").text, challenge.program)
    assert told["found"] == "wrong"  # it can be compared, and is what it was


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("", "states no theorem"),
        ("theorem t : True", "'theorem' is followed by 't'"),
        ("t1 $a |- ph $.", "$a, an axiom"),
        ("ax $a |- ph $. t1 $p |- ph $= ? $.", "$a, an axiom"),
        ("$c new $. t1 $p |- ph $= ? $.", "$c, a new constant"),
        ("$v new $. t1 $p |- ph $= ? $.", "$v, a new variable"),
        ("f1 $f wff ph $. t1 $p |- ph $= ? $.", "$f, a type"),
        ("$[ /etc/passwd $] t1 $p |- ph $= ? $.", "$[, an inclusion"),
        ("t1 $p |- ph $= ? $. t2 $p |- ph $= ? $.", "must be the block's end"),
        ("${ t1 $p |- ph $= ? $. t1.1 $e |- ph $. $}", "must be the block's end"),
        ("${ ${ t1 $p |- ph $= ? $. $} $}", "'${' is no label"),
        ("${ t1 $p |- ph $= ? $.", "not closed by $}"),
        ("t1 $p |- ph $= ? $. $}", "must be the block's end"),
        ("t1 $p |- ph $= wph", "not closed by $."),
        ("t1 $p |- ph $.", "stands before $="),
        ("t1 $p $= ? $.", "nothing stands before $="),
        ("$p |- ph $= ? $.", "'$p' is no label"),
        ("t*1 $p |- ph $= ? $.", "is no label"),
        ("t1.1 $e |- ph $.", "ends before its $p"),
        ("t1 $e |- ph $. t1 $p |- ph $= ? $.", "stands twice"),
        ("ph $p |- ph $= ? $.", "label and a symbol"),
        ("t1 $p |- \u03c6 $= ? $.", "U+03C6 is not a character"),
        ("t1 $p |- ph\x00 $= ? $.", "U+0000 is not a character"),
        ("t1 $p |- ph $= wph $= ? $.", "stands in the proof"),
        ("$( t1 $p |- ph $= ? $.", "ends before its $p"),
    ],
)
def test_a_statement_that_is_no_single_theorem_is_told_with_a_remedy(statement: str, problem: str) -> None:
    with pytest.raises(StatementFault) as told:
        assembled("wph", statement)

    assert problem in str(told.value)
    assert told.value.remedy
    assert told.value.field == "formal_statement"


def test_what_a_line_of_metamath_does_not_have_is_told() -> None:
    for field in ("header", "context"):
        with pytest.raises(StatementFault, match=f"no {field}") as told:
            METAMATH.challenge(
                *("import x" if each == field else "" for each in ("header", "context")), STATEMENT
            )
        assert told.value.field == field


def test_a_program_that_was_brought_is_read_as_an_answer_is() -> None:
    (brought,) = METAMATH.assemble(entry(predicted_proof=WHOLE), AssemblyOptions())
    (alone,) = METAMATH.assemble(entry(statement="", predicted_proof=WHOLE), AssemblyOptions())

    assert brought.text == alone.text == BLOCK.replace("PROOF", "t1.1 wph")
    assert brought.segments[0].origin == "predicted_proof"
    (again,) = METAMATH.assemble(entry(predicted_proof=brought.text), AssemblyOptions())
    assert again.text == brought.text
    with pytest.raises(StatementFault) as told:
        METAMATH.assemble(entry(statement="", predicted_proof="wph"), AssemblyOptions())
    assert told.value.field == "predicted_proof"


@pytest.mark.parametrize(
    "proof",
    [
        "$a |- ps",
        "wph $. bad $a |- ps $. t2 $p |- ps $= bad",
        "$[ /etc/passwd $]",
        "\u03c6",
        "\x00",
        "$} wph ${",
        "$",
    ],
)
def test_whatever_an_answer_says_the_verifier_rejects_it(proof: str) -> None:
    program = assembled(f"```mm\n{proof}\n```")
    challenge = METAMATH.challenge("", "", STATEMENT)

    assert challenge is not None
    assert examine(Database(BASE), program.text, challenge.program)["found"] in {"wrong", "mismatch"}


TWO = "${ a $e |- ph $. b $e |- ps $. t1 $p |- ph $= ? $. $}"


@pytest.mark.parametrize(
    ("answer", "proof", "warned"),
    [
        ("${ h2 $e |- ps $. h1 $e |- ph $. t1 $p |- ph $= h1 h2 x $. $}", "a b x", []),
        ("${ b $e |- ph $. a $e |- ps $. t1 $p |- ph $= a b $. $}", "b a", []),
        ("${ a $e |- ph $. b $e |- ps $. t1 $p |- ph $= a b $. $}", "a b", []),
        ("${ h $e |- ph $. t1 $p |- ph $= h $. $}", "a", []),
        ("${ h $e |- ps $. l $p |- ps $= h $. $} h $e |- ph $. t1 $p |- ph $= h $.", "a", []),
        ("${ h $e |- x $. t1 $p |- ph $= h $. $}", "h", ["statement_differs"]),
        ("${ h $e |- ph $. i $e |- ph $. t1 $p |- ph $= h i $. $}", "a i", ["statement_differs"]),
        ("${ h $e |- ph $. i $e |- ps $. t1 $p |- ph $= ( x ) ABC $. $}", "( x ) ABC", []),
        ("${ i $e |- ps $. h $e |- ph $. t1 $p |- ph $= ( x ) AB $. $}", "( x ) AB", ["statement_differs"]),
    ],
)
def test_an_answers_own_hypotheses_are_the_statements_where_they_are_equal(
    answer: str, proof: str, warned: list[str]
) -> None:
    program = assembled(f"```mm\n{answer}\n```", TWO)
    assert program.text.partition("$=")[2].split() == [*proof.split(), "$.", "$}"]
    assert codes(program) == warned


@pytest.mark.parametrize("answer", ["x $. bad $a |- ph $.", "$= $= x $.", "x $. $.", "$. x", "$= x", "x $="])
def test_only_the_frame_of_a_proof_is_left_out(answer: str) -> None:
    assert ("$" in assembled(answer).text.partition("$=")[2].rpartition(" $.\n$}")[0]) == (answer != "$= x")
