"""Mending step, reduction: finds few parts of a whole that still pass a test. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeVar

_Part = TypeVar("_Part")


def reduced(parts: Sequence[_Part], holds: Callable[[Sequence[_Part]], bool]) -> list[_Part]:
    """Return parts, in their order, without which nothing more can be left out one by one.

    It is the algorithm ddmin: it leaves out large pieces first. `holds` is the test, which the whole passes.
    Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input".
    """
    kept, pieces = list(parts), 2
    while kept:
        smaller = next((each for each in _complements(kept, pieces) if holds(each)), None)
        if smaller is not None:
            kept, pieces = smaller, max(pieces - 1, 2)
        elif pieces >= len(kept):
            break
        else:
            pieces = min(2 * pieces, len(kept))
    return kept


def _complements(parts: list[_Part], pieces: int) -> list[list[_Part]]:
    """Return the parts without each of several pieces of them, the last piece first."""
    count = min(pieces, len(parts))
    borders = [number * len(parts) // count for number in range(count + 1)]
    return [parts[:start] + parts[end:] for start, end in reversed(list(pairwise(borders)))]
