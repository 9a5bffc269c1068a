"""Manifest step, holes: the open place in a program that a line's answer fills. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from farm.characters import encoded
from farm.task import Fills

_REMEDY = "take the hole as `farm holes` or a result wrote it"
_MANY = 1 << 20


class HoleFault(ValueError):
    """The fault of a hole: its field, the problem, and the remedy."""

    def __init__(self, field: str, problem: str, remedy: str = _REMEDY) -> None:
        super().__init__(f"{field}: {problem}; {remedy}")
        self.field, self.problem, self.remedy = field, problem, remedy


@dataclass(frozen=True, kw_only=True, slots=True)
class Hole:
    """A place in a whole program, from the offset `start` to `end`, that an answer is put into.

    `is_term`: a term is missing there, or else tactics. It is the hole `number` of the program's `of_holes`.
    """

    program: str
    start: int
    end: int
    is_term: bool = False
    number: int = 1
    of_holes: int = 1

    @classmethod
    def of(cls, said: object) -> Hole:
        """Return the hole that an object of JSON says; other fields of it are ignored. Raises HoleFault."""
        if not isinstance(said, Mapping):
            raise HoleFault("hole", "not an object")
        program = said.get("program")
        if not isinstance(program, str) or not program:
            raise HoleFault("hole.program", "not the text of a program")
        start, end = (_whole(said, name, 0, len(program)) for name in ("start", "end"))
        if start >= end:
            raise HoleFault("hole.end", f"{end} is not behind the start, {start}")
        if not isinstance(is_term := said.get("is_term", False), bool):
            raise HoleFault("hole.is_term", "neither true nor false")
        _require_same(program, said.get("of"))
        of_holes = _whole(said, "of_holes", 1, _MANY) if "of_holes" in said else 1
        number = _whole(said, "number", 1, of_holes) if "number" in said else 1
        return cls(program=program, start=start, end=end, is_term=is_term, number=number, of_holes=of_holes)

    @property
    def fills(self) -> Fills:
        """The place of its answer in a program."""
        tail = len(self.program) - self.end
        return Fills(start=self.start, tail=tail, text=self.program[self.start : self.end])

    @property
    def is_last(self) -> bool:
        """Whether the program has no other hole, so that an answer may prove the whole."""
        return self.of_holes == 1


def _whole(said: Mapping[str, Any], name: str, least: int, most: int) -> int:
    value = said.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool) or value % 1:
        raise HoleFault(f"hole.{name}", "not a whole number")
    if not least <= value <= most:
        raise HoleFault(f"hole.{name}", f"{value:.0f} is not between {least} and {most}")
    return int(value)


def _require_same(program: str, of: object) -> None:
    told = of.get("program_sha256") if isinstance(of, Mapping) else None
    if told is not None and told != hashlib.sha256(encoded(program)).hexdigest():
        raise HoleFault("hole.program", "not the program that hole.of.program_sha256 names")
