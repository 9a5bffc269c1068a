"""Verdict step, holes: the open places of a judged program, as lines and items have them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple, TypedDict

from farm.assembly.segments import Segment
from farm.judging.report import Goal
from farm.lean_text.positions import line_and_column

_SORRY = "sorry"
_DATASET = frozenset({"header", "context", "formal_statement"})


class HoleFields(TypedDict):
    """An open place of a program: the fields of `hole` in a line or item; `goal` is for a model to read."""

    number: int
    of_holes: int
    start: int
    end: int
    is_term: bool
    line: int
    column: int
    goal: str
    program: str


def holes_of(
    program: str, goals: Sequence[Goal], segments: Sequence[Segment], first: int = 0
) -> list[HoleFields]:
    """Return the holes of a program: its own sorries, not those of the dataset's text.

    The text before `first` is the dataset's too. A place inside another is no hole.
    """
    stated = [(each.start, each.start + each.length) for each in segments if each.origin in _DATASET]
    places, behind = list[tuple[int, int, list[Goal]]](), first
    for (start, end), same in groupby(sorted(filter(_is_placed, goals), key=_order), key=_span):
        is_stated = any(since <= start < until for since, until in stated)
        if behind <= start < end <= len(program) and not is_stated:
            places.append((start, end, list(same)))
            behind = end
    found = list[HoleFields]()
    for number, (start, end, several) in enumerate(places, 1):
        line, column = line_and_column(program, start)
        hole = HoleFields(
            number=number,
            of_holes=len(places),
            start=start,
            end=end,
            is_term=several[0].is_term,
            line=line,
            column=column,
            goal="\n\n".join(each.goal for each in several),
            program=program,
        )
        found.append(hole)
    return found


class Cut(NamedTuple):
    """A program that was cut at an error."""

    program: str
    error: Goal


def cut(program: str, goals: Sequence[Goal]) -> Cut | None:
    """Return a program cut at its first error: a sorry for each goal stands in place of what fails.

    None where Lean names no place for it. The program may have a later error.
    """
    for each in goals:
        if each.kind == "error" and each.start is not None and each.end is not None:
            words = "; ".join([_SORRY] * each.open_goals)
            if each.start == each.end:
                words = "\n" + " " * (each.indent or 0) + words
            return Cut(program[: each.start] + words + program[each.end :], each)
    return None


def _is_placed(goal: Goal) -> bool:
    return goal.kind == _SORRY and goal.start is not None and goal.end is not None


def _span(goal: Goal) -> tuple[int, int]:
    return goal.start or 0, goal.end or 0


def _order(goal: Goal) -> tuple[int, int]:
    start, end = _span(goal)
    return start, -end
