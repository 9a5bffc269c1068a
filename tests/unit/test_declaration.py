"""Declarations: where they are, where their signatures end, and what a formal statement asks for."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from farm.assembly.declaration import Declaration, find, find_like, read_signature, read_target, signature

PIECES = (
    *(
        " := ",
        " : ",
        "(",
        ")",
        "{",
        "}",
        "⟨",
        "⟩",
        "let x ",
        "have ",
        "fun x => ",
        "match x with",
        "\n| 0 => ",
        "|a|",
    ),
    *(
        " where ",
        "by",
        "-- c\n",
        "/- := -/",
        '"',
        "\n",
        " ",
        "x",
        "\ntheorem u",
        "\nend",
        "«",
        "»",
        "'",
        "λ y ↦ ",
    ),
)


@given(text=st.lists(st.sampled_from(PIECES), max_size=20).map("".join))
@example(text="}{ := ")
@example(text="}{{} := ")
def test_the_quick_way_to_the_end_of_a_signature_leads_where_the_long_one_does(text: str) -> None:
    declaration = Declaration(0, "theorem", "t", 0)
    assert signature(text, declaration, len(text)) == read_signature(text, declaration, len(text))


@pytest.mark.parametrize(
    ("statement", "name", "ending", "kept"),
    [
        *(
            (
                f"theorem t{above}(h : p{auto}) : q{end}",
                "t",
                ending,
                f"theorem t{above}(h : p{auto}) : q{kept}",
            )
            for above in (
                *(" ", " -- x := by\n  ", " /- := by sorry -/ ", ' (s : s = ":= by (") ', " (c : c = '\"') "),
                *(' (s : s = r#"a := " by ("#) ', ' (s : s = r##"a"# := by ("##) ', " (c : c = '(') "),
            )
            for auto in ("", " := by simp", " := by\n  -- (\n  simp")
            for end, ending, kept in (
                ("", "none", ""),
                (" -- := by", "none", ""),
                (" -- a\n/- := by sorry -/", "none", ""),
                (" := by", "by", " := by"),
                (" := -- by sorry", "assign", " :="),
                (" := by sorry", "by", " := by"),
            )
        ),
        ("theorem t : p := by\n", "t", "by", "theorem t : p := by\n"),
        ("theorem t : p :=", "t", "assign", "theorem t : p :="),
        ("theorem t : p := by sorry", "t", "by", "theorem t : p := by"),
        ("theorem t : p := by\n  -- proof\n  sorry\n", "t", "by", "theorem t : p := by\n  -- proof"),
        ("theorem t : p := sorry", "t", "assign", "theorem t : p :="),
        ("theorem t : p", "t", "none", "theorem t : p"),
        ("theorem t : p := by\n  intro x\n", "t", "open", "theorem t : p := by\n  intro x\n"),
        (
            "def c := 1\n@[simp] theorem X.t : p := by",
            "X.t",
            "by",
            "def c := 1\n@[simp] theorem X.t : p := by",
        ),
        ("def c : Prop :=", "c", "assign", "def c : Prop :="),
        ("example : p := by", "", "by", "example : p := by"),
        ("/-- theorem x -/ lemma t : p := by", "t", "by", "/-- theorem x -/ lemma t : p := by"),
        ("p := by", "", "by", "p := by"),
        ("", "", "open", ""),
    ],
)
def test_a_statement_is_known_by_its_last_declaration(
    statement: str, name: str, ending: str, kept: str
) -> None:
    target = read_target(statement)
    assert (target.name, target.ending, statement[: target.kept]) == (name, ending, kept)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("theorem t : p := x", 0),
        ("theorem t : p := x\ntheorem t : p := y", 19),
        ("private lemma t : p := x", 8),
        ("@[simp] theorem t : p := x", 8),
        ("/-- doc -/ theorem t : p := x", 11),
        ("-- theorem t : p", None),
        ("/- theorem t -/", None),
        ('#eval "\ntheorem t"', None),
        ("theorem t' : p := x", None),
        ("theorem t.u : p := x", None),
        ("mytheorem t : p := x", None),
        ("exact theorem t", None),
        ("def t := 1", None),
    ],
)
def test_a_declaration_is_found_by_its_name_in_code(text: str, found: int | None) -> None:
    declaration = find(text, 0, len(text), read_target("theorem t : p := by"))
    assert (None if declaration is None else declaration.start) == found


def test_the_last_theorem_may_stand_for_the_target() -> None:
    text = "theorem a : p := x\nlemma b : p := x\ndef c := 1"
    declaration = find_like(text, 0, len(text), "theorem")
    assert declaration is not None
    assert declaration.name == "b"
