"""Assembly step, nemo: extracts code from an answer as NVIDIA NeMo-Skills did in 2025, in two profiles.

Source of every rule: github.com/NVIDIA/NeMo-Skills, ``nemo_skills/code_execution``, as of August and of
November 2025 (Apache-2.0). The functions reproduce its behaviour, oddities included. They work on spans, that
is ``(start, end)`` offsets, of the model's answer, in linear time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from farm.assembly.answer import Span

_FENCE = "```"
_TAGS = ("lean4", "lean3", "lean", "")
_LEADING_FENCE = re.compile(r"\s*```(?:lean4|lean3|lean)?")
_THEOREM_LINE = re.compile(r"\s*(?:theorem|example)\b")


def extract_code(text: str, key: str, *, last: bool) -> Span:
    """Return the span of the code: after the first `key` if the text has it, in the last or first fence.

    Tags are tried in order and match as bare prefixes; the next three backticks close a fence, at any
    position. Without a fence, or if the chosen one is empty, one fence marker is removed at each end.
    """
    start = text.find(key) + len(key) if key and key in text else 0
    answer = _stripped(text, start, len(text))
    for tag in _TAGS:
        block = _block(text, answer, _FENCE + tag, last=last)
        if block is not None:
            code = _stripped(text, *block)
            return code if code[0] < code[1] else _without_markers(text, answer)
    return _without_markers(text, answer)


def _block(text: str, answer: Span, opening: str, *, last: bool) -> Span | None:
    found = None
    position, end = answer
    while (position := text.find(opening, position, end)) >= 0:
        start = position + len(opening)
        close = text.find(_FENCE, start, end)
        if close < 0:
            break
        found = (start, close)
        if not last:
            break
        position = close + len(_FENCE)
    return found


def _without_markers(text: str, answer: Span) -> Span:
    start, end = answer
    if leading := _LEADING_FENCE.match(text, start, end):
        start = leading.end()
    start, end = _stripped(text, start, end)
    if text.endswith(_FENCE, start, end):
        end -= len(_FENCE)
    return _stripped(text, start, end)


def strip_theorem(text: str, code: Span) -> list[Span]:
    """Return the spans of the proof's lines, to be joined by line feeds.

    `code` has no white space at its ends. The statement ends at the first ``:=`` at or after the first line
    that begins with ``theorem`` or ``example``. Without such a line or ``:=``, the code is the proof.
    """
    lines = _lines(text, code)
    for number, (start, end) in enumerate(lines):
        if _THEOREM_LINE.match(text, start, end):
            proof = _after_assign(text, lines[number:])
            return [code] if proof is None else _without_trailing_space(text, _without_by(text, proof))
    return [code]


def _lines(text: str, code: Span) -> list[Span]:
    piece = text[slice(*code)]
    spans, start = [], code[0]
    for line, whole in zip(piece.splitlines(), piece.splitlines(keepends=True), strict=True):
        spans.append((start, start + len(line)))
        start += len(whole)
    return spans


def _after_assign(text: str, lines: Sequence[Span]) -> list[Span] | None:
    for number, (start, end) in enumerate(lines):
        assign = text.find(":=", start, end)
        if assign >= 0:
            rest = _stripped(text, assign + 2, end)
            first = [rest] if rest[0] < rest[1] else []
            return [*first, *lines[number + 1 :]]
    return None


def _without_by(text: str, lines: list[Span]) -> list[Span]:
    if not lines:
        return lines
    start, end = lines[0]
    start = end - len(text[start:end].lstrip())
    if text[start:end] == "by":
        return lines[1:]
    if text.startswith("by ", start, end):
        return [(start + 3, end), *lines[1:]]
    return lines


def _without_trailing_space(text: str, lines: list[Span]) -> list[Span]:
    kept = list(lines)
    while kept:
        start, end = kept.pop()
        ink = start + len(text[start:end].rstrip())
        if start < ink:
            return [*kept, (start, ink)]
    return []


def _stripped(text: str, start: int, end: int) -> Span:
    piece = text[start:end]
    ink = piece.lstrip()
    start = end - len(ink)
    return start, start + len(ink.rstrip())
