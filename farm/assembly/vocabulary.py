"""Assembly step, vocabulary: recognizes prose by its own signs, and lines that begin a command of Lean.

No list says which words begin a tactic or a term, because libraries add their own: text that does not read as
prose may be Lean. Models explain in many languages. English is known by its words, other scripts by their
letters, and other languages with Latin letters by sentences that begin with a capital.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

COMMAND_LINE = re.compile(
    r"^[ \t]*(?:import|open|set_option|universe|variable|namespace|section|noncomputable|theorem|lemma"
    r"|example|def|abbrev|instance|structure|inductive|private|@\[|/-|--)(?!\w)",
    re.MULTILINE,
)
"""A line that begins with a word of a Lean command, or with a comment."""

#: Longer lines are read so far: prose shows itself early.
_LINE = 400
_MARKUP = re.compile(r"^(?:[#*>$\\`•]|\d+[.)] |- |</?[A-Za-z])")
#: Letters beyond ASCII that Lean's names may have (`Lean.isLetterLike`), and those of its tokens λ, Π and Σ.
_LEANS_LETTERS = re.compile("[\u00c0-\u017f\u0391-\u03fb\u1f00-\u1ffe\u2100-\u214f\U0001d49c-\U0001d59f]")
#: Unicode's categories of pictures and of quotation marks that begin or end.
_NO_TOKEN = frozenset({"So", "Pi", "Pf"})
#: A first word as prose has it. Lean's names go on with a dot, an underscore or a digit.
_CAPITAL = re.compile(r"^(?:[A-Z][a-z]+|I|A)(?=[\s,:.!;]|$)")
_CONTRACTION = re.compile(r"^[A-Za-z]+'(?:ll|ve|re|m|s|d|t) ")
_TWO_WORDS = re.compile(r"^(?:My|[A-Z][a-z]{3,}) [a-z]{4,}\b")
#: A sentence of plain words in a language with Latin letters; one word is too long for a hypothesis.
_SENTENCE = re.compile(r"^(?=.*[^\W\d_]{5})[A-Z][^\W\d_]*(?: [^\W\d_]+){2,}[ ,:.!;]*$")
_WORD_OF_A_SENTENCE = re.compile(r"^[A-Za-z]+(?:[,:]\s|[.!:]$)")
_LABEL = re.compile(
    r"^(?:Proof|Solution|Answer|Attempt|Approach|Step|Explanation|Code|Output|Result|Sure|Okay|Ok|Yes|Here)"
    r"(?: \d+)?$"
)
#: Words of prose that Lean and its libraries do not use as tokens or names.
_PROSE = re.compile(
    r"(?<![\w.])(?:the|is|are|was|were|we|you|it|these|and|our|each|can|will|which|there|here|that|an|to|of|be|on)"
    r"(?![\w.'])"
)
_MARKS = re.compile(r"[,:.!;](?:\s|$)")


#: One pattern for all signs at the start of a line: each line of a manifest is looked at.
_SIGN = re.compile(
    "|".join(
        sign.pattern for sign in (_MARKUP, _WORD_OF_A_SENTENCE, _CONTRACTION, _LABEL, _TWO_WORDS, _SENTENCE)
    )
)


def looks_like_prose(text: str, start: int, end: int) -> bool:
    """Return whether the first line of a text that is not blank reads as prose or as markup, not as Lean."""
    line = text[start : min(end, start + _LINE)].lstrip().split("\n", 1)[0].rstrip()
    return bool(line) and _reads_as_prose(line)


@lru_cache(maxsize=256)  # of one answer the same line is asked about more than once
def _reads_as_prose(line: str) -> bool:
    return _begins_no_token(line[0]) or _SIGN.match(line) is not None or _is_english(line)


def _begins_no_token(character: str) -> bool:
    """Return whether no token of Lean begins so: with a picture, a quotation mark, another script."""
    if character.isascii() or character in "«‹":
        return False
    if character.isalpha():
        return _LEANS_LETTERS.match(character) is None
    return unicodedata.category(character) in _NO_TOKEN


def _is_english(line: str) -> bool:
    words = len(_PROSE.findall(line))
    if first := _CAPITAL.match(line):
        return words > 0 or _MARKS.search(line, first.end()) is not None
    return line[:1].isalpha() and (words > 1 or " the " in f" {line}")
