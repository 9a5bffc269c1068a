"""Assembly step, profile `farm`: reads the model's answer as Lean and writes it into a program."""

from __future__ import annotations

import re

from farm.assembly import preamble
from farm.assembly.above import CONTEXT, HEADER, Above
from farm.assembly.answer import after_key, without_thinking
from farm.assembly.choice import choose
from farm.assembly.commands import commands
from farm.assembly.declaration import (
    Declaration,
    Signature,
    differ,
    find,
    find_again,
    find_like,
    read_target,
    signature,
)
from farm.assembly.preamble import Plan, Plans
from farm.assembly.proof import Joint, begins_block
from farm.assembly.segments import Draft
from farm.assembly.vocabulary import COMMAND_LINE, looks_like_prose
from farm.lean_text.header import header_end
from farm.lean_text.scanner import after_comments

_TACTICS_TOO = ("open", "set_option", "/-")
_LEAN_3 = re.compile(r"\s*begin\b")


class LeanAnswer:
    """The answer of one line in profile `farm`: finds its code, warns of its oddities, writes its programs.

    `warnings` holds ``(code, origin, offset)``.
    """

    def __init__(self, dataset: Above, generation: str, key: str, *, last: bool) -> None:
        self.warnings: list[tuple[str, str, int]] = []
        self._above = dataset
        self._declared: Declaration | None = None
        self._declares = False
        self._body = 0
        self._ends: Signature | None = None
        self._plans = Plans()
        self._text = generation
        self._target = read_target(dataset.statement)
        if (at := dataset.first_sorry()) >= 0 and dataset.origin == HEADER:
            self.warnings.append(("sorry_in_header", HEADER, at))
        elif at >= 0:
            self.warnings.append(("sorry_in_context", CONTEXT, at))
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

    def write(self, draft: Draft, *, restate: bool, strip: bool) -> None:
        """Write the program."""
        if not (restate and strip):
            self._write_whole(draft, restate=restate)
            return
        self._declared = self._declaration()
        if self._declared is None:
            self._body = self._after_header()
        else:
            self._read_preamble(self._declared)
            self._ends = self._signature(self._declared)
            self._body = self._ends.body
        if not self._write_plan(draft, self._plans.model):
            self._note("no_proof", self._body)
        elif _LEAN_3.match(self._text, self._body, self._end):
            self._note("lean3", self._body)

    def write_own(self, draft: Draft) -> bool:
        """Write the model's own text behind the header; return whether this is a candidate. After `write`.

        It is no candidate if it declares nothing, or if only an exact copy of the statement precedes its
        proof.
        """
        if not self._declares or self._is_repeated():
            return False
        self._dataset(draft).write_header()
        draft.copy("generation", self._own_start(), self._end)
        return True

    def write_otherwise(self, draft: Draft) -> bool:
        """Write the other candidate that restates the statement; return whether it exists. After `write`.

        It has the farm's own preamble, or the other reading of a proof without its declaration.
        """
        if self._plans.farm is not None:
            self._write_plan(draft, self._plans.farm)
            return True
        return self._ends is None and self._write_plan(draft, self._plans.model, otherwise=True)

    def _is_repeated(self) -> bool:
        """Return whether only an exact copy of the statement precedes the proof's own tokens."""
        declared, core = self._declared, self._target.core
        if declared is None or self._ends is None or not core:
            return False
        if self._ends.body != declared.start + len(core) or not self._text.startswith(core, declared.start):
            return False
        start = preamble.after_prefix(self._text, self._start, self._above.text.strip())
        before = self._text[start : declared.start].strip()
        if before and before != self._above.statement[: self._target.start].strip():
            return False
        return self._target.ending != "by" or begins_block(self._text, self._ends.body, self._end)

    def _own_start(self) -> int:
        """Return the start of the first line that is neither an import nor a line of the header."""
        start = preamble.after_prefix(self._text, self._start, self._above.text.strip())
        start += header_end(self._text[start : self._end])
        start = preamble.after_header(self._text, start, self._end, self._above.settings)
        ink = start + len(self._text[start : self._end]) - len(self._text[start : self._end].lstrip())
        return max(start, self._text.rfind("\n", start, ink) + 1)

    def _write_whole(self, draft: Draft, *, restate: bool) -> None:
        self._dataset(draft).write_header()
        if restate:
            draft.copy("formal_statement", 0, self._target.kept)
            if not draft.ends_line():
                draft.write("\n")
        draft.copy("generation", self._after_header(), self._end)

    def _after_header(self) -> int:
        """Return the start of code that declares nothing, after its imports and header lines."""
        start = preamble.after_prefix(self._text, self._start, self._above.text.strip())
        return preamble.after_header(self._text, start, self._end, self._above.settings)

    def _dataset(self, draft: Draft) -> DatasetText:
        return DatasetText(draft, self._above, self._target.kept)

    def _read_preamble(self, declared: Declaration) -> None:
        dataset = (self._above.text, self._above.statement, self._target)
        self._plans = preamble.read(self._text, self._start, declared, dataset)
        for code, at in self._plans.notes:
            self._note(code, at)

    def _write_plan(self, draft: Draft, plan: Plan, *, otherwise: bool = False) -> bool:
        """Write a program; return whether the answer has a proof, and a bare proof has this form."""
        dataset = self._dataset(draft)
        dataset.write_header()
        dataset.write_statement(plan)
        end = self._end
        if self._declared is not None and plan.ends:
            end = preamble.without_ends(self._text, self._declared.start, end, plan.ends)
        joint = Joint(draft, self._text, end, self._target.ending)
        if self._ends is None:
            return joint.write_bare(self._body, lost=not self._fenced, otherwise=otherwise)
        return joint.write_body(self._ends)

    def _declaration(self) -> Declaration | None:
        """Return the model's declaration of the target, or its substitute under another name."""
        text, start, end, target = self._text, self._start, self._end, self._target
        found = find(text, start, end, target)
        self._declares = found is not None
        if found is not None and (again := find_again(text, found, end)) < end:
            self._end = found.start + len(text[found.start : again].rstrip())
        if found is None and start < end:
            like = find_like(text, start, end, target.keyword)
            self._declares = like is not None
            found = self._substitute(like)
            if found is not None and found.name != target.name:
                self._note("name_differs", found.start)
            elif found is None and not self._is_body():
                self._note("no_declaration", start)
        return found

    def _is_body(self) -> bool:
        """Return whether code without a declaration of the target reads as a proof alone."""
        first = self._first_code(self._after_header())
        command = COMMAND_LINE.match(self._text, self._text.rfind("\n", 0, first) + 1, self._end)
        if command is not None and command[0].strip() not in _TACTICS_TOO:
            return False
        return self._fenced or not looks_like_prose(self._text, first, self._end)

    def _substitute(self, found: Declaration | None) -> Declaration | None:
        """Return a declaration of another name if no code precedes it, so that it can replace the target."""
        if found is None:
            return None
        start = self._own_start()
        first = self._first_code(start)
        begun = next(commands(self._text, start, found.name_end), None)
        begins = first == found.start or (begun is not None and begun.start <= first <= begun.keyword)
        return found if begins else None

    def _first_code(self, start: int) -> int:
        """Return the offset of the first token that is no comment, or the end of the answer."""
        return after_comments(self._text, start, self._end, docs=True)

    def _signature(self, declared: Declaration) -> Signature:
        """Return the end of the model's statement; an exact copy of the dataset's is recognized first."""
        core = self._target.core
        if core and self._text.startswith(core, declared.start):
            body = declared.start + len(core)
            return Signature("assign", body - 2, body)
        ends = signature(self._text, declared, self._end)
        comparable = self._target.core and ends.style != "missing"
        if comparable and differ(self._target.signature, self._text[declared.name_end : ends.end]):
            self._note("statement_differs", declared.start)
        return ends


class DatasetText:
    """Writes the dataset's part of a program; `kept` is the length of the statement that goes into it."""

    def __init__(self, draft: Draft, dataset: Above, kept: int) -> None:
        self._draft, self._kept = draft, kept
        self._above, self._statement = dataset, dataset.statement
        self._written = 0
        self._is_broken = False

    def write_header(self) -> None:
        """Write the header or the context, and a line break if its last line has none."""
        self._draft.copy(self._above.origin, 0, len(self._above.text))
        if self._above.ends_line:
            self._draft.write("\n")

    def write_statement(self, plan: Plan) -> None:
        """Write the statement with the pieces of a plan at their offsets."""
        draft = self._draft
        for kept in plan.kept:
            if kept.after > self._written:
                self._write_to(kept.after)
                draft.write("\n\n")
            self._write_own(kept.start, kept.end, "\n\n")
        if plan.ins:
            self._write_to(plan.lead)
            if not draft.ends_line():
                draft.write("\n")
            for start, end in plan.ins:
                self._write_own(start, end, "\n")
        self._write_to(self._kept)

    def _write_own(self, start: int, end: int, joint: str) -> None:
        self._draft.copy("generation", start, end)
        self._draft.write(joint)
        self._is_broken = True

    def _write_to(self, end: int) -> None:
        start = self._written
        while self._is_broken and start < end and self._statement[start].isspace():
            start += 1
        self._draft.copy("formal_statement", start, end)
        self._written, self._is_broken = end, False
