"""Assembly step, the joint: the model's proof is put after the dataset's statement so that it parses there.

Lean reads columns: the tactics of a block begin in one column, arguments stand to the right of their tactic.
So text is copied line by line as it stands, and what the farm writes itself is white space and the few words
(`by`, `exact`, `fun`, braces) that turn a proof of one form into the form that the statement asks for.
"""

from __future__ import annotations

import re

from farm.declaration import Signature
from farm.scanner import Kind, tokens
from farm.segments import Draft
from farm.vocabulary import begins_tactic

_INK = re.compile(r"\s*+(?=\S)")
_BY = re.compile(r"by(?![\w'.!?])")
_INDENTED = re.compile(r"\n([ \t]*+)(?=[^\s-]|-(?!-))")
_UNINDENTED = re.compile(r"\n(?=[^\s-]|-(?!-))")
_INDENTED_BY_ONE = re.compile(r"\n[ \t](?=[^\s-]|-(?!-))")
_INDENTED_BY_TWO = re.compile(r"\n[ \t]{2}(?=[^\s-]|-(?!-))")
_TERM = re.compile(r"fun\b|λ|⟨|@\w|\.\w")
_COMMAND = re.compile(
    r"\n(?=(?:theorem|lemma|example|def|instance|abbrev|end|namespace|section|open|#\w+|@\[|/--|private|axiom)\b)"
)
_OPENER = re.compile(r"(?:\b(?:by|do|then|else|at)|=>|:=|[,(\[{⟨|+*/=<≤-])[ \t]*(?:--[^\n]*)?\n")
_FOCUS = re.compile(r"·|\.[ \t]|case\b|next\b")


class Joint:
    """Writes a proof, found in ``text[...end]``, after a statement that ends in `ending`.

    `ending` is that of `farm.declaration.Target`; `end` follows the last ink of the code.
    """

    def __init__(self, draft: Draft, text: str, end: int, ending: str) -> None:
        self._draft, self._text, self._end = draft, text, end
        self._ending = ending

    def write_body(self, ends: Signature) -> bool:
        """Write the body of the model's own declaration; return whether there was any."""
        first = self._ink(ends.body)
        if first >= self._end:
            return False
        if ends.style == "equations":
            self._write_between("exact fun\n", self._line_start(ends.body), "")
        elif ends.style == "where":
            self._write_fields(ends.body)
        elif self._ending in ("assign", "none"):
            self._copy(ends.body if self._ending == "assign" else ends.end)
        elif _BY.match(self._text, first, self._end):
            return self._write_tactics(first + 2)
        else:
            self._write_term(first)
        return True

    def write_bare(self, start: int, *, lost: bool) -> bool:
        """Write a proof without its declaration; return whether there was any.

        `lost` says that the text went on where a prompt ended, so that its first line has no indentation.
        """
        first = self._ink(start)
        if self._text.startswith(":=", first, self._end):
            return self.write_body(Signature("assign", first, first + 2))
        if first >= self._end:
            return False
        is_by = _BY.match(self._text, first, self._end) is not None
        if self._ending in ("assign", "none"):
            self._draft.write(" " if self._ending == "assign" else " := ")
            if is_by or not begins_tactic(self._text, self._first_word(first), self._end):
                self._copy(first)
                return True
            self._draft.write("by\n")
        elif is_by:
            return self._write_tactics(first + 2)
        elif _TERM.match(self._text, first, self._end):
            self._write_term(first)
            return True
        self._write_lines(start, first, lost=lost)
        return True

    def _ink(self, start: int) -> int:
        found = _INK.match(self._text, start, self._end)
        return found.end() if found else self._end

    def _first_word(self, start: int) -> int:
        """Return where the first token that is no comment begins."""
        if not self._text.startswith(("--", "/-"), start):
            return start
        code = (t.start for t in tokens(self._text, start, self._end) if t.kind is not Kind.COMMENT)
        return next(code, self._end)

    def _line_start(self, at: int) -> int:
        return self._text.rfind("\n", 0, at) + 1

    def _copy(self, start: int) -> None:
        self._draft.copy("generation", start, self._end)

    def _begin_line(self) -> None:
        if not self._draft.ends_line():
            self._draft.write("\n")

    def _write_tactics(self, after_by: int) -> bool:
        """Write a tactic block that begins after its ``by``, on the same line or on one below."""
        first = self._ink(after_by)
        if first >= self._end:
            return False
        self._begin_line()
        line_end = self._text.find("\n", after_by, self._end)
        if line_end < 0:
            self._draft.write("  ")
            self._copy(first)
        elif first > line_end:
            self._copy(self._line_start(first))
        else:
            self._write_inline(first)
        return True

    def _write_inline(self, first: int) -> None:
        # What goes on below was written with the first tactic's column in mind, unless it is a comment.
        comment = self._text.startswith("--", first)
        self._draft.write("  " if comment else " " * (first - self._line_start(first)))
        self._copy(first)

    def _write_lines(self, start: int, first: int, *, lost: bool) -> None:
        self._begin_line()
        line = max(start, self._line_start(first))
        column = first - line
        shift = self._lost_indent(first, column, lost=lost) if column < 2 else 0
        if shift:
            self._draft.write(" " * shift)
            self._copy(first)
        else:
            self._copy(line)

    def _lost_indent(self, first: int, column: int, *, lost: bool) -> int:
        """Return the column that the first line had before it lost its indentation, 0 when it did not."""
        command = _COMMAND.search(self._text, first, self._end)
        end = command.start() if command else self._end
        least = self._least_indent(first, end)
        if least <= column:
            return 0
        below = _INDENTED.search(self._text, first, end)
        if below is not None and len(below[1]) == least:
            if _FOCUS.match(self._text, first) or _OPENER.search(self._first_line(first)):
                return 0
        return least if (lost and least <= 2) or self._has_tactic_at(least, first, end) else 0

    def _least_indent(self, first: int, end: int) -> int:
        """Return the least indentation of the lines after the first, 0 when there are none; comments aside."""
        if _UNINDENTED.search(self._text, first, end):
            return 0
        if _INDENTED_BY_TWO.search(self._text, first, end) and not _INDENTED_BY_ONE.search(
            self._text, first, end
        ):
            return 2
        return min((len(m[1]) for m in _INDENTED.finditer(self._text, first, end)), default=0)

    def _has_tactic_at(self, indent: int, first: int, end: int) -> bool:
        lines = _INDENTED.finditer(self._text, first, end)
        return any(len(m[1]) == indent and begins_tactic(self._text, m.end(), end) for m in lines)

    def _first_line(self, first: int) -> str:
        return self._text[first : self._text.find("\n", first) + 1]

    def _write_term(self, first: int) -> None:
        line = self._line_start(first)
        if self._text.find("\n", first, self._end) < 0:
            self._write_between("exact ", first, "")
            return
        self._begin_line()
        self._draft.write("exact\n" + " " * max(1, first - line))
        self._copy(first)

    def _write_between(self, before: str, start: int, after: str) -> None:
        """Write ``exact ...`` where tactics are asked for, the same without ``exact`` where a term is."""
        if self._ending in ("assign", "none"):
            self._draft.write((" " if self._ending == "assign" else " := ") + before.removeprefix("exact "))
        else:
            self._begin_line()
            self._draft.write("  " + before)
        self._draft.copy("generation", start, self._end)
        self._draft.write(after)

    def _write_fields(self, start: int) -> None:
        found = _COMMAND.search(self._text, start, self._end)
        whole_end, self._end = self._end, found.start() if found else self._end
        self._write_between("exact {", start, "\n  }")
        if found:
            self._draft.copy("generation", self._end, whole_end)
