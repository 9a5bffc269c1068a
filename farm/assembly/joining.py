"""Assembly step, joining: writes the dataset's text with the model's kept commands in between."""

from __future__ import annotations

from farm.assembly.above import Above
from farm.assembly.preamble import Plan
from farm.assembly.segments import Draft


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
