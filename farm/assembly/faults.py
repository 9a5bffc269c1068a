"""Assembly step, what is wrong: a line from which no program can be made."""

from __future__ import annotations


class StatementFault(Exception):
    """What is wrong with a field of a line, and what to do about it; the reader adds file and line."""

    def __init__(self, problem: str, remedy: str, field: str = "formal_statement") -> None:
        super().__init__(problem)
        self.problem, self.remedy, self.field = problem, remedy, field


class ForeignStatement(StatementFault):
    """A statement of a proof system that no environment of this farm has: the whole manifest is refused."""
