"""Assembly step, above: splits a dataset's header or context from the lead-in of its statement.

A context is all of a file before the theorem. It may end in the middle of the theorem's own lead-in: a doc
comment, attributes, ``open ... in``. The farm moves that part to the statement, because no text may separate
it from the theorem, and Lean cannot compile a text that ends in it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from farm.assembly.commands import OPENERS, SCOPES, SETTINGS, trailing_lead
from farm.assembly.declaration import sorry_at
from farm.assembly.segments import Segment

HEADER, CONTEXT, STATEMENT = "header", "context", "formal_statement"
#: The first words of those lines of a context that a model may repeat before a bare proof.
_REPEATED = (*sorted(SETTINGS | SCOPES | OPENERS), "import", "end", "noncomputable", "public")


class Above(NamedTuple):
    """The text above a statement, and the statement with the lead-in from the end of its context.

    `text` is the beginning of the field named by `origin`. The first `lead` characters of `statement` come
    from the end of that field, and from the offset `moved` on it is its own field. With `ends_line` the farm
    must add a line break to `text`.
    """

    origin: str
    text: str
    statement: str
    lead: int
    moved: int
    ends_line: bool

    @property
    def written(self) -> str:
        """The text in the form that a program has."""
        return f"{self.text}\n" if self.ends_line else self.text

    @property
    def settings(self) -> str:
        """The lines that a model may repeat before a proof; a context's tactics are not among them."""
        return self.text if self.origin == HEADER else _settings(self.text)

    def context_end(self, program: str) -> int:
        """Return the end of the context in a program that begins with it, 0 without a context."""
        is_context = self.origin == CONTEXT and program.startswith(self.written)
        return len(self.written) if is_context else 0

    def first_sorry(self) -> int:
        """Return the offset of a sorry in the text, -1 without one."""
        return _kept_sorry(self.text)

    def placed(self, segment: Segment) -> list[Segment]:
        """Split a segment of the statement with its lead-in into segments of the two fields."""
        if segment.origin != STATEMENT or not self.moved:
            return [segment]
        start, end = segment.origin_start, segment.origin_start + segment.length
        found = []
        if start < self.lead:
            length = min(end, self.lead) - start
            found.append(Segment(segment.start, length, CONTEXT, len(self.text) + start))
        if end > self.moved:
            first = max(start, self.moved)
            found.append(Segment(segment.start + first - start, end - first, STATEMENT, first - self.moved))
        return found

    def place(self, origin: str, offset: int) -> tuple[str, int]:
        """Return the field of an offset in the statement with its lead-in, and the offset in that field."""
        if origin != STATEMENT or not self.moved:
            return origin, offset
        if offset < self.moved:
            return CONTEXT, len(self.text) + min(offset, self.lead)
        return origin, offset - self.moved


def above(header: str, context: str, statement: str) -> Above:
    """Return the header or context above a statement; a line with a context has no header."""
    if not context:
        ends_line = bool(header) and not header.endswith("\n")
        return Above(HEADER, header, statement, 0, 0, ends_line)
    joint = "" if context[-1].isspace() else "\n"
    body, lead = _parted(context)
    if not lead:
        return Above(CONTEXT, body, statement, 0, 0, bool(joint))
    return Above(CONTEXT, body, f"{lead}{joint}{statement}", len(lead), len(lead) + len(joint), False)


@lru_cache(maxsize=256)
def _parted(context: str) -> tuple[str, str]:
    end = trailing_lead(context)
    return context[:end], context[end:]


@lru_cache(maxsize=256)
def _settings(context: str) -> str:
    return "\n".join(line for line in context.split("\n") if line.startswith(_REPEATED))


_kept_sorry = lru_cache(maxsize=256)(sorry_at)
