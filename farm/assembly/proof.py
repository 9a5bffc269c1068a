"""Assembly step, proof: writes the model's proof after the dataset's statement so that Lean can parse it.

Lean reads columns: the tactics of a block begin in one column, arguments stand to the right of their tactic.
So the farm copies the lines unchanged. It adds only white space and the few words (`by`, `exact`, `fun`,
braces) that convert the proof into the form that the statement's ending needs.
"""

from __future__ import annotations

import re

from farm.assembly.declaration import Signature
from farm.assembly.segments import Draft
from farm.lean_text.scanner import Opaque, after_comments

INDENT = 2
"""The columns by which the farm indents a proof."""

#: The most lines that are indented one by one: each is a piece of the program of its own.
_MOST_MOVED = 1 << 17
_INK = re.compile(r"\s*+(?=\S)")
_BY = re.compile(r"by(?![\w'.!?])")
_BEGIN = re.compile(r"begin\b")
_GOES_ON = re.compile(r"where\b|\|(?!\|)")
_TERM = re.compile(r"fun\b|λ|⟨|@\w")
_COMMAND = re.compile(
    r"\n(?=(?:theorem|lemma|example|def|instance|abbrev|end|namespace|section|open|private|axiom)\b"
    r"|noncomputable\b|#\w|@\[|/--)"
)
# A line that is not blank, and the blank ones below it.
_LINES = re.compile(r"[^\S\n]*+\S[^\n]*+(?:\n[^\S\n]*+(?=\n|\Z)|(?!))*+\n?")
# Line breaks before code, by the indentation after them; comments may have any indentation.
_INDENTED = re.compile(r"\n([ \t]*+)(?=[^\s-]|-(?!-))")
_BY_NONE = re.compile(r"\n(?=[^\s-]|-(?!-))")
_BY_ONE = re.compile(r"\n[ \t](?=[^\s-]|-(?!-))")
_BY_TWO = re.compile(r"\n[ \t]{2}(?=[^\s-]|-(?!-))")
#: A token at the end of a line, or before its comment, that makes the next line part of the same term.
_OPENER = re.compile(r"(?:\b(?:by|do|then|else|at)|=>|:=|[,(\[{⟨|+=<≤]|(?<!at )\*)[ \t]*+(?:--|\n)")
_FOCUS = re.compile(r"·|\.[ \t]")


class Joint:
    """Writes a proof from ``text[...end]`` after a statement with this `ending`.

    `ending` is that of `farm.assembly.declaration.Target`; `end` is the end of the code without the white
    space after it. "Ink" in this module is a character that is no white space.
    """

    def __init__(self, draft: Draft, text: str, end: int, ending: str) -> None:
        self._draft, self._text, self._end = draft, text, end
        self._wants_term = ending in ("assign", "none")
        self._assign = " :=" if ending == "none" else ""

    def write_body(self, ends: Signature) -> bool:
        """Write the body of the model's own declaration; return whether the body has a proof."""
        first = self._ink(ends.body)
        if first >= self._end:
            return False
        if ends.style == "equations":
            self._begin_term("fun\n")
            self._copy_from_line(first, least=1)
        elif ends.style == "where":
            self._write_fields(first)
        elif self._wants_term:
            self._write_value(ends.body, first)
        elif _BEGIN.match(self._text, first, self._end):
            self._begin_line()
            self._copy_from_line(first, least=0)
        elif _BY.match(self._text, first, self._end):
            return self._write_tactics(first + 2)
        else:
            self._write_exact(first)
        return True

    def write_bare(self, start: int, *, lost: bool, otherwise: bool) -> bool:
        """Write a proof without its declaration; return whether the text has a proof of this form.

        `lost` means that the text continued a prompt, so that its first line may have lost its indentation.
        Only Lean can decide between two readings of some proofs: then this method writes one of them, and
        with `otherwise` the other. After a statement that ends in ``:=`` the readings are tactics and a term,
        or the reverse if the first token begins no tactic; after ``by`` they are tactics with the first
        line's indentation restored, and unchanged tactics.
        """
        first = self._ink(start)
        code = self._first_code(first)
        is_by = _BY.match(self._text, code, self._end) is not None
        is_term = _TERM.match(self._text, code, self._end) is not None
        goes_on = self._assign and _GOES_ON.match(self._text, first, self._end)
        is_plain = not (goes_on or is_by or self._text.startswith(":=", first, self._end))
        line = max(start, self._line_start(first))
        lacking = self._lacking(line, first)
        is_doubtful = not is_term and lacking > (INDENT if lost else 0)
        has_two = is_plain and (self._wants_term or is_doubtful)
        if first >= self._end or (otherwise and not has_two):
            return False
        if self._text.startswith(":=", first, self._end):
            return self.write_body(Signature("assign", first, first + 2))
        if goes_on:
            self._draft.write("\n" if self._text[first] == "|" else " ")
            self._copy(first)
        elif is_by:
            return self._write_by(first, code)
        elif otherwise and not self._wants_term:
            self._write_bare_tactics(line, first, lacking=0)
        elif otherwise and not is_term and self._text.find("\n", code, self._end) >= 0:
            self._write_lines_of_term(line, code)
        elif otherwise != is_term:
            self._write_term(first)
        else:
            if self._wants_term:
                self._draft.write(self._assign + " by\n")
            self._write_bare_tactics(line, first, lacking=lacking)
        return True

    def _write_by(self, first: int, code: int) -> bool:
        """Write a proof that has its ``by`` at `code`, after comments; return whether tactics follow it."""
        if not self._wants_term:
            return self._write_tactics(code + 2)
        self._write_value(first, first, gap=" ")
        return True

    def _write_term(self, first: int) -> None:
        if self._wants_term:
            self._write_value(first, first, gap=" ")
        else:
            self._write_exact(first)

    def _write_lines_of_term(self, line: int, code: int) -> None:
        """Write a term on lines of its own, its first line of code not left of those below.

        Lean would read lines that are indented deeper than a ``let`` or a ``have`` as arguments of its value.
        """
        self._draft.write(self._assign + "\n")
        least = self._least_indent(code, self._end)
        if not least:
            self._copy_indented(line)
            return
        self._draft.copy("generation", line, code)
        if (lacking := least - (code - self._line_start(code))) > 0:
            self._draft.write(" " * lacking)
        self._copy(code)

    def _ink(self, start: int) -> int:
        found = _INK.match(self._text, start, self._end)
        return found.end() if found else self._end

    def _first_code(self, start: int) -> int:
        """Return the offset of the first token that is no comment."""
        return after_comments(self._text, start, self._end, docs=False)

    def _line_start(self, at: int) -> int:
        return self._text.rfind("\n", 0, at) + 1

    def _copy(self, start: int) -> None:
        self._draft.copy("generation", start, self._end)

    def _copy_indented(self, start: int) -> None:
        """Copy lines, indented up to the next command; lines that begin inside a string are unchanged.

        So are all lines of a comment but its last one, which may have code. With more than `_MOST_MOVED`
        other lines the text is copied unchanged.
        """
        command = _COMMAND.search(self._text, start, self._end)
        end = command.end() if command else self._end
        unmoved = self._unmoved(start, end)
        if self._text.count("\n", start, end) - len(unmoved) > _MOST_MOVED:
            self._copy(start)
            return
        begun = start
        for lines in _LINES.finditer(self._text, start, end):
            if lines.start() not in unmoved:
                self._draft.copy("generation", begun, lines.start())
                self._draft.write(" " * INDENT)
                begun = lines.start()
        self._copy(begun)

    def _unmoved(self, start: int, end: int) -> frozenset[int]:
        """Return the starts of the lines that begin inside a string, or inside a comment that goes on."""
        if not any(self._text.find(mark, start, end) >= 0 for mark in ('"', "/-")):
            return frozenset()
        opaque = Opaque(self._text, start, end)
        found, last, above = set[int](), -1, -1  # the last line that begins inside, and where its span begins
        for match in _BREAK.finditer(self._text, start, end):
            at = match.end()
            is_inside = opaque.hides(at)
            if last >= 0 and (self._text[above] in 'r"' or (is_inside and opaque.start == above)):
                found.add(last)
            last, above = (at, opaque.start) if is_inside else (-1, -1)
        if last >= 0 and self._text[above] in 'r"':
            found.add(last)
        return frozenset(found)

    def _copy_from_line(self, first: int, *, least: int) -> None:
        """Copy from the line of the first ink on, indented when that ink stands left of column `least`."""
        line = self._line_start(first)
        if first - line < least:
            self._copy_indented(line)
        else:
            self._copy(line)

    def _begin_line(self) -> None:
        if not self._draft.ends_line():
            self._draft.write("\n")

    def _write_value(self, start: int, first: int, *, gap: str = "") -> None:
        """Write the text after the model's ``:=``, and a gap before it, after the statement's own ``:=``."""
        if self._assign or gap:
            self._draft.write(self._assign + gap)
        block = self._ink(first + 2) if _BY.match(self._text, first, self._end) else self._end
        if block < self._end and self._text[block - 1] == "\n":
            self._draft.copy("generation", start, first + 2)
            self._draft.write("\n")
            self._copy_indented(block)
        else:
            self._copy(start)

    def _write_tactics(self, after_by: int) -> bool:
        """Write a tactic block that begins after its ``by``, on the same line or on one below."""
        first = self._ink(after_by)
        if first >= self._end:
            return False
        self._begin_line()
        line_end = self._text.find("\n", after_by, self._end)
        if 0 <= line_end < first:
            self._copy_from_line(first, least=1)
            return True
        # The lines below fit the column of the first tactic, unless a comment stands there.
        alone = line_end < 0 or self._text.startswith("--", first)
        self._draft.write(" " * (INDENT if alone else first - self._line_start(first)))
        self._copy(first)
        return True

    def _lacking(self, line: int, first: int) -> int:
        """Return the number of columns that the first line has lost, 0 or less if it has lost none."""
        column = first - line
        return self._lost_indent(first, column) - column if column < INDENT else 0

    def _write_bare_tactics(self, line: int, first: int, *, lacking: int) -> None:
        self._begin_line()
        column = first - line
        if lacking > 0:
            self._draft.write(" " * (column + lacking))
            self._copy(first)
        elif not column:
            self._copy_indented(first)
        else:
            self._copy(line)

    def _lost_indent(self, first: int, column: int) -> int:
        """Return the first line's column before it lost its indentation, 0 if it has lost none.

        That is the least indentation of the lines below. If the first line opens a block that may contain all
        lines below, its own column is unknown, and the result is 0.
        """
        command = _COMMAND.search(self._text, first, self._end)
        end = command.start() if command else self._end
        least = self._least_indent(first, end)
        if least <= column:
            return 0
        below = _INDENTED.search(self._text, first, end)
        if below is not None and len(below[1]) == least:
            if _FOCUS.match(self._text, first):
                return least - 2
            line_end = self._text.find("\n", first, end)
            if line_end >= 0 and _OPENER.search(self._text, first, line_end + 1):
                return 0
        return least

    def _least_indent(self, first: int, end: int) -> int:
        """Return the least indentation of the lines of code after the first one, 0 without such lines."""
        if _BY_NONE.search(self._text, first, end):
            return 0
        if _BY_TWO.search(self._text, first, end) and not _BY_ONE.search(self._text, first, end):
            return 2
        return min((len(m[1]) for m in _INDENTED.finditer(self._text, first, end)), default=0)

    def _begin_term(self, word: str) -> None:
        """Begin a term with a word of the farm's own, after ``exact`` if the statement ends in ``by``."""
        if self._wants_term:
            self._draft.write(self._assign + " " + word)
        else:
            self._begin_line()
            self._draft.write(" " * INDENT + "exact " + word)

    def _write_exact(self, first: int) -> None:
        """Write a term as an ``exact`` block; a term of several lines keeps its columns."""
        self._begin_line()
        if self._text.find("\n", first, self._end) < 0:
            self._draft.write(" " * INDENT + "exact ")
            self._copy(first)
            return
        line = self._line_start(first)
        self._draft.write(" exact\n" + " " * (first - line))
        if self._least_indent(first, self._end) <= 1 or first - line <= 1:
            self._copy_indented(first)
        else:
            self._copy(first)

    def _write_fields(self, first: int) -> None:
        command = _COMMAND.search(self._text, first, self._end)
        end = command.start() if command else self._end
        self._begin_term("{\n" + " " * (first - self._line_start(first)))
        self._draft.copy("generation", first, first + len(self._text[first:end].rstrip()))
        self._draft.write("\n" + " " * INDENT + "}")
        self._copy(end)


def begins_block(text: str, start: int, end: int) -> bool:
    """Return whether a text begins with ``by``, after white space."""
    ink = _INK.match(text, start, end)
    return ink is not None and _BY.match(text, ink.end(), end) is not None


_BREAK = re.compile(r"\n")
