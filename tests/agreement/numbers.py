"""Statements on numbers, lists and booleans with the tactics of a proof, or of an attempt that fails."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

_LISTED = Path(__file__).with_name("numbers.txt")
#: Begins a tactic, begins its further lines, and stands for the end of a line in a statement.
_BEGINS, _GOES_ON, _LINE_END = "| ", "  ", "⏎"

Listed = tuple[str, tuple[str, ...]]


def numbers() -> Iterator[Listed]:
    """Yield statements without their proofs, and the tactics of each."""
    text = _LISTED.read_text(encoding="utf-8").partition("\n\n")[2]  # behind what it says of itself
    for block in text.strip().split("\n\n"):
        statement, *lines = block.split("\n")
        yield statement.replace(_LINE_END, "\n"), tuple(_tactics(lines))
    yield from _computed()


def _tactics(lines: list[str]) -> Iterator[str]:
    for tactic in "\n".join(lines).removeprefix(_BEGINS).split(f"\n{_BEGINS}"):
        yield tactic.replace(f"\n{_GOES_ON}", "\n")


def _computed() -> Iterator[Listed]:
    """Yield small computations, one in six of them wrong."""
    for a, b in ((2, 3), (17, 5), (40, 2)):
        for sign, value in (("+", a + b), ("*", a * b), ("/", a // b), ("%", a % b), ("-", a - b), ("+", a)):
            for tactic in ("rfl", "decide", "simp", "exact rfl", "first | omega | decide"):
                yield f"theorem t : {a} {sign} {b} = {value}", (tactic,)
