"""What a fork left in place of its program's goals is anybody's text."""

from __future__ import annotations

import json

import pytest
from farm_workers.lean.forked import MOST_CHARACTERS, MOST_GOALS, MOST_TEXT, read_goals

from farm.judging.report import Goal

PROGRAM = "theorem t : False := by\n  sorry\n"
GOAL = {"kind": "sorry", "goal": "⊢ False", "line": 2, "column": 2}


def left(*lines: object) -> bytes:
    """Return what a fork writes: an empty line, then a goal a line."""
    return "".join(f"{line}\n" for line in ("", *map(json.dumps, lines))).encode()


def test_a_place_for_another_proof_is_told_in_offsets_and_a_wrong_one_is_not() -> None:
    fine = {**GOAL, "hole": [2, 2, 2, 7], "is_term": True, "open": 3, "indent": 4}
    start = PROGRAM.index("sorry")
    (found,) = read_goals(left(fine), PROGRAM) or ()
    assert (found.start, found.end, found.is_term) == (start, start + 5, True)
    assert (found.open_goals, found.indent) == (3, 4)
    wrong: list[object] = [None, "x", [2, 2], [2, 7, 2, 2], [2, 2, 9, 9], [2, 2, 2, 1 << 70], [2, 2, 2, True]]
    for hole in wrong:
        (found,) = read_goals(left({**GOAL, "hole": hole, "open": 1 << 70, "indent": -1}), PROGRAM) or ()
        assert (found.start, found.end, found.open_goals, found.indent) == (None, None, 1, None)


def test_a_file_that_is_not_there_is_no_goals() -> None:
    assert read_goals(None, PROGRAM) is None
    assert read_goals(b"\n", PROGRAM) == ()


def test_a_goal_is_read() -> None:
    assert read_goals(left(GOAL), PROGRAM) == (Goal(kind="sorry", goal="⊢ False", line=2, column=2),)


@pytest.mark.parametrize(
    "other",
    [
        *({"kind": kind} for kind in ("proved", None, [])),
        *({"goal": goal} for goal in (None, 1, ["⊢ p"])),
        *({"line": line} for line in (0, 4, -1, 1 << 80, True, 2.0, "2", None)),
        *({"column": column} for column in (-1, 8, 1 << 80, False, None)),
    ],
)
def test_a_goal_that_cannot_be_is_left_out(other: dict[str, object]) -> None:
    assert read_goals(left(GOAL | other, GOAL), PROGRAM) == read_goals(left(GOAL), PROGRAM)


@pytest.mark.parametrize(
    "line",
    [b"\xff\xfe", b"[" * 100_000, b"1" * 10_000, b'{"kind":', b"null", b"[]", b'"sorry"', b"\0"],
)
def test_a_line_that_is_no_goal_is_left_out(line: bytes) -> None:
    assert read_goals(b"\n" + line + left(GOAL), PROGRAM) == read_goals(left(GOAL), PROGRAM)


def test_what_a_database_cannot_hold_is_replaced() -> None:
    (goal,) = read_goals(left(GOAL | {"goal": "a\0b\ud800c"}), PROGRAM) or ()
    assert goal.goal == "a\ufffdb\ufffdc"


def test_goals_are_bounded_in_number_and_length() -> None:
    many = read_goals(left(*[GOAL] * (2 * MOST_GOALS)), PROGRAM)
    assert many is not None
    assert len(many) == MOST_GOALS
    long = read_goals(left(*[GOAL | {"goal": "x" * (MOST_TEXT + 1)}] * MOST_GOALS), PROGRAM)
    assert long is not None
    assert long[0].goal == "x" * (MOST_TEXT - 1) + "…"
    assert sum(len(each.goal) for each in long) == MOST_CHARACTERS


def test_only_the_first_lines_are_looked_at() -> None:
    assert read_goals(b"\n" * 1_000_000 + left(GOAL), PROGRAM) == ()
