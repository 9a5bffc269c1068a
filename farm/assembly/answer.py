"""Assembly step, answer: finds the answer outside a generation's thinking, and the answer's code blocks.

Fences are those of CommonMark 0.31 (https://spec.commonmark.org/0.31.2/#fenced-code-blocks), read more
leniently because models err: a fence with a tag inside an open block begins a new block, a fence at the end
of a line of code closes the block, and a fence may have any indentation. All positions are offsets into the
generation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

Span = tuple[int, int]


class CodeBlock(NamedTuple):
    """One code block: the offset of its fence, the span of its content, its tag, and whether it is closed.

    `tag` is the first word of the info string in lower case, ``""`` if the info string is empty.
    """

    fence: int
    start: int
    end: int
    tag: str
    closed: bool

    @property
    def is_lean(self) -> bool:
        """Whether the tag names Lean, in any version or spelling."""
        return self.tag.startswith("lean")

    @property
    def is_foreign(self) -> bool:
        """Whether the tag names another language, or output, so that the block is no part of a proof."""
        return self.tag in _FOREIGN


_FOREIGN_TAGS = """
    output text txt plaintext plain console bash sh shell python py python3 json yaml latex tex math markdown
    md html xml isabelle coq rocq agda haskell c cpp error errors stdout stderr log diff informal
"""
_FOREIGN = frozenset(_FOREIGN_TAGS.split())
_THINK = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)


def without_thinking(text: str) -> tuple[Span, int | None]:
    """Return the span of the answer outside thinking, and the offset of an unclosed thinking block, or None.

    A closing tag without an opening one ends a thinking block that began in the prompt. Of several pieces
    outside thinking, the answer is the last one with a fence, or else the last one that is not blank.
    """
    if "hink" not in text and ("K" not in text or "HINK" not in text):  # one letter takes a tenth of the time
        return (0, len(text)), None
    pieces: list[Span] = []
    start, opened = 0, None
    for tag in _THINK.finditer(text):
        if tag[1] and opened is None:
            pieces.clear()
        elif not tag[1] and opened is None:
            pieces.append((start, tag.start()))
            opened = tag.start()
        if tag[1]:
            opened, start = None, tag.end()
    if opened is None:
        pieces.append((start, len(text)))
    return _best_piece(text, pieces), opened


def _best_piece(text: str, pieces: list[Span]) -> Span:
    best = None
    for piece in reversed(pieces):
        if _find_run(text, "`", *piece) >= 0 or _find_run(text, "~", *piece) >= 0:
            return piece
        if best is None and not text[slice(*piece)].isspace() and piece[0] < piece[1]:
            best = piece
    return best or pieces[-1]


def after_key(text: str, answer: Span, key: str) -> Span:
    """Return the span of the answer after the first `key`, or its whole span without a key in the text."""
    at = text.find(key, *answer) if key else -1
    return answer if at < 0 else (at + len(key), answer[1])


_MOST_FENCES = 1 << 17
_FENCE = re.compile(r"`{3,}+|~{3,}+")
_BEFORE_FENCE = re.compile(r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?")
# Bounded, because a line of fences whose tags never end would take quadratic time; no tag is that long.
_TAG = re.compile(r"[ \t]*(?:\{[ \t]*)?\.?([^\s`{}]{0,100})\}?[ \t\r]*")
# An opening fence that the model repeats on the same line.
_AGAIN = re.compile(r"(?:(`{3,}+|~{3,}+)[ \t]*(?i:lean)[^\s`~{}]{0,100}[ \t\r]*|(?!))++$", re.MULTILINE)
# The beginnings of code that a model may write behind a tag on the same line.
_CODE = re.compile(r"(?:import|open|theorem|lemma|example|set_option|noncomputable|by|/-|--|@\[)(?!\w)")


class _FenceReader:
    """Reads the fences of an answer in order and collects its code blocks."""

    def __init__(self, text: str, answer: Span) -> None:
        self.blocks: list[CodeBlock] = []
        self.first_mark = -1
        self._text = text
        self._end = answer[1]
        self._line, self._line_end = answer[0], -1
        self._run = ""  # the fence of the open block, "" outside
        self._at = self._start = 0
        self._tag = ""
        self._doubtful = -1  # the first closing fence that stood in a comment
        self._seen = self._depth = 0
        self._spoken_for = answer[0]
        self._comment_start = self._comment_end = -1  # the next ones, as far as they were looked for

    def read(self, start: int, *, tilde: bool) -> None:
        """Collect the blocks from `start` on, of the first `_MOST_FENCES` fences."""
        for at, run in islice(_runs(self._text, start, self._end, tilde=tilde), _MOST_FENCES):
            if at >= self._spoken_for:
                self._meet(at, run, is_first=self._find_line(at))
        if self._run:
            self._close(self._end, closed=False)

    def _find_line(self, at: int) -> bool:
        """Find the line of a fence; return whether the fence is the first on it."""
        if at <= self._line_end:
            return False
        self._line = max(self._line, self._text.rfind("\n", self._line, at) + 1)
        line_end = self._text.find("\n", at, self._end)
        self._line_end = self._end if line_end < 0 else line_end
        return True

    def _meet(self, at: int, run: str, *, is_first: bool) -> None:
        begins_line = is_first and _BEFORE_FENCE.fullmatch(self._text, self._line, at) is not None
        found = _TAG.match(self._text, at + len(run), self._line_end)
        tag, code = (found[1].lower(), found.end()) if found else ("", at + len(run))
        if not self._run:
            self._meet_outside(at, run, tag, code, begins_line=begins_line)
        elif not run.startswith(self._run):
            return
        elif begins_line and tag and self._text.find("`", code, self._line_end) < 0:
            self._meet_tag_inside(at, run, tag, code)
        elif begins_line or run[0] == "`":
            self._meet_close(at, begins_line=begins_line, blank=not tag and code == self._line_end)

    def _meet_outside(self, at: int, run: str, tag: str, code: int, *, begins_line: bool) -> None:
        blank = not tag and code == self._line_end
        if self.first_mark < 0 and (begins_line or blank):
            self.first_mark = at
        if tag.startswith("lean") and (again := _AGAIN.match(self._text, code, self._line_end)):
            self._open(at, min(run, again[1], key=len), tag, self._line_end)
            self._spoken_for = self._line_end
        elif run[0] == "`" and self._text.find("`", code, self._line_end) >= 0:
            self._read_inline(at, run, tag, code)
        elif begins_line or tag.startswith("lean"):
            self._open(at, run, tag, code)

    def _read_inline(self, at: int, run: str, tag: str, code: int) -> None:
        close = self._text.find(run, code, self._line_end)
        if close >= 0:
            self._spoken_for = close + len(run)
            if tag.startswith("lean"):
                self.blocks.append(CodeBlock(at, code, close, tag, True))

    def _open(self, at: int, run: str, tag: str, code: int) -> None:
        self._at, self._run, self._tag = at, run, tag
        has_code = tag.startswith("lean") and _CODE.match(self._text, code, self._line_end)
        self._start = code if has_code else min(self._line_end + 1, self._end)
        self._seen, self._depth, self._doubtful = self._start, 0, -1

    def _meet_tag_inside(self, at: int, run: str, tag: str, code: int) -> None:
        in_comment = self._in_comment(at)
        if not in_comment or (tag.startswith("lean") and not self._is_comment_whole(at)):
            self._close(self._line, closed=False)
            self._open(at, run, tag, code)

    def _meet_close(self, at: int, *, begins_line: bool, blank: bool) -> None:
        end = self._line if begins_line else at
        in_line_comment = not begins_line and self._text.find("--", max(self._line, end - 200), end) >= 0
        if not in_line_comment and not self._in_comment(end):
            self._close(end, closed=True)
        elif self._doubtful < 0 and (begins_line or blank):
            self._doubtful = end

    def _in_comment(self, at: int) -> bool:
        self._depth += self._text.count("/-", self._seen, at) - self._text.count("-/", self._seen, at)
        self._seen = max(self._seen, at)
        return self._depth > 0

    def _is_comment_whole(self, at: int) -> bool:
        """Return whether the comment around an offset ends before another comment begins."""
        if self._comment_end < at:
            self._comment_end = _found(self._text, "-/", at, self._end)
        if self._comment_start < at:
            self._comment_start = _found(self._text, "/-", at, self._end)
        return self._comment_end < self._comment_start

    def _close(self, end: int, *, closed: bool) -> None:
        if not closed and self._doubtful >= 0:
            end, closed = self._doubtful, True
        self.blocks.append(CodeBlock(self._at, self._start, max(self._start, end), self._tag, closed))
        self._run = ""


def _found(text: str, mark: str, start: int, end: int) -> int:
    at = text.find(mark, start, end)
    return end if at < 0 else at


def _runs(text: str, start: int, end: int, *, tilde: bool) -> Iterator[tuple[int, str]]:
    """Yield the offset and the text of every run of three or more backticks or tildes."""
    if tilde:
        yield from ((run.start(), run[0]) for run in _FENCE.finditer(text, start, end))
        return
    at = _find_run(text, "`", start, end)
    while at >= 0:
        after = at + 3
        while text.startswith("```", after, end):
            after += 3
        while text.startswith("`", after, end):
            after += 1
        yield at, text[at:after]
        at = _find_run(text, "`", after, end)


def _find_run(text: str, mark: str, start: int, end: int) -> int:
    """Return the offset of the first three of a mark in a row, -1 without any."""
    first = text.find(mark, start, end)  # a search for one character takes a tenth of the time
    return first if first < 0 else text.find(mark * 3, first, end)


def fenced_blocks(text: str, answer: Span) -> tuple[list[CodeBlock], int]:
    """Return the code blocks of an answer in order, and the offset of its first fence, -1 without one."""
    tilde = _find_run(text, "~", *answer) >= 0
    if not tilde and _find_run(text, "`", *answer) < 0:
        return [], -1
    reader = _FenceReader(text, answer)
    reader.read(answer[0], tilde=tilde)
    return reader.blocks, reader.first_mark
