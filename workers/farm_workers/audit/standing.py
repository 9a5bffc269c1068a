"""Audit step, standings: says how each declaration of a module and each part of a statement stands.

A standing is about one constant, where the findings are about the whole module: beside an open lemma
another may be proved. All standings rest on the audited module; only the places of declarations are the
submission's own claims.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeVar

from farm_workers.audit.names import dotted
from farm_workers.audit.olean import Name

#: The name that permits sorries everywhere.
ANY = "*"
#: The most declarations that are listed, and the most characters of their names.
MOST_LISTED, MOST_CHARACTERS = 500, 100_000
#: The most names beside one declaration, and the longest name that is shown.
MOST_BESIDE, _LONGEST = 20, 200
#: Lean's names for the parts that it makes of a declaration.
_MADE = re.compile(r"_.*|(match|proof|eq)_[0-9]+", re.DOTALL)


class Standing(StrEnum):
    """The verdict on a declaration or a part; the first that applies, in this order."""

    #: A part that the module does not declare, and one with another statement than the challenge's.
    MISSING = "missing"
    OTHER_STATEMENT = "other_statement"
    AXIOM = "axiom"
    #: There is a finding against it, or it rests on something that no proof may rest on.
    REFUSED = "refused"
    #: It contains a sorry; it rests on something that does.
    OPEN = "open"
    RESTS_ON_OPEN = "rests_on_open"
    #: The kernel has not accepted the module, or a term that it trusts was not evaluated.
    UNCHECKED = "unchecked"
    PROVED = "proved"
    #: The same for a declaration that is no theorem.
    DEFINED = "defined"


@dataclass(frozen=True, kw_only=True, slots=True)
class Declared:
    """A declaration of a module; `place` is the module's own claim: line, from 1, and column, from 0."""

    name: Name
    kind: str
    verdict: Standing
    axioms: Sequence[Name] = ()
    rests_on: Sequence[Name] = ()
    place: tuple[int, int] | None = None

    def facts(self) -> dict[str, object]:
        """Return the declaration as a report has it."""
        line, column = self.place or (None, None)
        return {
            "name": _cut(self.name),
            "kind": self.kind,
            "verdict": self.verdict.value,
            "axioms": _few(self.axioms),
            "rests_on": _few(self.rests_on),
            "line": line,
            "column": column,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """A theorem that the challenge leaves open; `by` is the theorem that is judged for it."""

    name: Name
    by: Name
    verdict: Standing
    rests_on: Sequence[Name] = ()

    def facts(self) -> dict[str, object]:
        """Return the part as a report has it."""
        return {
            "name": _cut(self.name),
            "by": None if self.by == self.name else _cut(self.by),
            "verdict": self.verdict.value,
            "rests_on": _few(self.rests_on),
        }


_T = TypeVar("_T", Declared, Part)


@dataclass(frozen=True, kw_only=True, slots=True)
class Standings:
    """The standings of a statement's parts, and of a module's first declarations, if the task wants them."""

    parts: Sequence[Part] | None = None
    declarations: Sequence[Declared] | None = None
    left_off: int = 0

    def unchecked(self) -> Standings:
        """Return the standings of a module that the kernel has not accepted."""
        return replace(
            self,
            parts=None if self.parts is None else [_doubted(each) for each in self.parts],
            declarations=None
            if self.declarations is None
            else [_doubted(each) for each in self.declarations],
        )

    def facts(self) -> dict[str, object]:
        """Return the standings as JSON."""
        return {
            "parts": None if self.parts is None else [each.facts() for each in self.parts[:MOST_LISTED]],
            "declarations": None
            if self.declarations is None
            else [each.facts() for each in self.declarations],
            "declarations_left_off": self.left_off,
        }


def permits(permitted: Collection[str], name: Name) -> bool:
    """Return whether a constant may contain a sorry: it has one of the names, or Lean made it for one."""
    if not permitted or ANY in permitted:
        return bool(permitted)
    if name[:1] == ("_private",) and 0 in name:
        name = name[name.index(0) + 1 :]
    while name:
        if dotted(name) in permitted:
            return True
        if isinstance(name[-1], str) and not _MADE.fullmatch(name[-1]):
            return False
        name = name[:-1]
    return False


def listed(declared: Sequence[Declared]) -> tuple[list[Declared], int]:
    """Return the first declarations in the order of the text, and the number of the others.

    Constants that Lean makes, such as recursors, have no place and are listed only if something is wrong.
    """
    usual = (Standing.PROVED, Standing.DEFINED, Standing.UNCHECKED)
    told = [each for each in declared if each.place is not None or each.verdict not in usual]
    told.sort(key=lambda each: each.place or (1 << 62, 0))
    found, left = list[Declared](), MOST_CHARACTERS
    for each in told[:MOST_LISTED]:
        left -= sum(map(_length, [each.name, *each.axioms, *each.rests_on]))
        if left < 0:
            break
        found.append(each)
    return found, len(told) - len(found)


def _doubted(each: _T) -> _T:
    proved = each.verdict in (Standing.PROVED, Standing.DEFINED)
    return replace(each, verdict=Standing.UNCHECKED) if proved else each


def _few(names: Sequence[Name]) -> list[str]:
    return [_cut(name) for name in names]


def _cut(name: Name) -> str:
    text = dotted(name)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _length(name: Name) -> int:
    return min(_LONGEST, len(dotted(name)))
