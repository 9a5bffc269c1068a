"""A line's program as the page shows it: every character once, each from its place, and nothing too long."""

from __future__ import annotations

import json
from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from farm.assembly.segments import Segment
from farm.characters import encoded
from farm.service.page.program import (
    MOST_CHARACTERS,
    MOST_COLUMNS,
    MOST_LINES,
    MOST_NOTES,
    MOST_SAID,
    Row,
    program,
    spans,
)
from farm.store.records import Judged, StoredVerdict
from tests.counted import calls

PROGRAM = "import Core\n\nopen Nat in\ntheorem t : True := by trivial\n  done"
SEGMENTS = (
    Segment(0, 12, "header", 0),
    Segment(13, 12, "generation", 5),
    Segment(25, 22, "formal_statement", 0),
    Segment(48, 14, "generation", 40),
)


def verdict(**fields: object) -> StoredVerdict:
    empty = dict.fromkeys(StoredVerdict._fields, "")
    kept = {"messages_json": "[]", "hits_json": "[]", "trusts": []}
    kept |= dict.fromkeys(("goals_json", "audit_json", "facts_json"))
    return StoredVerdict(**{**empty, **kept, **fields})


def job(text: str, segments: tuple[Segment, ...] = (), found: StoredVerdict | None = None) -> Judged:
    empty = dict.fromkeys(Judged._fields, "")
    return Judged(
        **{**empty, "source": encoded(text), "segments_json": json.dumps(segments), "verdict": found}
    )


def message(text: str = "wrong", line: object = 1, **more: object) -> dict[str, object]:
    said = {"severity": "error", "kind": "", "text": text, "line": line, "column": 0}
    return said | {"end_line": None, "end_column": None} | more


def hit(text: str, line: int) -> dict[str, object]:
    return {
        "rule": "axiom",
        "action": "report",
        "start": 0,
        "end": 1,
        "line": line,
        "column": 0,
        "text": text,
    }


def text_of(row: Row) -> str:
    return "".join(piece.text for piece in row.pieces)


def test_each_line_says_where_it_came_from() -> None:
    shown = program(job(PROGRAM, SEGMENTS))
    assert [(row.number, row.label, row.origin) for row in shown.rows] == [
        (1, "header", "header"),
        (2, "", "header"),
        (3, "preamble", "preamble"),
        (4, "statement + answer", "statement"),
        (5, "answer", "answer"),
    ]
    assert shown.origins == ("header", "preamble", "statement", "answer", "farm")
    assert [row.is_mixed for row in shown.rows] == [False, False, False, True, False]


def test_what_no_segment_names_the_farm_wrote() -> None:
    (row,) = program(job("whole")).rows
    assert (row.label, row.origin) == ("farm", "farm")


def test_a_program_that_was_brought_is_the_answer() -> None:
    (row,) = program(job("whole", (Segment(0, 5, "predicted_proof", 0),))).rows
    assert row.label == "answer"


@given(
    st.text("ab\n\r\U0001d54f", max_size=60),
    st.lists(st.tuples(st.integers(0, 70), st.integers(0, 30), st.sampled_from(["header", "x"])), max_size=6),
)
def test_every_character_is_shown_once_whatever_the_segments_say(
    text: str, cuts: list[tuple[int, int, str]]
) -> None:
    segments = tuple(Segment(start, length, origin, 0) for start, length, origin in sorted(cuts))
    assert [text_of(row) for row in program(job(text, segments)).rows] == text.split("\n")
    found = list(spans(len(text), segments))
    assert [each.start for each in found] == [0, *(each.end for each in found[:-1])][: len(found)]
    assert not found or found[-1].end == len(text)


def test_notes_stand_beside_their_lines_and_others_elsewhere() -> None:
    found = verdict(
        messages_json=json.dumps([message("one"), message("far", 99), message("none", 0)]),
        hits_json=json.dumps([hit("axiom", 2)]),
        goals_json=json.dumps([{"kind": "sorry", "goal": "⊢ p", "line": 1, "column": 2}]),
    )
    shown = program(job("a\nb", found=found))
    assert [(note.kind, note.text) for note in shown.rows[0].notes] == [("error", "one"), ("goal", "⊢ p")]
    assert [(note.kind, note.title) for note in shown.rows[1].notes] == [("policy", "policy: axiom")]
    assert [note.text for note in shown.elsewhere] == ["far", "none"]


def test_a_place_that_is_none_is_elsewhere() -> None:
    odd = [message("x", each) for each in (0, -1, 2, 2**70)]
    shown = program(job("a", found=verdict(messages_json=json.dumps(odd))))
    assert len(shown.elsewhere) + len(shown.rows[0].notes) == len(odd)


def test_an_unknown_severity_is_information() -> None:
    odd = message(severity="</style>")
    (note,) = program(job("a", found=verdict(messages_json=json.dumps([odd])))).rows[0].notes
    assert note.kind == "information"


def test_a_megabyte_of_messages_is_cut_and_counted() -> None:
    many = [message("x" * 10_000) for _ in range(MOST_NOTES + 1)]
    shown = program(job("a", found=verdict(messages_json=json.dumps(many))))
    notes = shown.rows[0].notes
    assert sum(len(note.text) for note in notes) <= MOST_SAID
    assert all(len(note.text) + note.left_out == 10_000 for note in notes)
    assert len(notes) + shown.notes_left_out == len(many)


def test_a_program_of_16_mib_is_cut_before_it_is_read() -> None:
    for text in ("x" * (16 << 20), "\n" * (1 << 20), ("y" * 3000 + "\n") * 5000):
        whole = job(text, (Segment(0, len(text), "predicted_proof", 0),))
        shown = program(whole)
        assert calls(partial(program, whole)).total() < 300_000
        assert len(shown.rows) <= MOST_LINES
        assert max(len(text_of(row)) for row in shown.rows) <= MOST_COLUMNS
        assert sum(len(text_of(row)) for row in shown.rows) <= MOST_CHARACTERS + MOST_COLUMNS
        assert shown.rows[0].left_out == max(0, len(text.split("\n")[0]) - MOST_COLUMNS)
        assert len(shown.rows) + shown.lines_left_out == text.count("\n") + 1
