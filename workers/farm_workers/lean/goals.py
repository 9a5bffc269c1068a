"""Lean step, goals: reads the goals that a fork left, as untrusted text. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import TypeVar

from farm.characters import storable
from farm.judging.report import Goal
from farm.lean_text.positions import Positions

#: Limits: the number of goals, the characters of each, and the characters of all together.
MOST_GOALS, MOST_TEXT, MOST_CHARACTERS = 32, 4096, 32_768
#: The most goals at one place.
MOST_TOGETHER = 16
_KINDS = ("sorry", "error")
#: The widest column of a block.
_WIDEST = 1000

_Usual = TypeVar("_Usual")


def read_goals(left: bytes | None, program: str) -> tuple[Goal, ...] | None:
    """Return the goals of a program that a fork left as JSON lines; None if it left none."""
    return None if left is None else tuple(_bounded(left, program))


def _bounded(left: bytes, program: str) -> Iterator[Goal]:
    lines, room = Positions(program), MOST_CHARACTERS
    for line in left.split(b"\n", MOST_GOALS + 1)[: MOST_GOALS + 1]:  # the first one is empty
        goal = _goal(line, lines)
        if goal is None or room <= 0:
            continue
        text = goal.goal[: min(MOST_TEXT, room)]
        room -= len(text)
        yield replace(goal, goal=text if len(text) == len(goal.goal) else text[:-1] + "…")


def _goal(line: bytes, lines: Positions) -> Goal | None:
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):  # its writer was killed, or another process wrote it
        return None
    if not isinstance(said, dict):
        return None
    kind, text, place, column = (said.get(name) for name in ("kind", "goal", "line", "column"))
    if kind not in _KINDS or not isinstance(text, str) or type(place) is not int or type(column) is not int:
        return None
    if lines.offset(place, column) is None:
        return None
    start, end = _hole(said.get("hole"), lines)
    return Goal(
        kind=kind,
        goal=storable(text),
        line=place,
        column=column,
        start=start,
        end=end,
        is_term=said.get("is_term") is True,
        open_goals=_within(said.get("open"), 1, MOST_TOGETHER, 1),
        indent=_within(said.get("indent"), 0, _WIDEST, None),
    )


def _hole(said: object, lines: Positions) -> tuple[int, int] | tuple[None, None]:
    """Return the offsets of a hole's start and end, None for what is no place in the program."""
    if not isinstance(said, list) or len(said) != 4 or not all(type(each) is int for each in said):
        return None, None
    start, end = lines.offset(*said[:2]), lines.offset(*said[2:])
    return (None, None) if start is None or end is None or end < start else (start, end)


def _within(said: object, least: int, most: int, usual: _Usual) -> int | _Usual:
    return said if type(said) is int and least <= said <= most else usual
