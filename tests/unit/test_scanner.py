"""Lean's tokens, what is no code, and what may stand for a sorry."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from farm.lean_text.scanner import Opaque, TokenKind, opaque_spans, sorry_tokens, tokens
from tests.counted import assert_few, assert_linear


def read(text: str) -> list[tuple[str, str]]:
    return [(token.kind.value, text[token.start : token.end]) for token in tokens(text)]


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("h' x₁ _a foo! n? ℕ α.β", "name name name name name name name"),
        ("«a.b».c", "name"),
        ("λx Πx Σx", "symbol name symbol name symbol name"),
        ("1 1.5 1e3 1.5e-3 0x1F 0b01 1..2", "number number number number number number number symbol number"),
        ("a.1.2", "name symbol number"),
        ("-- to the end\nx", "comment name"),
        ("/- a /- nested -/ b -/ x", "comment name"),
        ("/-- doc -/ x /-! mod -/", "doc_comment name doc_comment"),
        ("/- never closed", "comment"),
        ('"a \\" b" x', "string name"),
        ('"over\ntwo lines\\\n  gap" x', "string name"),
        ('r"\\" x', "string name"),
        ('r#"a"b"# x', "string name"),
        ('bar "x"', "name string"),
        ("'a' '\\n' '\\'' '\\x41' '\\u03b1'", "char char char char char"),
        ("h'a'", "name"),
        ("a := b => c <;> d", "name symbol name symbol name symbol name"),
        ("f (a) [b] {c} ⟨d⟩", "name open name close open name close open name close open name close"),
        ('s!"a{x}b" y', "name string name string name"),
        ('s!"{f "q" {y}}"', "name string name string open name close string"),
        ('s!"a\\{x" y', "name string name"),
        ('throwError "a{x}"', "name string name string"),
        ('s! /- -/ "a{x}"', "name comment string name string"),
        ('s! -- to the end\n"a{x}"', "name comment string name string"),
        ('f "a{x}"', "name string"),
        ("✝ \0 \ud800", "symbol symbol symbol"),
    ],
)
def test_text_is_read_as_lean_reads_it(text: str, kinds: str) -> None:
    assert " ".join(kind for kind, _ in read(text)) == kinds


PIECES = (
    '"',
    "'",
    "/-",
    "-/",
    "--",
    "\n",
    's!"',
    "{",
    "}",
    "r#",
    "«",
    "»",
    "a",
    ".",
    "1",
    "\\",
    "(",
    "⟩",
    " ",
    "\0",
)
TEXTS = st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=30).map("".join)


@given(text=TEXTS)
def test_tokens_come_in_order_and_leave_only_white_space_out(text: str) -> None:
    reached = 0
    for token in tokens(text):
        assert token.start < token.end
        assert text[reached : token.start].strip() == ""
        reached = token.end
    assert text[reached:].strip() == ""


@given(text=TEXTS.filter(lambda text: '!"' not in text))
def test_the_quick_search_finds_the_comments_and_strings_that_the_tokens_show(text: str) -> None:
    hidden = {TokenKind.COMMENT, TokenKind.DOC_COMMENT, TokenKind.STRING, TokenKind.CHAR}
    read = list(tokens(text))
    # An apostrophe that begins no character and ends no name: Lean reads no such text.
    assume(all(text[token.start] != "'" or token.kind is TokenKind.CHAR for token in read))
    shown = [(token.start, token.end) for token in read if token.kind in hidden]
    found = [span for span in opaque_spans(text, 0, len(text)) if text[span[0]] != "«"]
    assert found == shown


#: Offsets of words and of ink at the beginning of a line, as the readers of Lean's commands look at them.
WORDS = re.compile(r"(?:(?<=[\n \t\]/])|^)(?:theorem|/--|@\[)")
AROUND = (
    *PIECES,
    "theorem ",
    "\ntheorem ",
    "\n/-- ",
    "@[",
    "]theorem ",
    "'a'",
    'r##"',
    '"#',
    "«b»",
    "-/theorem ",
)


@given(text=st.lists(st.sampled_from(AROUND), max_size=40).map("".join))
def test_words_are_hidden_where_a_span_of_the_quick_search_covers_them(text: str) -> None:
    spans = list(opaque_spans(text, 0, len(text)))
    opaque = Opaque(text, 0, len(text))
    for word in WORDS.finditer(text):
        at = word.start()
        assert opaque.hides(at) == any(first < at < last for first, last in spans), at


@pytest.mark.parametrize(
    "unit", ['"a" ', 'x"a"', "/-a-/", "--\n", "'a'", "''", "«a» ", 'r#"a"#', "/-/-a-/-/"]
)
def test_short_opaque_spans_are_read_through_at_once(unit: str) -> None:
    def reading(size: int) -> Callable[[], object]:
        text = unit * (size // len(unit))
        return lambda: Opaque(text, 0, len(text)).hides(len(text))

    assert_few(reading, 20_000, each=1, timed=1_000_000, times=3)


@pytest.mark.parametrize(
    ("text", "offsets"),
    [
        ("by simp", ()),
        ("by sorry", (3,)),
        ("by admit", (3,)),
        ("exact sorryAx _ false", (6,)),
        ("exact Lean.sorryAx", (6,)),
        ("exact my_sorryAx", (6,)),
        ("exact «sorryAx»", (6,)),
        ("exact _root_.«sorry»", ()),
        ("-- sorry\n/- sorry -/ x", ()),
        ('f "sorry"', ()),
        ('s!"{sorry}"', (4,)),
        ("sorry' not_sorry sorry.x", ()),
        ("sorry; sorry", (0, 7)),
    ],
)
def test_only_names_in_code_may_stand_for_a_sorry(text: str, offsets: tuple[int, ...]) -> None:
    assert sorry_tokens(text) == offsets


@pytest.mark.parametrize("unit", ["/-", '"', "'", "«", "r#", 's!"{', "(", "sorry ", "1.", "a."])
def test_tokens_take_work_that_grows_with_the_text(unit: str) -> None:
    def reading(size: int) -> Callable[[], object]:
        text = unit * (size // len(unit))
        return lambda: sum(1 for _ in tokens(text))

    assert_linear(reading, 8000, timed=250_000)
