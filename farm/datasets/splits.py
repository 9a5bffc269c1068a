"""Extraction step, splits: divides theorems by the day on which they were written. Pure.

The levels are those of the paper on miniCTX (Hu, Zhu, Welleck, 2024): a model may know a new theorem's file,
or its project alone, or nothing of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from farm.datasets.history import Change

TRAIN, TEST = "train", "test"
#: The largest thing that is as new as a theorem of the test split: its repository, its file, or itself.
PROJECT, CONTEXT, THEOREM = "project", "context", "theorem"


@dataclass(frozen=True, kw_only=True, slots=True)
class Side:
    """A theorem's side of a split: `TRAIN` or `TEST`, and its level in the latter, None in the former."""

    split: str
    level: str | None = None


def side(day: int, *, created: Change, file: Change | None, began: int) -> Side:
    """Return the side of a theorem in a split at a time.

    The commits of the theorem and of its file, and the time of the repository's first one, decide. Times are
    seconds since 1970.
    """
    if created.seconds < day:
        return Side(split=TRAIN)
    if began >= day:
        return Side(split=TEST, level=PROJECT)
    is_new = file is not None and file.seconds >= day
    return Side(split=TEST, level=CONTEXT if is_new else THEOREM)
