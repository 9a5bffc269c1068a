"""Other texts of a file: edits, suggestions, reductions and outlines, without Lean."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from farm_workers.lean.edits import Edit, edited
from farm_workers.lean.outlined import NoOutline, Outline, Proof, Step, read_outline
from farm_workers.mending.reduction import reduced
from farm_workers.mending.repairing import Hole, attempts
from farm_workers.mending.texts import Draft, joined, without_step
from farm_workers.mending.tidying import suggested
from hypothesis import given
from hypothesis import strategies as st

from farm.judging.report import Goal

HEAD = "prelude\n"
TEXT = f"{HEAD}theorem ü : True := by\n  skip\n  trivial\n-- end\ntheorem v : True := .intro\n"


def byte(words: str) -> int:
    return len(TEXT[: TEXT.index(words)].encode())


def outline(**other: object) -> dict[str, object]:
    first, value, second = byte("theorem ü"), byte(":= by"), byte("theorem v")
    by, skip, trivial, behind = byte("by\n"), byte("skip"), byte("trivial"), byte("\n-- end")
    steps = [[skip, skip + 4, skip, "skip"], [trivial, behind, skip, "trivial"]]
    proof = {"name": "ü", "start": first, "value": value, "end": behind, "tokens": 4, "steps": steps}
    assert by < skip
    commands = [command(first, behind), command(second, len(TEXT.encode()) - 1)]
    return {"commands": commands, "proofs": [proof | other]}


def command(start: int, end: int, **other: object) -> dict[str, object]:
    told = {"declares": True, "is_note": False, "failed": False, "tokens": 9, "docs": []}
    return {"start": start, "end": end, **told, **other}


def read(said: object) -> Outline:
    return read_outline(json.dumps(said).encode(), TEXT, len(HEAD))


def test_an_outline_has_the_offsets_of_a_text() -> None:
    found = read(outline())
    (proof,) = found.proofs
    assert [TEXT[each.start : each.end][:9] for each in found.commands] == ["theorem ü", "theorem v"]
    assert TEXT[proof.value : proof.end] == ":= by\n  skip\n  trivial"
    assert TEXT[proof.end : proof.until] == "\n-- end\n"
    assert [TEXT[each.start : each.end] for each in proof.steps] == ["skip", "trivial"]


LIES: dict[str, object] = {
    "nothing": None,
    "no object": [],
    "no places": {},
    "a place behind the text": outline(end=10_000),
    "a place before the header's end": {"commands": [command(0, 30)], "proofs": []},
    "a place inside of a character": outline(value=byte("ü") + 1),
    "a negative place": outline(value=-1),
    "a place that is no number": outline(value="9"),
    "a truth as a place": outline(value=True),
    "a proof beyond its command": outline(end=byte("theorem v") + 3),
    "a proof in no command": outline(start=byte(":= by")),
    "a tactic outside of its proof": outline(
        steps=[[byte("theorem v"), byte("theorem v") + 4, byte("skip"), "skip"]]
    ),
    "a tactic before its block": outline(steps=[[byte("skip"), byte("trivial"), byte("trivial"), "skip"]]),
    "a tactic without a word": outline(steps=[[byte("skip"), byte("skip") + 4, byte("skip")]]),
    "a word that is no text": outline(steps=[[byte("skip"), byte("skip") + 4, byte("skip"), 7]]),
    "a tactic of two numbers": outline(steps=[[byte("skip"), byte("trivial")]]),
    "a name that is no text": outline(name=7),
    "commands in another order": {"commands": outline()["commands"][::-1], "proofs": []},  # type: ignore[index]
    "too many commands": {"commands": [command(8, 9)] * 100_001, "proofs": []},
    "a command without tokens": {"commands": [command(8, 9, tokens=None)], "proofs": []},
    "a doc comment elsewhere": {"commands": [command(8, 20, docs=[[15, 21]])], "proofs": []},
    "doc comments in another order": {"commands": [command(8, 20, docs=[[15, 16], [9, 10]])], "proofs": []},
}


@pytest.mark.parametrize("said", LIES.values(), ids=LIES)
def test_an_outline_with_a_lie_is_none(said: object) -> None:
    with pytest.raises(NoOutline):
        read(said)


@pytest.mark.parametrize("left", [None, b"", b"{", b"\xff", b"[" * 100_000])
def test_what_is_no_json_is_no_outline(left: bytes | None) -> None:
    with pytest.raises(NoOutline):
        read_outline(left, TEXT, len(HEAD))


MESSAGES = {
    "Try this: exact h": ["exact h"],
    "Try this:\n  [apply] exact h": ["exact h"],
    "Try this:\n  [apply] simp only [a,\n    b]\n": ["simp only [a,\nb]"],
    "Try these:\n  [apply] exact h\n  [apply] exact k": ["exact h", "exact k"],
    "Try these:\n• exact h\n• exact k": ["exact h", "exact k"],
    "Try this: ": [],
    "I say: Try this: exact h": [],
    "unsolved goals": [],
    "Try this: " + "x" * 20_000: [],
}


@pytest.mark.parametrize(("message", "texts"), MESSAGES.items())
def test_suggestions_are_read_in_each_form_of_lean(message: str, texts: list[str]) -> None:
    assert suggested(message) == texts


def steps_of(text: str, *blocks: Sequence[str]) -> list[Step]:
    found = []
    for block in blocks:
        first = text.index(block[0])
        found += [
            Step(start=text.index(it), end=text.index(it) + len(it), block=first, word=it) for it in block
        ]
    return found


DROPS = [
    ("by\n  one\n  -- why\n  two\n", "one", "by\n  -- why\n  two\n"),
    ("by\n  one\n  two", "two", "by\n  one\n"),
    ("by one; two\n", "one", "by two\n"),
    ("by one; two\n", "two", "by one\n"),
    ("by\n  one;\n  two\n", "two", "by\n  one\n"),
    ("by one\n   two -- so\n", "one", "by two -- so\n"),
]


@pytest.mark.parametrize(("text", "tactic", "left"), DROPS)
def test_a_tactic_is_dropped_with_its_separator(text: str, tactic: str, left: str) -> None:
    steps = steps_of(text, ["one", "two"])
    edit = without_step(text, steps, next(each for each in steps if text[each.start :].startswith(tactic)))
    assert edit is not None
    assert edited(text, [edit]) == left


def test_the_only_tactic_of_a_block_stays() -> None:
    (step,) = steps = steps_of("by one", ["one"])
    assert without_step("by one", steps, step) is None


def test_an_edit_takes_the_place_of_those_inside_of_it_and_overlaps_none() -> None:
    inner = [Edit(start=2, end=3), Edit(start=8, end=9)]
    assert joined(inner, Edit(start=1, end=4)) == [Edit(start=8, end=9), Edit(start=1, end=4)]
    assert joined([Edit(start=1, end=4)], Edit(start=3, end=6)) is None
    assert joined([Edit(start=1, end=4)], Edit(start=2, end=3)) is None


@given(st.sets(st.integers(0, 30), max_size=5), st.integers(0, 31))
def test_a_reduction_finds_exactly_what_is_needed(needed: set[int], size: int) -> None:
    parts = range(max(size, max(needed, default=0) + 1))
    assert reduced(parts, lambda some: needed <= set(some)) == sorted(needed)


def test_text_that_leans_parser_left_out_goes_with_its_proof() -> None:
    text = "theorem a : p := by x) y\n\ntheorem b : q := z\n"
    places = [(0, 14, 21, text.index("theorem b")), (text.index("theorem b"), 40, 44, len(text))]
    proofs = tuple(
        Proof(name=name, start=start, value=value, end=end, until=until, tokens=0, steps=())
        for name, (start, value, end, until) in zip("ab", places, strict=True)
    )
    draft = Draft(text, Outline(commands=(), proofs=proofs))
    assert draft.value(0) == ":= by x) y\n\n"
    assert draft.with_values({0: ":= sorry"}) == "theorem a : p := sorry\n\ntheorem b : q := z\n"


def test_the_place_of_goals_has_to_be_in_the_proof() -> None:
    goal = Goal(kind="error", goal="⊢ p", line=1, column=0, start=10, end=12)
    assert Hole.of(goal, 8, 4) == Hole(start=2, end=4, goals=1, indent=0)
    assert [Hole.of(goal, *each) for each in ((11, 4), (8, 3))] == [None, None]


def test_tactics_are_tried_in_the_hole_first_and_a_sorry_last() -> None:
    hole = Hole(start=8, end=8, goals=2, indent=2)
    found = list(attempts(":= by  x", hole, ["rfl", "simp"], sorry=True))
    assert [edited(":= by  x", [each.edit]) for each in found] == [
        ":= by  x\n  all_goals rfl",
        ":= by  x\n  all_goals simp",
        ":= by  x\n  all_goals first | rfl | simp",
        ":= by rfl",
        ":= by simp",
        ":= by  x\n  sorry; sorry",
        ":= sorry",
    ]
