"""Metamath step, the gate: rejects malformed blocks, and renames the labels of a block for ``metamath``.

The farm assembles programs of this form; a program of any other form is refused here. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

#: The most characters of a proof, five times as many as the longest of set.mm has.
LONGEST_PROOF = 256 << 10
LONGEST_BLOCK = LONGEST_PROOF + (256 << 10)

_FOREIGN = re.compile(r"[^\t\n\f\r -~]")
_TOKEN = re.compile(r"\S+")
_KEYWORDS = frozenset({"${", "$}", "$d", "$e", "$p", "$=", "$."})
_LABEL = re.compile(r"[A-Za-z0-9._-]+")


class NotPassed(Exception):
    """A text does not pass; `offset` is the place in it."""

    def __init__(self, what: str, offset: int) -> None:
        super().__init__(what)
        self.offset = offset


def require(program: str, submitted: Iterable[tuple[int, int]]) -> None:
    """Raise Refused for a program with a character or keyword that no block may have."""
    if (foreign := _FOREIGN.search(program)) is not None:
        raise NotPassed(f"U+{ord(foreign[0]):04X} is not a character of Metamath", foreign.start())
    spans = list(submitted)
    if len(program) > LONGEST_BLOCK or sum(end - start for start, end in spans) > LONGEST_PROOF:
        raise NotPassed(f"the proof is longer than {LONGEST_PROOF >> 10} KiB", spans[0][0] if spans else 0)
    for start, end in spans:
        for token in _TOKEN.finditer(program, start, end):
            if "$" in token[0]:
                raise NotPassed(f"{_shown(token[0])} may not stand in a proof", token.start())
    for token in _TOKEN.finditer(program):
        if "$" in token[0] and token[0] not in _KEYWORDS:
            raise NotPassed(f"{_shown(token[0])} may not stand in a block", token.start())


def _shown(token: str) -> str:
    return repr(token if len(token) <= 60 else f"{token[:59]}…")


def renamed(program: str, label: str) -> str:
    """Return a block with new labels: `label` for the theorem, and `label.N` for its hypotheses.

    Blocks that are read together must not share labels. A proof names its hypotheses, never its theorem: a
    theorem's name in a proof stays and names no assertion. Raises ValueError unless the text is one block
    with one theorem.
    """
    tokens = program.split()
    words = {"$e", "$p"}
    places = [number for number in range(1, len(tokens)) if tokens[number] in words]
    theorems = [number for number in places if tokens[number] == "$p"]
    if len(theorems) != 1 or any("$" in token and token not in _KEYWORDS for token in tokens):
        raise ValueError("not one block with one theorem")
    names = {tokens[at - 1]: f"{label}.{number}" for number, at in enumerate(places) if tokens[at] == "$e"}
    for at in places:
        if _LABEL.fullmatch(tokens[at - 1]) is None:
            raise ValueError("a label is not one")
        tokens[at - 1] = label if tokens[at] == "$p" else names[tokens[at - 1]]
    begin, end = tokens.index("$=", theorems[0]), tokens.index("$.", tokens.index("$=", theorems[0]))
    tokens[begin + 1 : end] = _proof(tokens[begin + 1 : end], names)
    return "\n".join(_lines(tokens))


def _proof(tokens: list[str], names: dict[str, str]) -> list[str]:
    """Return a proof with its hypotheses renamed: letters of a compressed one are no labels."""
    close = tokens.index(")") if tokens[:1] == ["("] and ")" in tokens else len(tokens)
    return [names.get(token, token) for token in tokens[:close]] + tokens[close:]


def _lines(tokens: Sequence[str], each: int = 16) -> list[str]:
    return [" ".join(tokens[at : at + each]) for at in range(0, len(tokens), each)]
