"""Kinds of errors, and what people and models are told about an answer."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.client import Result
from farm.client.explaining import HINTS, MOST_CHARACTERS, FirstError, Mark, cut_out, marked
from farm.client.results import Goal, Message, Position
from farm.judging.error_kinds import ErrorKind, error_kind
from farm.judging.report import Message as LeanMessage
from tests.counted import assert_linear


def said(text: str, kind: str = "") -> LeanMessage:
    return LeanMessage(
        severity="error", kind=kind, text=text, line=1, column=0, end_line=None, end_column=None
    )


# The words of several releases of Lean.
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("unknown identifier 'foo'", "unknown_identifier"),
        ("Unknown constant `Nat.foo`", "unknown_identifier"),
        ("unknown constant 'Nat.foo'", "unknown_identifier"),
        ("type mismatch\n  h\nhas type\n  p : Prop", "type_mismatch"),
        ("Application type mismatch: The argument\n  h", "type_mismatch"),
        ("application type mismatch\n  f h", "type_mismatch"),
        ("failed to synthesize\n  Decidable p", "missing_instance"),
        ("failed to synthesize instance of type class\n  Decidable p", "missing_instance"),
        ("typeclass instance problem is stuck, it is often due to metavariables", "not_inferred"),
        ("don't know how to synthesize implicit argument", "not_inferred"),
        ("unsolved goals\np : Prop\n⊢ p", "unsolved_goals"),
        ("no goals to be proved", "no_goals"),
        ("No goals to be solved", "no_goals"),
        ("tactic 'rfl' failed, the left-hand side", "tactic_failed"),
        ("Tactic `apply` failed: could not unify", "tactic_failed"),
        ("The rfl tactic failed. Possible reasons:", "tactic_failed"),
        ("simp made no progress", "tactic_failed"),
        ("`simp` made no progress", "tactic_failed"),
        ("linarith failed to find a contradiction", "tactic_failed"),
        ("omega could not prove the goal:\na possible counterexample", "tactic_failed"),
        ("did not find instance of the pattern in the target expression", "tactic_failed"),
        ("motive is not type correct:", "tactic_failed"),
        ("function expected\n  h h", "function_expected"),
        ("invalid field 'foo', the environment does not contain 'Nat.foo'", "invalid_field"),
        ("unknown tactic", "unknown_tactic"),
        ("unexpected token 'by'; expected command", "syntax"),
        ("expected token", "syntax"),
        ("unterminated comment", "syntax"),
        ("fail to show termination for\n  f", "termination"),
        ("maximum recursion depth has been reached", "recursion_depth"),
        ("'t' has already been declared", "already_declared"),
        ("(kernel) declaration has metavariables 't'", "kernel"),
        ("(kernel) deterministic timeout", "heartbeats"),
        (
            "(deterministic) timeout at `whnf`, maximum number of heartbeats (200000) has been reached",
            "heartbeats",
        ),
        ("a sentence of somebody's own tactic", "other"),
        ("", "other"),
    ],
)
def test_an_error_is_sorted_by_its_words(text: str, kind: str) -> None:
    assert error_kind(said(text)) == kind


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("lean.unknownIdentifier", "unknown_identifier"),
        ("lean.unknownIdentifier.namedError", "unknown_identifier"),
        ("lean.synthInstanceFailed", "missing_instance"),
        ("runtime.maxRecDepth", "recursion_depth"),
        ("lean.unknownIdentifierOfAnotherKind", "other"),
    ],
)
def test_lean_s_own_name_of_an_error_counts_first(name: str, kind: str) -> None:
    assert error_kind(said("words that nobody knows", name)) == kind


@given(st.text(), st.text())
def test_every_message_has_a_kind(text: str, kind: str) -> None:
    assert error_kind(said(text, kind)) in ErrorKind


def test_every_kind_but_two_has_a_hint() -> None:
    assert set(ErrorKind) - set(HINTS) == {"kernel", "other"}


PROGRAM = "import Core\ntheorem t (p : Prop) : p := by\n  exact h\n  skip\n"


def test_errors_are_marked_below_their_lines() -> None:
    errors = [Mark(line=3, column=8, text="Unknown identifier `h`\nmore"), Mark(line=99, column=0, text="x")]
    assert marked(PROGRAM, errors, first=2).split("\n") == [
        "theorem t (p : Prop) : p := by",
        "  exact h",
        "--      ^ error: Unknown identifier `h`",
        "--   more",
        "  skip",
    ]


def test_an_error_above_the_first_line_is_shown() -> None:
    assert marked(PROGRAM, [Mark(line=1, column=0, text="no such module")], first=2).startswith(
        "import Core\n--^ error: no such module\ntheorem"
    )


@given(st.integers(1, 20_000), st.integers(0, 10**9))
def test_of_a_long_program_the_lines_near_errors_are_shown(line: int, column: int) -> None:
    program = "".join(f"-- line {number}\n" for number in range(20_000))
    shown = marked(program, [Mark(line=line, column=min(column, 100), text="wrong")])
    assert f"-- line {line - 1}\n" in shown
    assert "^ error: wrong" in shown
    assert len(shown) < 1000


@pytest.mark.parametrize("line", ["", "a", "x" * 1_000_000])
def test_an_error_is_shown_however_its_lines_look(line: str) -> None:
    program = f"{line}\n" * (3 if len(line) > 1 else 100_000) + f"{line}here"
    number = program.count("\n") + 1
    shown = marked(program, [Mark(line=number, column=10**6, text="wrong")])
    assert "^ error: wrong" in shown
    assert len(shown) < 2 * MOST_CHARACTERS


def test_marking_takes_work_in_proportion_to_the_program() -> None:
    errors = [Mark(line=each, column=0, text="wrong") for each in range(1, 1000, 50)]
    assert_linear(lambda size: partial(marked, "a\n" * size, errors), 8000, timed=1_000_000)


def test_what_is_marked_is_bounded() -> None:
    errors = [Mark(line=1, column=0, text="x" * 10**6) for _ in range(1000)]
    assert len(marked("a" * 10**6, errors)) <= 2 * MOST_CHARACTERS
    assert len(marked("a\n" * 10**6, [])) <= 2 * MOST_CHARACTERS


REJECTED = Result(
    index=0,
    status="done",
    verdict="rejected",
    reason="error",
    error_kind="unknown_identifier",
    detail="Error at line 3, column 8: Unknown identifier `h`",
    messages=(
        Message(
            severity="error",
            text="Unknown identifier `h`",
            line=1,
            column=8,
            origin="answer",
            program=Position(line=3, column=8),
        ),
    ),
    goals=(Goal(line=1, column=2, kind="error", goal="p : Prop\n⊢ p"),),
)


def test_an_explanation_marks_the_program_and_has_a_hint() -> None:
    told = REJECTED.explain(PROGRAM)
    assert told.startswith("rejected (error): The answer is no proof.")
    assert "  exact h\n--      ^ error: Unknown identifier `h`\n" in told
    assert told.endswith(f"The goal at line 1, column 2:\np : Prop\n⊢ p\nHint: {HINTS['unknown_identifier']}")
    assert "answer:1:8: error: Unknown identifier `h`" in REJECTED.explain()


def test_a_model_is_told_what_to_correct() -> None:
    told = REJECTED.feedback_on(PROGRAM, first=2)
    assert told
    assert told.error_feedback in told.correction_prompt
    assert "import Core" not in told.error_feedback
    for words in (REJECTED.detail, "⊢ p", HINTS["unknown_identifier"], "```lean4"):
        assert words in told.correction_prompt


def test_the_first_error_has_its_text_and_its_goal() -> None:
    late = Message(severity="error", text="b", program=Position(line=3, column=8, end_line=3, end_column=9))
    early = Message(severity="error", text="a", program=Position(line=3, column=2, end_line=3, end_column=9))
    goal = Goal(kind="error", goal="⊢ p", program=Position(line=3, column=2))
    told = replace(REJECTED, messages=(late, early), goals=(goal,)).feedback_on(PROGRAM)
    assert told
    assert told.first_error == FirstError(line=3, column=2, text="exact h", goal="⊢ p")
    nowhere = replace(REJECTED, messages=(Message(severity="error", text="a"),)).feedback_on(PROGRAM)
    assert nowhere
    assert nowhere.first_error is None


@pytest.mark.parametrize(
    ("start", "end", "text"),
    [((1, 1), (1, 2), "b"), ((1, 1), None, "bc"), ((1, 2), (2, 1), "c\nd"), ((9, 1), (9, 2), "")],
)
def test_the_text_between_two_places(start: tuple[int, int], end: tuple[int, int] | None, text: str) -> None:
    assert cut_out("abc\ndef", start, end) == text


@pytest.mark.parametrize("verdict", ["proved", "judge_error", None])
def test_a_model_is_told_nothing_of_what_is_proved_or_not_judged(verdict: str | None) -> None:
    assert Result(index=0, verdict=verdict).feedback_on(PROGRAM) is None  # type: ignore[arg-type]
