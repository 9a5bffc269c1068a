"""Assembly step, vocabulary: recognizes English by its own words, and lines that begin a command of Lean.

No list says which words begin a tactic or a term, because libraries add their own: text that does not read as
English may be Lean.
"""

from __future__ import annotations

import re

COMMAND_LINE = re.compile(
    r"^[ \t]*(?:import|open|set_option|universe|variable|namespace|section|noncomputable|theorem|lemma"
    r"|example|def|abbrev|instance|structure|inductive|private|@\[|/-|--)(?!\w)",
    re.MULTILINE,
)
"""A line that begins with a word of a Lean command, or with a comment."""

#: Longer lines are read so far: prose shows itself early.
_LINE = 400
_MARKDOWN = re.compile(r"^(?:[#*>]|\d+[.)] |- )")
#: A first word as prose has it. Lean's names go on with a dot, an underscore or a digit.
_CAPITAL = re.compile(r"^(?:[A-Z][a-z]+|I|A)(?=[\s,:.!;]|$)")
_CONTRACTION = re.compile(r"^[A-Za-z]+'(?:ll|ve|re|m|s|d|t) ")
_TWO_WORDS = re.compile(r"^(?:My|[A-Z][a-z]{3,}) [a-z]{4,}\b")
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


def looks_like_english(text: str, start: int, end: int) -> bool:
    """Return whether the first line of a text that is not blank reads as English prose, or as Markdown."""
    line = text[start : min(end, start + _LINE)].lstrip().split("\n", 1)[0].rstrip()
    if any(sign.match(line) for sign in (_MARKDOWN, _WORD_OF_A_SENTENCE, _CONTRACTION, _LABEL, _TWO_WORDS)):
        return True
    words = len(_PROSE.findall(line))
    if first := _CAPITAL.match(line):
        return words > 0 or _MARKS.search(line, first.end()) is not None
    return line[:1].isalpha() and (words > 1 or " the " in f" {line}")
