"""What all ways to run Lean have in common: what they are asked and what they reply."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass

from farm.header import header_end, prefix_end
from farm.job import Limits
from workers.box.once import Run
from workers.environments import LeanEnvironment
from workers.lean import Answer, with_end_mark

COLD, SNAPSHOT, RESIDENT, FORKED = "cold", "snapshot", "resident", "forked"
WAYS = (RESIDENT, SNAPSHOT, COLD)


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """One program for Lean. `program` ends with the command that prints `mark`.

    `header_end` and `prefix_end` are offsets in it, see `farm.header`. `cancelled` is asked every now and
    then whether the answer is still wanted.
    """

    program: str
    mark: str
    header_end: int
    prefix_end: int
    environment: LeanEnvironment
    limits: Limits
    cancelled: Callable[[], bool]

    @classmethod
    def of(
        cls, program: str, environment: LeanEnvironment, limits: Limits, cancelled: Callable[[], bool]
    ) -> Question:
        """Return what is asked of Lean about a program, with an end mark that nobody can guess."""
        mark = secrets.token_hex(16)
        end = header_end(program)
        return cls(
            program=with_end_mark(program, mark),
            mark=mark,
            header_end=end,
            prefix_end=prefix_end(program, end),
            environment=environment,
            limits=limits,
            cancelled=cancelled,
        )

    @property
    def header(self) -> str:
        """The header with a line end, which is what is elaborated once for many programs."""
        return self.program[: self.header_end] + "\n"

    @property
    def key(self) -> tuple[LeanEnvironment, str]:
        """What programs must have in common to share an elaborated header."""
        return self.environment, self.header


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """What came of a question: the facts of the process, what Lean said, and which way it was asked."""

    run: Run
    answer: Answer
    way: str
    stopped_at: int | None = None


class Doubtful(Exception):
    """One way cannot answer, or not so that it could be relied on; a fresh process must be asked."""
