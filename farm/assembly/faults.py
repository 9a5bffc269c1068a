"""Assembly step, faults: the errors for a line or a text of a benchmark that states nothing usable."""

from __future__ import annotations


class StatementFault(Exception):
    """A fault in a field of a line, with its remedy; the reader of the manifest adds file and line."""

    def __init__(self, problem: str, remedy: str, field: str = "formal_statement") -> None:
        super().__init__(problem)
        self.problem, self.remedy, self.field = problem, remedy, field


class Unstated(Exception):
    """A text of a benchmark from which no statement can be read; the message says why."""
