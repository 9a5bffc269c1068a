"""Assembly step, its scanner: splits Lean 4 text into tokens, comments and strings included.

Lexical rules from Lean's own reader (``Lean/Parser/Basic.lean``, ``Init/Meta.lean``: `isIdFirst`, `isIdRest`,
`isLetterLike`, `isSubScriptAlnum`): comments nest, strings may hold escapes and line breaks, raw strings end
at as many ``#`` as they began with, ``'`` is part of names. One difference: text that Lean would refuse still
gives tokens, and an unclosed token ends with the text. Every function takes linear time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

# In Python 3.11.2, which Debian 12 has, a possessive ``(?:...)*+`` goes on where its last, failing round
# ended. So the last alternative of such a group is ``(?!)``, which fails where the round began.
_LETTER = "A-Za-z_À-ÖØ-öø-ſΑ-ΟΡΤ-Ωα-κμ-ωϊ-ϻἀ-῾℀-⅏\U0001d49c-\U0001d59f"
_REST = _LETTER + "0-9'!?₀-₉ₐ-ₜᵢ-ᵪⱼ"
_PART = rf"(?:[{_LETTER}][{_REST}]*+|«[^«»\n]*+»)"
_STRING = r'"(?:[^"\\]++|\\.|(?!))*+"?'
_CHAR = r"'(?:[^'\\]|\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.))'"
_RAW = r'r(?P<hashes>\#*+)"'

NAME = rf"{_PART}(?:\.{_PART}|(?!))*+"
"""The pattern of a Lean name, with all its dotted parts."""


class TokenKind(StrEnum):
    """The kind of a token. An interpolated string gives its text as strings and its holes as tokens."""

    COMMENT = "comment"
    DOC_COMMENT = "doc_comment"
    STRING = "string"
    CHAR = "char"
    NAME = "name"
    NUMBER = "number"
    OPEN = "open"
    CLOSE = "close"
    SYMBOL = "symbol"


class Token(NamedTuple):
    """One token of Lean text: its kind and its offsets; white space gives none."""

    kind: TokenKind
    start: int
    end: int


_TOKEN = re.compile(
    rf"""\s*+(?:
      (?P<comment>--[^\n]*+)
    | (?P<block>/-)
    | (?P<raw>{_RAW})
    | (?P<name>{NAME})
    | (?P<number>0[xX][0-9a-fA-F_]++|0[bB][01_]++|0[oO][0-7_]++
        |[0-9][0-9_]*+(?:\.[0-9][0-9_]*+|\.(?![.A-Za-z_«]))?(?:[eE][+-]?[0-9]++)?)
    | (?P<string>")
    | (?P<char>{_CHAR})
    | (?P<open>[(\[{{⟨⟪⟦⦃])
    | (?P<close>[)\]}}⟩⟫⟧⦄])
    | (?P<symbol>:=|=>|->|<-|<;>|\.\.\.?|::|.)
    )""",
    re.VERBOSE | re.DOTALL,
)
_COMMENTS = (TokenKind.COMMENT, TokenKind.DOC_COMMENT)
_KINDS = {kind.value: kind for kind in TokenKind}
_STRING_END = re.compile(_STRING, re.DOTALL)
_STRING_TEXT = re.compile(r'(?:[^"\\{]++|\\.|(?!))*+["{]?', re.DOTALL)
_NEST = re.compile(r"/-|-/")
# Constructs that may hold text other than code: the only places where a search needs care. A letter before an
# r or a quote makes it part of a name; looking behind after the first character keeps the search fast.
OPAQUE = rf"""(?s:--[^\n]*+|/-|{_STRING}|«[^«»\n]*+»|r(?<![{_REST}]r)\#*+"|'(?<![{_REST}]'){_CHAR[1:]})"""
"""The pattern of the start of a text that is no code: a comment, a string, a character, a «» name."""
_OPAQUE = re.compile(OPAQUE)
# Text without a comment that nests deeper than `_DEEPEST`, and without an opaque construct that has no end.
_DEEPEST = 4
_NESTED = r"(?!)"
for _ in range(_DEEPEST):
    _INSIDE = rf"(?:[^-/]++|-(?!/)|/(?!-)|{_NESTED}|(?!))*+"
    _NESTED = rf"/-{_INSIDE}-/"
_READ_THROUGH = re.compile(
    rf"""(?:
      [^-/"'«r]++ | (?<=[{_REST}])[r']++ | --[^\n]*+\n | [-/](?!-)
    | "(?:[^"\\]++|\\.|(?!))*+" | «(?:[^«»\n]*+»|(?=[^«»\n]*+[«\n])) | {_CHAR} | '
    | r(?:(?P<hashes>\#*+)"(?:[^"]++|"(?!(?P=hashes))|(?!))*+"(?P=hashes)|(?!\#*+"))
    | /-.{_INSIDE}-/ | (?!)
    )*+""",
    re.VERBOSE | re.DOTALL,
)
# White space and comments, with doc comments and without them, up to the first one that nests deeper than
# `_DEEPEST` or has no end.
_COMMENTED, _PLAINLY_COMMENTED = (
    re.compile(rf"(?:\s++|--[^\n]*+|/-{third}{_INSIDE}-/|(?!))*+", re.DOTALL) for third in (".", "[^!-]")
)
# Before a string, these make it interpolated, beside every name that ends in "!".
_INTERPOLATING_WORDS = """
    throwError throwErrorAt logInfo logInfoAt logWarning logWarningAt logError logErrorAt dbg_trace
"""
_INTERPOLATING = frozenset(_INTERPOLATING_WORDS.split())


def tokens(text: str, start: int = 0, end: int | None = None) -> Iterator[Token]:
    """Yield the tokens of ``text[start:end]`` in order, comments included.

    `start` must be a place where a token may begin. A token that goes on after `end` is cut there.
    """
    stop = len(text) if end is None else end
    holes: list[int] = []  # for each interpolated string around here, how many brackets its hole has open
    interpolating = False
    position = start
    while found := _TOKEN.match(text, position, stop):
        group, first, position = found.lastgroup, *found.span(found.lastgroup or 0)
        if group == "hashes":
            group, first = "raw", found.start("raw")
        if group in ("comment", "block"):  # may stand between a string and its interpolation prefix
            comment = _comment(text, first, position, stop)
            position = comment.end
            yield comment
            continue
        if group == "raw":
            position = _raw_end(text, found, stop)
            yield Token(TokenKind.STRING, first, position)
        elif group == "string" and not interpolating:
            ended = _STRING_END.match(text, first, stop)
            position = ended.end() if ended else stop
            yield Token(TokenKind.STRING, first, position)
        elif group == "string" or (group == "close" and holes and not holes[-1] and text[first] == "}"):
            position, opened = _string_piece(text, first, stop)
            if group == "close":
                holes.pop()
            if opened:
                holes.append(0)
            yield Token(TokenKind.STRING, first, position)
        else:
            if holes and group in ("open", "close"):
                holes[-1] = max(0, holes[-1] + (1 if group == "open" else -1))
            yield Token(_KINDS[group or ""], first, position)
        interpolating = group == "name" and _interpolates(text[first:position])


def code_tokens(text: str, start: int = 0, end: int | None = None) -> Iterator[Token]:
    """Yield the tokens of ``text[start:end]`` that are no comments."""
    return (token for token in tokens(text, start, end) if token.kind not in _COMMENTS)


def words(text: str, start: int = 0, end: int | None = None) -> str:
    """Return the tokens of ``text[start:end]``, comments aside, as one string to compare."""
    return " ".join(text[token.start : token.end] for token in code_tokens(text, start, end))


def after_comments(text: str, start: int, end: int, *, docs: bool) -> int:
    """Return the offset of the first token of ``text[start:end]`` that is no comment, `end` without one.

    With `docs` a doc comment is a comment as well. Much faster than `tokens`.
    """
    pattern = _COMMENTED if docs else _PLAINLY_COMMENTED
    while True:
        found = pattern.match(text, start, end)
        at = found.end() if found else start
        if not text.startswith("/-", at, end) or (not docs and text.startswith(("-", "!"), at + 2, end)):
            return at
        start = _block_end(text, at, end)


def _interpolates(name: str) -> bool:
    return name.endswith("!") or name in _INTERPOLATING


def _string_piece(text: str, quote: int, stop: int) -> tuple[int, bool]:
    """Return where the text of an interpolated string ends, and whether that is at a hole."""
    found = _STRING_TEXT.match(text, quote + 1, stop)
    end = found.end() if found else stop
    return end, end > quote + 1 and text[end - 1] == "{"


def _comment(text: str, start: int, line_end: int, stop: int) -> Token:
    if text[start] == "-":
        return Token(TokenKind.COMMENT, start, line_end)
    doc = text[start + 2 : start + 3] in ("-", "!")
    return Token(TokenKind.DOC_COMMENT if doc else TokenKind.COMMENT, start, _block_end(text, start, stop))


def _block_end(text: str, start: int, stop: int) -> int:
    # Lean takes three characters for the beginning: ``/-/`` opens no second comment, ``/--/`` closes none.
    depth = 1
    for found in _NEST.finditer(text, start + 3, stop):
        at = found.start()
        depth += 1 if text[at] == "/" else -1
        if not depth:
            return at + 2
    return stop


def _raw_end(text: str, opening: re.Match[str], stop: int) -> int:
    closing = '"' + opening["hashes"]
    at = text.find(closing, opening.end(), stop)
    return stop if at < 0 else at + len(closing)


def opaque_spans(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the spans of ``text[start:end]`` that are no code: comments, strings, characters, «» names.

    Much faster than `tokens`, for it looks at nothing else; an interpolated string counts as a whole.
    """
    position = start
    while found := _OPAQUE.search(text, position, end):
        position = _opaque_end(text, found, end)
        yield found.start(), position


def _opaque_end(text: str, found: re.Match[str], stop: int) -> int:
    first, position = found.span()
    if text[first] == "/":
        return _block_end(text, first, stop)
    if text[first] == "r":
        closing = '"' + "#" * (position - first - 2)
        at = text.find(closing, position, stop)
        return stop if at < 0 else at + len(closing)
    return position


class Opaque:
    """The opaque spans of ``text[start:end]`` as `opaque_spans` yields them, for readers of few offsets.

    A regular expression reads through all short constructs between two offsets at once. `start` is where the
    span begins that hides the last offset which `hides` was asked about.
    """

    def __init__(self, text: str, start: int, end: int) -> None:
        self._text, self._end = text, end
        self._reached = self.start = start

    def hides(self, at: int) -> bool:
        """Return whether an opaque span covers the character before an offset and the one at it.

        The offsets of the calls must ascend, and be those of a line's first ink or of a word.
        """
        while self._reached < at:
            found = _READ_THROUGH.match(self._text, self._reached, at)
            self._reached = found.end() if found else at
            if self._reached < at:
                self.start = self._reached
                long = _OPAQUE.match(self._text, self._reached, self._end)
                self._reached = _opaque_end(self._text, long, self._end) if long else self._reached + 1
        return self._reached > at


_SORRY_NAMES = ("sorry", "admit")


def sorry_tokens(text: str) -> tuple[int, ...]:
    """Return the offsets of the names in code that may stand for a sorry.

    These are ``sorry``, ``admit`` and every name that ends in ``sorryAx``; comments and strings do not count,
    the holes of interpolated strings do.
    """
    return tuple(_sorries(text))


def first_sorry(text: str) -> int:
    """Return the first of these offsets, -1 without one."""
    return next(_sorries(text), -1)


def _sorries(text: str) -> Iterator[int]:
    if any(word in text for word in _SORRY_NAMES):
        names = (each for each in tokens(text) if each.kind is TokenKind.NAME)
        yield from (each.start for each in names if _is_sorry(text[each.start : each.end]))


def _is_sorry(name: str) -> bool:
    last = name.rpartition(".")[2].strip("«»")
    return name.strip("«»") in _SORRY_NAMES or last.endswith("sorryAx")
