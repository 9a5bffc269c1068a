"""Lean step, goals: reads the goals that a fork left, as untrusted text. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

from farm.characters import storable
from farm.judging.report import Goal
from farm.lean_text.positions import Positions

#: Limits: the number of goals, the characters of each, and the characters of all together.
MOST_GOALS, MOST_TEXT, MOST_CHARACTERS = 32, 4096, 32_768
_KINDS = ("sorry", "error")


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
    return Goal(kind=kind, goal=storable(text), line=place, column=column)
