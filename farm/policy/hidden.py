"""Finds what the rules know in comments and strings that Lean may read as code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from farm.policy.reading import Found
from farm.policy.rules import RULES, Action
from farm.policy.words import (
    ATTRIBUTES,
    HASHED,
    INITIALIZERS,
    KEYWORDS,
    OPTION_FAMILIES,
    SKIP_KERNEL,
    TRUSTED,
    WORD,
)
from farm.scanner import Kind, Token

#: Characters that no token ends behind which a comment, a string or a character may seem to begin.
_BEFORE = re.compile(r"[\s\w()\[\]{}⟨⟩,;.·«»!?]")
OPAQUE = frozenset({Kind.COMMENT, Kind.DOC_COMMENT, Kind.STRING, Kind.CHAR})
_HIDDEN = frozenset(
    {word for word, rule in KEYWORDS.items() if RULES[rule].action is Action.REJECT}
    | {"unsafe", *TRUSTED, SKIP_KERNEL}
)


def _any_of(words: Iterable[str]) -> str:
    return "|".join(map(re.escape, words))


#: Words that say something only in their place, which in a comment is most often that of plain English.
_HIDDEN_FORM = re.compile(
    rf"\#[ \t]*(?:{_any_of(word for word, rule in HASHED.items() if RULES[rule].action is Action.REJECT)})\b"
    rf"|(?:@\[|\battribute\b)[^\]]{{0,200}}?\b(?:{_any_of(ATTRIBUTES)})\b"
    r"|\+native\b|\bnative\s*:="
    rf"|\b(?:{_any_of(OPTION_FAMILIES)})\.\w"
)


def hidden(text: str, opaque: Sequence[Token]) -> Iterator[Found]:
    """Yield words in comments and strings that Lean may read as code, if the text is of that sort."""
    if not any(is_doubtful(text, token) for token in opaque):
        return
    for token in opaque:
        for found in WORD.finditer(text, token.start, token.end):
            if found.group() in _HIDDEN or INITIALIZERS.fullmatch(found.group()):
                yield found.start(), found.end(), "hidden"
        for found in _HIDDEN_FORM.finditer(text, token.start, token.end):
            yield found.start(), found.end(), "hidden"


def is_doubtful(text: str, token: Token) -> bool:
    """Whether Lean may see something else than a comment, a string or a character that this token is.

    The character before can belong to one token with this (``//-``, ``⁻¹'"'``). Whether the text in a
    string's braces is code depends on what the string is given to, which only Lean knows. And a comment that
    begins ``/-/`` or ``/--/`` is shorter or longer to another eye.
    """
    if token.kind not in OPAQUE:
        return False
    if token.kind is Kind.STRING and "{" in text[token.start : token.end]:
        return True
    if text.startswith(("/-/", "/--/"), token.start):
        return True
    before = text[token.start - 1 : token.start]
    return bool(before) and not _BEFORE.fullmatch(before)
