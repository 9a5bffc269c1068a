"""What all ways to run Lean have in common: what they are asked and what they reply."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO

from farm.header import header_end
from farm.job import Limits
from workers.box.once import Run
from workers.environments import LeanEnvironment
from workers.lean import Answer, with_end_mark

FORKED, SNAPSHOT, COLD = "forked", "snapshot", "cold"
WAYS = (FORKED, SNAPSHOT, COLD)


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """One program for Lean. `program` ends with the command that prints `mark`.

    `header_end` is an offset in it, see `farm.header`. `cancelled` is asked every now and then whether the
    answer is still wanted.
    """

    program: str
    mark: str
    header_end: int
    environment: LeanEnvironment
    limits: Limits
    cancelled: Callable[[], bool]

    @classmethod
    def of(
        cls, program: str, environment: LeanEnvironment, limits: Limits, cancelled: Callable[[], bool]
    ) -> Question:
        """Return what is asked of Lean about a program, with an end mark that nobody can guess."""
        mark = secrets.token_hex(16)
        return cls(
            program=with_end_mark(program, mark),
            mark=mark,
            header_end=header_end(program),
            environment=environment,
            limits=limits,
            cancelled=cancelled,
        )

    @property
    def header(self) -> str:
        """The header with a line end, which is what is imported once for many programs."""
        return self.program[: self.header_end] + "\n"

    @property
    def key(self) -> tuple[LeanEnvironment, str]:
        """What programs must have in common to share what was imported."""
        return self.environment, self.header


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """What came of a question: the facts of the process, what Lean said, which way it was asked.

    `module` is a sealed copy of the compiled module, in memory, where Lean ended well and left one; it is the
    caller's to close.
    """

    run: Run
    answer: Answer
    way: str
    module: BinaryIO | None = None


class Doubtful(Exception):
    """One way cannot answer; another one must be asked."""
