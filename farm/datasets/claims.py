"""Claims step: finds the theorems of Lean files that claim to prove a benchmark's problems. Pure.

A pair is only a proposal, made by reading the text: the judge compares the compiled theorem with
the benchmark's own statement.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath

from farm.assembly.commands import commands
from farm.assembly.declaration import read_target
from farm.lean_text.scanner import code_tokens

_THEOREMS = frozenset({"theorem", "lemma"})
#: The most claims to one problem that are judged.
MOST_CLAIMS = 8
#: A common property of a problem and a claim: a name, or the tokens of a signature.
Key = str | tuple[str, ...]
_ODD = re.compile(r"[\W_]+")


class PairedBy(StrEnum):
    """The common property of a claim and a problem, the strongest first."""

    NAME = "name"
    LAST_NAME = "last part of the name"
    SPELLING = "name, spelled otherwise"
    FILE = "name of the file"
    TEXT = "text of the statement"
    TYPE = "type"


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """A theorem of a file, with the text of that: its full name, its line, its end, and its signature.

    `signature` are the tokens between its name and its proof, and `signature_end` is behind the ``:=`` of
    that, 0 where the proof does not begin with one. `is_last`: no theorem of the file is below it.
    """

    file: str
    source: str
    name: str
    line: int
    end: int
    signature: tuple[str, ...]
    signature_end: int
    is_last: bool = False

    @property
    def text(self) -> str:
        """The file's text up to its end."""
        return self.source[: self.end] + "\n"

    @property
    def stated(self) -> str:
        """The text with ``sorry`` for its proof, "" where that does not begin with ``:=``."""
        return f"{self.source[: self.signature_end]} sorry\n" if self.signature_end else ""

    @property
    def place(self) -> str:
        """The file and the line."""
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """A problem of a benchmark: its number, its names, and the tokens of its signature."""

    number: int
    names: tuple[str, ...]
    signature: tuple[str, ...]

    @classmethod
    def of(cls, number: int, name: str, statement: str) -> Asked:
        """Return the problem of a line: it has the line's name and the theorem's."""
        target = read_target(statement)
        names = tuple(dict.fromkeys(each for each in (target.name, name) if each))
        return cls(number=number, names=names, signature=_tokens(target.signature))


@dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    """A claim to a problem, given by its number, and their common property."""

    number: int
    claim: Claim
    by: PairedBy


def claims(file: str, text: str) -> list[Claim]:
    """Return the theorems of a file, in the order of the text."""
    found = [each for each in commands(text, 0, len(text)) if each.word in _THEOREMS and each.name]
    made = list[Claim]()
    for command in found:
        target = read_target(text[command.start : command.end])
        made.append(
            Claim(
                file=file,
                source=text,
                name=command.name,
                line=text.count("\n", 0, command.keyword) + 1,
                end=command.end,
                signature=_tokens(target.signature),
                signature_end=command.start + target.core_end if target.core else 0,
                is_last=command is found[-1],
            )
        )
    return made


def _tokens(text: str) -> tuple[str, ...]:
    return tuple(text[each.start : each.end] for each in code_tokens(text))


def pairs(asked: Sequence[Asked], found: Sequence[Claim]) -> list[Pair]:
    """Return the claims to each problem, by the strongest thing that they have in common.

    A theorem that claims one problem by its name claims no other one by less.
    """
    made, taken = list[Pair](), set[int]()
    for by, keys_of_problem, keys_of_claim in _WAYS:
        known = _by_key((each for each in found if id(each) not in taken), keys_of_claim)
        paired = {pair.number for pair in made}
        new = [
            Pair(number=problem.number, claim=claim, by=by)
            for problem in asked
            if problem.number not in paired
            for claim in _of_keys(known, keys_of_problem(problem))[:MOST_CLAIMS]
        ]
        made += new
        taken |= {id(pair.claim) for pair in new}
    return sorted(made, key=lambda pair: pair.number)


def left(
    asked: Sequence[Asked], found: Sequence[Claim], made: Sequence[Pair]
) -> tuple[list[Asked], list[Claim]]:
    """Return the problems and the claims that are in no pair."""
    numbers, taken = {each.number for each in made}, {id(each.claim) for each in made}
    return (
        [each for each in asked if each.number not in numbers],
        [each for each in found if id(each) not in taken],
    )


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _spelled(name: str) -> str:
    """Return the last part of a name without case and marks; of a path's name the whole."""
    return _ODD.sub("", _last(name)).casefold()


def _of_file(claim: Claim) -> Iterable[Key]:
    return [_spelled(PurePosixPath(claim.file).stem)] if claim.is_last else []


#: The common properties, with the keys of a problem and those of a claim.
_WAYS: tuple[tuple[PairedBy, Callable[[Asked], Iterable[Key]], Callable[[Claim], Iterable[Key]]], ...] = (
    (PairedBy.NAME, lambda it: it.names, lambda it: [it.name]),
    (PairedBy.LAST_NAME, lambda it: map(_last, it.names), lambda it: [_last(it.name)]),
    (PairedBy.SPELLING, lambda it: map(_spelled, it.names), lambda it: [_spelled(it.name)]),
    (PairedBy.FILE, lambda it: map(_spelled, it.names), _of_file),
    (PairedBy.TEXT, lambda it: filter(None, [it.signature]), lambda it: filter(None, [it.signature])),
)


def _by_key(found: Iterable[Claim], keys: Callable[[Claim], Iterable[Key]]) -> Mapping[Key, list[Claim]]:
    known: dict[Key, list[Claim]] = {}
    for each in found:
        for key in keys(each):
            known.setdefault(key, []).append(each)
    return known


def _of_keys(known: Mapping[Key, list[Claim]], keys: Iterable[Key]) -> list[Claim]:
    return list({id(claim): claim for key in keys for claim in known.get(key, [])}.values())
