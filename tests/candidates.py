"""What the tests of checks with several programs share."""

from __future__ import annotations

from farm.assembly.program import Program
from farm.judging.job import Fallback


def as_other(program: Program | None) -> Fallback | None:
    """Return an assembled program as one that a check may try after its first."""
    return None if program is None else Fallback(program=program.text, submitted=program.submitted)
