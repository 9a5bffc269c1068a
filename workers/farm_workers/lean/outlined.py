"""Lean step, outlines: reads where the commands and proofs of a file stand, as untrusted text. Pure.

The file's own code may have written it. Each place is in the text, in order, and inside of its whole.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

from farm.characters import storable

#: The most characters of a name and of a tactic's first word, and members of a list, that are read.
_MOST_NAME, _MOST_WORD, _MOST_MEMBERS = 1000, 64, 100_000

Span = tuple[int, int]


class NoOutline(Exception):
    """A fork left no outline that can be read: has the reason."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One tactic of a block: its first character and its end, the first of its block, and its first word."""

    start: int
    end: int
    block: int
    word: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Command:
    """A command: its first character and its end, its doc comments, and its tokens without those of them.

    `declares`: something in it has a place of its own, as declarations have; `is_note`: it is a comment that
    Lean reads as a command; `failed`: Lean reports an error in it. `needs` are the starts of theorems that
    its declarations mention, if these were asked for.
    """

    start: int
    end: int
    tokens: int
    declares: bool
    is_note: bool
    failed: bool
    docs: tuple[Span, ...]
    needs: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Proof:
    """The proof of a theorem: it begins at `value`, with ``:=`` or an equation, in a command from `start` on.

    `until` is where the next command begins: text behind `end` is white space and comments, or what Lean's
    parser left out after an error. `steps` are in the order of the text, outer ones first; `tokens` counts
    the proof's.
    """

    name: str
    start: int
    value: int
    end: int
    until: int
    tokens: int
    steps: tuple[Step, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Outline:
    """The places of a file, all offsets in code points: its commands below the header, and its proofs."""

    commands: tuple[Command, ...]
    proofs: tuple[Proof, ...]


def read_outline(left: bytes | None, text: str, header_end: int) -> Outline:
    """Return the outline of a text. Raises NoOutline where the fork did not write it, or not as it should."""
    if left is None:
        raise NoOutline("Lean did not read the file to its end")
    try:
        return _Reading(text, header_end).outline(json.loads(left))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise NoOutline("the file's own code wrote into the outline of the file") from error


class _Reading:
    """Converts the bytes of an outline into offsets of a text."""

    def __init__(self, text: str, header_end: int) -> None:
        self._text, self._header_end = text, header_end
        sizes = () if text.isascii() else (len(each.encode("utf-8", "surrogatepass")) for each in text)
        self._bytes = list(accumulate(sizes, initial=0))

    def outline(self, said: Mapping[str, Any]) -> Outline:
        commands = [self._command(each) for each in _members(said["commands"])]
        ends = [self._header_end, *(each.end for each in commands)]
        if any(each.start < end for each, end in zip(commands, ends, strict=False)):
            raise ValueError("commands out of order")
        starts = [each.start for each in commands]
        until = dict(zip(starts, [*starts[1:], len(self._text)], strict=False))
        proofs = tuple(self._proof(each, until) for each in _members(said["proofs"]))
        if any(before.until > after.start for before, after in pairwise(proofs)):
            raise ValueError("proofs out of order")
        return Outline(commands=tuple(commands), proofs=proofs)

    def _command(self, said: Mapping[str, Any]) -> Command:
        start, end = self._span((said["start"], said["end"]))
        docs = tuple(self._span(each) for each in _members(said["docs"]))
        ends = [start, *(last for _, last in docs)]
        if any(first < last for (first, _), last in zip(docs, ends, strict=False)) or ends[-1] > end:
            raise ValueError("a doc comment that is not in its command")
        return Command(
            start=start,
            end=end,
            tokens=_count(said["tokens"]),
            declares=said["declares"] is True,
            is_note=said["is_note"] is True,
            failed=said["failed"] is True,
            docs=docs,
            needs=tuple(map(self._offset, _members(said.get("needs", [])))),
        )

    def _proof(self, said: Mapping[str, Any], until: Mapping[int, int]) -> Proof:
        start, value = self._span((said["start"], said["value"]))
        _, end = self._span((said["value"], said["end"]))
        if end > until[start] or not isinstance(said["name"], str):
            raise ValueError("a proof that is in no command")
        steps = tuple(self._step(each, value, end) for each in _members(said["steps"]))
        name = storable(said["name"][:_MOST_NAME])
        return Proof(
            name=name,
            start=start,
            value=value,
            end=end,
            until=until[start],
            tokens=_count(said["tokens"]),
            steps=steps,
        )

    def _step(self, said: Sequence[Any], value: int, end: int) -> Step:
        start, last, block = *self._span(said[:2]), self._offset(said[2])
        if not value <= block <= start < last <= end or not isinstance(said[3], str):
            raise ValueError("a tactic that is not in its proof")
        return Step(start=start, end=last, block=block, word=storable(said[3][:_MOST_WORD]))

    def _span(self, said: Sequence[int]) -> Span:
        start, end = map(self._offset, said)
        if start >= end:
            raise ValueError("an empty place")
        return start, end

    def _offset(self, byte: int) -> int:
        """Return the offset of a byte. Raises ValueError where no character begins or the text ends."""
        if type(byte) is not int or byte < 0:
            raise ValueError("no number")
        offset = byte if len(self._bytes) == 1 else bisect_left(self._bytes, byte)
        if offset > len(self._text) or (len(self._bytes) > 1 and self._bytes[offset] != byte):
            raise ValueError("a place that is not in the text")
        return offset


def _count(said: object) -> int:
    if type(said) is not int or not 0 <= said < 1 << 31:
        raise ValueError("no number")
    return said


def _members(said: object) -> list[Any]:
    if not isinstance(said, list) or len(said) > _MOST_MEMBERS:
        raise TypeError("no list")
    return said
