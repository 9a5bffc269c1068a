"""Datasets step, files of Metamath: reads the block of a theorem without its proof."""

from __future__ import annotations

import re
from collections.abc import Mapping

from farm.assembly.faults import Unstated

_TOKEN = re.compile(r"\S+")
_WRAPPED = {
    "@{": "${",
    "@}": "$}",
    "@(": "$(",
    "@)": "$)",
    "@=": "$=",
    "@.": "$.",
    "$@": "$.",
    "@e": "$e",
    "@p": "$p",
    "@d": "$d",
}
#: Behind these a statement of a wrapped block begins.
_ENDS = frozenset({"@{", "@.", "$@", "@)"})


def block(text: str, name: str) -> tuple[str, Mapping[str, object]]:
    """Return the block that states a theorem, with ``?`` for its proof, and further fields of its line.

    The block has no comments. A theorem with the label of one of its own hypotheses gets the file's name for
    a label, and its line the field `label_mended`: labels have no meaning, and Metamath accepts none twice.
    Raises Unstated.
    """
    bare = _without_comments(_unwrapped(text)).strip()
    words = [found.group() for found in _TOKEN.finditer(bare)]
    if words.count("$p") != 1 or words.count("$=") != 1:
        raise Unstated("holds no block with exactly one $p and its $=")
    at = words.index("$p")
    label = words[at - 1] if at else ""
    if not label or label.startswith("$"):
        raise Unstated("its $p has no label")
    labels = [words[i - 1] for i, word in enumerate(words) if word == "$e" and i]
    stated = _with_open_proof(bare)
    if label not in labels:
        return stated, {}
    place = re.search(rf"(?<!\S){re.escape(label)}(?=\s+\$p(?!\S))", stated)
    if place is None or name in labels:
        raise Unstated(f"the label {label} is given twice")
    return stated[: place.start()] + name + stated[place.end() :], {"label_mended": True}


def _unwrapped(text: str) -> str:
    words = text.split()
    if "@p" not in words:
        return text
    inside = text.strip()
    if words[0] == "$(" and words[-1] == "$)":
        inside = inside[2:-2]
    return _TOKEN.sub(lambda found: _WRAPPED.get(found.group(), found.group()), _without_notes(inside))


def _without_notes(text: str) -> str:
    """Return a wrapped block without the notes in it that stand between ``$@`` and ``$@``.

    The same word ends a statement; where no statement has begun, it opens a note.
    """
    kept: list[str] = []
    reached, has_begun, in_note = 0, False, False
    for found in _TOKEN.finditer(text):
        word = found.group()
        if in_note:
            in_note = word != "$@"
            reached = found.end()
        elif word == "$@" and not has_begun:
            kept.append(text[reached : found.start()])
            in_note = True
        else:
            has_begun = word not in _ENDS
    if in_note:
        raise Unstated("a note is never closed")
    return "".join([*kept, text[reached:]])


def _without_comments(text: str) -> str:
    """Return the text without comments and the lines that only they stood on."""
    kept: list[str] = []
    is_comment = False
    reached = 0
    for found in _TOKEN.finditer(text):
        if found.group() == "$(" and not is_comment:
            kept.append(text[reached : found.start()])
            is_comment = True
        elif found.group() == "$)" and is_comment:
            reached, is_comment = found.end(), False
    if is_comment:
        raise Unstated("a comment is never closed")
    kept.append(text[reached:])
    return "\n".join(line.rstrip() for line in "".join(kept).split("\n") if line.strip())


def _with_open_proof(text: str) -> str:
    begins = re.search(r"(?<!\S)\$=(?!\S)", text)
    ends = None if begins is None else re.compile(r"(?<!\S)\$\.(?!\S)").search(text, begins.end())
    if begins is None or ends is None:
        raise Unstated("its proof has no $.")
    return f"{text[: begins.end()]} ? {text[ends.start() :]}"
