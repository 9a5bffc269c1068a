"""What the farm works with, looked at part by part, for `farm doctor`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import entry_points

from farm.errors import FarmError


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One part, whether it works, and what was found or what to do about it."""

    part: str
    ok: bool
    words: str


def examine(parts: dict[str, Callable[[], str]]) -> list[Finding]:
    """Look at each part; a part says what it found, or raises `FarmError` when it is broken.

    Parts that only nodes with Lean have join by the entry-point group ``farm.doctor``.
    """
    joined = {point.name: point.load() for point in entry_points(group="farm.doctor")}
    return [_look(name, part) for name, part in (parts | joined).items()]


def _look(name: str, part: Callable[[], str]) -> Finding:
    try:
        return Finding(part=name, ok=True, words=part())
    except FarmError as error:
        return Finding(part=name, ok=False, words=str(error))
