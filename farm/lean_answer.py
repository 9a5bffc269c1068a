"""Assembly step, profile `farm`: the model's answer, read as Lean, put after the dataset's header and statement."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from farm import preamble
from farm.answer import after_key, without_thinking
from farm.choice import choose
from farm.declaration import Declaration, Signature, Target, differ, find, find_any, read_target, signature
from farm.proof import Joint
from farm.scanner import sorry_tokens
from farm.segments import Draft

_LEAN_3 = re.compile(r"\s*begin\b")


@lru_cache(maxsize=1024)
def _sorry_in(header: str) -> int:
    return next(iter(sorry_tokens(header)), -1)


class LeanAnswer:
    """One line on its way through profile `farm`: what the answer's code is, and what there is to say about it.

    `warnings` holds ``(code, origin, offset)``.
    """

    def __init__(self, sources: Mapping[str, str], key: str, *, last: bool) -> None:
        self.warnings: list[tuple[str, str, int]] = []
        self._text = sources["generation"]
        self._header = sources["header"]
        self._target = read_target(sources["formal_statement"])
        self._note_sorries()
        answer, unclosed = without_thinking(self._text)
        if unclosed is not None:
            self._note("unclosed_thinking", unclosed)
        answer = after_key(self._text, answer, key)
        self._code = choose(self._text, answer, self._target, last=last)
        self._end = self._code.start + len(self._text[self._code.start : self._code.end].rstrip())
        if self._end <= self._code.start:
            self._end = self._code.start
            self._note("no_answer", self._code.start)
        elif self._code.warning:
            self._note(self._code.warning, self._code.warning_at)

    def write(self, draft: Draft, *, restate: bool, strip: bool) -> int:
        """Write the program; return the offset at which the model's own text begins."""
        draft.copy("header", 0, len(self._header))
        if not draft.ends_line():
            draft.write("\n")
        if not strip:
            return self._write_whole(draft, restate=restate)
        submitted_from = draft.length
        declared = self._declaration()
        start = preamble.after_imports(self._text, self._code.start, self._end)
        if declared is not None:
            helpers = preamble.helpers(self._text, self._code.start, declared.start, self._header, self._target.name)
            self._note_preamble(helpers)
            self._write_helpers(draft, helpers)
            if not helpers.spans:
                submitted_from = -1
        else:
            start = preamble.after_header(self._text, self._code.start, self._end)
            submitted_from = -1
        if restate:
            draft.copy("formal_statement", 0, self._target.kept)
        if submitted_from < 0:
            submitted_from = draft.length
        ending = self._target.ending if restate else "none"
        self._write_proof(draft, declared, start, ending)
        return submitted_from
