"""What stands above a statement: where a context ends, and where each piece of it is in the line's fields."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.assembly.above import above
from farm.assembly.challenge import Challenge, challenge_to
from farm.assembly.program import PROFILES, AssemblyOptions, Program, assemble
from farm.assembly.segments import LineMap, Location, starts_in
from farm.manifest.entry import Entry

CONTEXT = (
    "import A\n\nnamespace N\n\n/-- One. -/\ndef one : Nat := 1\n\ntheorem a : one = 1 := by\n  simp\n\n"
)
STATEMENT = "theorem t : one = one"
LEADS = {
    "nothing": "",
    "a doc comment": "/-- Doc\nof two lines. -/\n",
    "attributes": "@[simp, norm_cast]\n",
    "attributes on its line": "@[simp] ",
    "a modifier": "private ",
    "an open in": "open Nat in\n",
    "several": "open Nat in\nset_option maxRecDepth 9 in\n/-- Doc. -/\n@[simp] protected ",
    "a doc comment without a line end": "/-- Doc. -/",
}
NO_LEADS = {
    "a comment": "-- note\n",
    "a doc comment of the module": "/-! Module. -/\n",
    "a comment in the words of one": "/- /-- Doc. -/ -/\n",
    "what is opened for good": "open Nat\n",
    "a declaration": "/-- Doc. -/\n@[simp] theorem b : one = 1 := rfl\n",
}


def entry(context: str, generation: str, statement: str = STATEMENT, predicted_proof: str = "") -> Entry:
    return Entry(
        path="m.jsonl",
        line=1,
        name="t",
        header="",
        context=context,
        formal_statement=statement,
        generation=generation,
        predicted_proof=predicted_proof,
    )


def made(context: str, generation: str, statement: str = STATEMENT, **options: object) -> Program:
    return assemble(entry(context, generation, statement), AssemblyOptions(**options))[0]  # type: ignore[arg-type]


def restating(programs: Sequence[Program]) -> Program:
    """Return the first program that has the dataset's statement: the model's own text may come before it."""
    return programs[:2][-1]


def challenge(context: str, statement: str = STATEMENT) -> Challenge:
    found = challenge_to("", statement, context)
    assert found is not None
    return found


@pytest.mark.parametrize("lead", LEADS.values(), ids=LEADS)
def test_a_lead_in_at_the_end_of_a_context_is_the_statements(lead: str) -> None:
    context = CONTEXT + lead
    joint = "\n" if lead.endswith("/") else ""
    program = made(context, "```lean\n:= rfl\n```")
    assert program.text == f"{context}{joint}{STATEMENT} := rfl"
    assert program.text[: program.context_end] == CONTEXT
    found = challenge(context)
    assert (found.program, found.name) == (f"{context}{joint}{STATEMENT}\n  := sorry\n", "t")
    assert found.context_end == program.context_end


@pytest.mark.parametrize("end", NO_LEADS.values(), ids=NO_LEADS)
def test_what_is_no_lead_in_stays_with_the_context(end: str) -> None:
    program = made(CONTEXT + end, ":= rfl")
    assert program.text[: program.context_end] == CONTEXT + end
    assert program.text[program.context_end :].startswith(STATEMENT)


@pytest.mark.parametrize("lead", LEADS.values(), ids=LEADS)
def test_a_helper_goes_between_the_context_and_the_lead_in(lead: str) -> None:
    helper = "theorem help : one = 1 := rfl"
    line = entry(CONTEXT + lead, f"```lean\n{helper}\n\n{STATEMENT} := help\n```")
    program = restating(assemble(line, AssemblyOptions()))
    assert program.text.startswith(CONTEXT + helper)
    assert program.text.rindex(lead.strip()) > program.text.index(helper)


@pytest.mark.parametrize("end", ["\n", "", " ", "\n  "])
def test_a_context_that_ends_in_white_space_is_joined_as_it_stands(end: str) -> None:
    context = CONTEXT.rstrip() + end
    gap = "" if end else "\n"
    program = made(context, ":= rfl")
    assert program.text == f"{context}{gap}{STATEMENT} := rfl"
    assert program.context_end == challenge(context).context_end == len(context + gap)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("lead", LEADS.values(), ids=LEADS)
def test_every_piece_is_a_copy_of_its_field(lead: str, profile: str) -> None:
    line = entry(CONTEXT + lead, "**FINAL ANSWER**\n```lean\ntheorem t : one = one := by\n  rfl\n```")
    program = restating(assemble(line, AssemblyOptions(profile=profile)))
    for start, length, origin, origin_start in program.segments:
        field = getattr(line, origin)
        assert program.text[start : start + length] == field[origin_start : origin_start + length]
    said = "".join(
        program.text[s.start : s.start + s.length] for s in program.segments if s.origin == "context"
    )
    assert said == line.context
    assert all(program.text[start:end] not in line.context for start, end in program.submitted)


def test_a_place_in_a_lead_in_is_told_in_the_context() -> None:
    context = CONTEXT + "/-- Doc. -/\n@[nonsense] "
    line = entry(context, ":= rfl")
    program, *_ = assemble(line, AssemblyOptions())
    fields = {"context": context, "formal_statement": STATEMENT, "generation": ":= rfl"}
    places = LineMap(program.segments, program.text, starts_in(program.segments, fields))
    at = context.count("\n") + 1
    assert places.locate(at, 2) == Location("context", at, 2)
    assert places.locate(at, 20) == Location("formal_statement", 1, 8)


@pytest.mark.parametrize(
    ("proof", "text"),
    [
        (":= by\n  rfl", " := by\n  rfl"),
        ("by rfl", " := by rfl"),
        ("where\n  left := a", " where\n  left := a"),
        ("| 0 => rfl\n| n + 1 => rfl", "\n| 0 => rfl\n| n + 1 => rfl"),
        (":= aux\nwhere aux := rfl", " := aux\nwhere aux := rfl"),
    ],
)
def test_a_proof_is_joined_to_a_statement_without_its_mark(proof: str, text: str) -> None:
    assert made(CONTEXT, f"```lean\n{proof}\n```").text == f"{CONTEXT}{STATEMENT}{text}"


def test_a_repeated_context_is_not_repeated() -> None:
    whole = f"```lean\n{CONTEXT}{STATEMENT} := rfl\n\nend N\n```"
    assert made(CONTEXT, whole).text == f"{CONTEXT}{STATEMENT} := rfl\n\nend N"


def test_a_tactic_that_the_context_has_too_stays_in_a_proof() -> None:
    program = made(CONTEXT, "```lean\n  simp\n  rfl\n```", f"{STATEMENT} := by\n")
    assert program.text == f"{CONTEXT}{STATEMENT} := by\n  simp\n  rfl"


def test_settings_of_the_context_before_a_bare_proof_are_left_out() -> None:
    program = made(CONTEXT, "```lean\nimport A\nnamespace N\n:= rfl\n```")
    assert program.text == f"{CONTEXT}{STATEMENT} := rfl"


def test_a_sorry_in_a_context_is_told_of_there() -> None:
    context = f"{CONTEXT}theorem b : one = 2 := sorry\n\n/-- Doc. -/\n"
    warning = made(context, ":= rfl").warnings[0]
    assert (warning.code, warning.origin, warning.line) == ("sorry_in_context", "context", 11)


def test_a_program_that_somebody_brings_has_its_context_only_where_it_begins_with_it() -> None:
    for text, end in ((f"{CONTEXT}{STATEMENT} := rfl", len(CONTEXT)), (f"{STATEMENT} := rfl", 0)):
        (program,) = assemble(entry(CONTEXT, "", predicted_proof=text), AssemblyOptions())
        assert (program.text, program.context_end) == (text, end)


def test_equal_texts_with_and_without_a_context_are_two_challenges() -> None:
    below, plain = challenge(CONTEXT), challenge_to(CONTEXT, STATEMENT)
    assert plain is not None
    assert (below.program, below.name) == (plain.program, plain.name)
    assert below.sha256 != plain.sha256


_PIECES = st.sampled_from(
    [CONTEXT, "/-- ", "-/", "@[simp] ", "open A in\n", "-- c\n", "\n", "x", '"', "private ", " "]
)


@given(st.lists(_PIECES, min_size=1, max_size=8).map("".join))
def test_program_and_challenge_begin_alike_whatever_the_context_is(context: str) -> None:
    dataset = above("", context, STATEMENT)
    program, found = made(context, ":= rfl"), challenge(context)
    assert program.text[: program.context_end] == found.program[: found.context_end] == dataset.written
    assert context.startswith(dataset.text)
    assert program.text.startswith(context)
    assert found.program.startswith(context)
