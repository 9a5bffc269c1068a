"""Assembly step, profile `farm`: the model's answer, read as Lean, goes after header and statement."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from farm.assembly import preamble
from farm.assembly.answer import after_key, without_thinking
from farm.assembly.choice import choose
from farm.assembly.declaration import Declaration, Signature, differ, find, find_like, read_target, signature
from farm.assembly.proof import Joint
from farm.assembly.segments import Draft
from farm.assembly.vocabulary import COMMAND_LINE
from farm.scanner import Kind, sorry_tokens, tokens

_LEAN_3 = re.compile(r"\s*begin\b")


@lru_cache(maxsize=256)
def _sorry_in(header: str) -> int:
    return next(iter(sorry_tokens(header)), -1)


class LeanAnswer:
    """One line on its way through profile `farm`: where the answer's code is, and what to say about it.

    `warnings` holds ``(code, origin, offset)``.
    """

    def __init__(self, sources: Mapping[str, str], key: str, *, last: bool) -> None:
        self.warnings: list[tuple[str, str, int]] = []
        self._text = sources["generation"]
        self._header = sources["header"]
        self._target = read_target(sources["formal_statement"])
        if (at := _sorry_in(self._header)) >= 0:
            self.warnings.append(("sorry_in_header", "header", at))
        if self._target.sorry >= 0:
            self.warnings.append(("sorry_in_statement", "formal_statement", self._target.sorry))
        answer, unclosed = without_thinking(self._text)
        if unclosed is not None:
            self._note("unclosed_thinking", unclosed)
        answer = after_key(self._text, answer, key)
        code = choose(self._text, answer, self._target, last=last)
        self._start, self._fenced = code.start, code.fenced
        self._end = code.start + len(self._text[code.start : code.end].rstrip())
        if self._end == code.start:
            self._note("no_answer", code.start)
        elif code.warning:
            self._note(code.warning, code.warning_at)

    def _note(self, code: str, at: int) -> None:
        self.warnings.append((code, "generation", at))

    def write(self, draft: Draft, *, restate: bool, strip: bool) -> int:
        """Write the program; return the offset at which the model's own text begins."""
        draft.copy("header", 0, len(self._header))
        if not draft.ends_line():
            draft.write("\n")
        if not (restate and strip):
            return self._write_whole(draft, restate=restate)
        declared = self._declaration()
        before = draft.length
        has_helpers = declared is not None and self._write_helpers(draft, declared)
        draft.copy("formal_statement", 0, self._target.kept)
        submitted_from = before if has_helpers else draft.length
        self._write_proof(draft, declared)
        return submitted_from

    def _write_whole(self, draft: Draft, *, restate: bool) -> int:
        if restate:
            draft.copy("formal_statement", 0, self._target.kept)
            if not draft.ends_line():
                draft.write("\n")
        submitted_from = draft.length
        start = preamble.after_header(self._text, self._start, self._end, self._header)
        draft.copy("generation", start, self._end)
        return submitted_from

    def _declaration(self) -> Declaration | None:
        """Return the model's declaration of the target, or what passes for it."""
        text, start, end, target = self._text, self._start, self._end, self._target
        found = find(text, start, end, target)
        if found is None and start < end:
            found = self._substitute(find_like(text, start, end, target.keyword))
            if found is None:
                self._note("no_declaration", start)
            elif found.name != target.name:
                self._note("name_differs", found.start)
        return found

    def _substitute(self, found: Declaration | None) -> Declaration | None:
        """Return a declaration of another name when it may stand for the target: no proof goes before it."""
        if found is None:
            return None
        first = self._first_code(self._start)
        line = self._text.rfind("\n", 0, first) + 1
        begins = first == found.start or COMMAND_LINE.match(self._text, max(line, self._start), self._end)
        return found if begins else None

    def _first_code(self, start: int) -> int:
        comments = (Kind.COMMENT, Kind.DOC_COMMENT)
        return next(
            (t.start for t in tokens(self._text, start, self._end) if t.kind not in comments), self._end
        )

    def _write_helpers(self, draft: Draft, declared: Declaration) -> bool:
        """Write what is kept from before the model's declaration, with one blank line after it."""
        found = preamble.read(self._text, self._start, declared.start, self._header, declared.name)
        for code, places in (("header_differs", found.differs), ("scope_dropped", found.dropped)):
            if places:
                self._note(code, places[0])
        if found.openers:
            self._end = preamble.without_ends(self._text, declared.start, self._end, found.openers)
        for number, (start, end) in enumerate(found.kept):
            is_last = number == len(found.kept) - 1
            draft.copy("generation", start, start + len(self._text[start:end].rstrip()) if is_last else end)
        if found.kept:
            draft.write("\n\n")
        return bool(found.kept)

    def _write_proof(self, draft: Draft, declared: Declaration | None) -> None:
        joint = Joint(draft, self._text, self._end, self._target.ending)
        if declared is None:
            body = preamble.after_header(self._text, self._start, self._end, self._header)
            written = joint.write_bare(body, lost=not self._fenced)
        else:
            ends = self._signature(declared)
            body = ends.body
            written = joint.write_body(ends)
        if not written:
            self._note("no_proof", body)
        elif _LEAN_3.match(self._text, body, self._end):
            self._note("lean3", body)

    def _signature(self, declared: Declaration) -> Signature:
        """Return how the model's statement ends, first trying whether it is the dataset's to the letter."""
        core = self._target.core
        if core and self._text.startswith(core, declared.start):
            body = declared.start + len(core)
            return Signature("assign", body - 2, body)
        ends = signature(self._text, declared, self._end)
        comparable = self._target.core and ends.style != "missing"
        if comparable and differ(self._target.signature, self._text[declared.name_end : ends.end]):
            self._note("statement_differs", declared.start)
        return ends
