"""Manifest step, the value: the fields of one line of a manifest."""

from __future__ import annotations

from dataclasses import dataclass, field

from farm.manifest.hole import Hole
from farm.task import Task


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One manifest line, validated.

    `line` counts from 1 with blank lines counted. A string that the line does not have, where it may be
    left out, is `""`; so is a `predicted_proof` that an export of the farm wrote into the line. Strings may
    hold NUL and lone surrogates: JSON can say them, UTF-8 and databases cannot.
    `context` is all of a file before the theorem and stands in place of a `header`: at most one of the two is
    not `""`. `timeout` is in seconds, above 0 and at most LONGEST_TIMEOUT. `lacks_answer` says that the line
    has no generation, not even an empty one, and needs it. `task` is what the
    line asks of its proof beyond the usual. With a `hole` the generation is for that place of a program, and
    there is no predicted_proof.
    """

    path: str
    line: int
    name: str
    header: str
    formal_statement: str
    generation: str
    predicted_proof: str
    context: str = ""
    lacks_answer: bool = False
    environment: str | None = None
    timeout: float | None = None
    group: str | None = None
    task: Task = field(default_factory=Task)
    hole: Hole | None = None

    def task_in(self, run: Task) -> Task:
        """Return what a run asks of this line; an answer to one hole of several leaves the others open."""
        asked = self.task.within(run)
        return asked if self.hole is None or self.hole.is_last else asked.filling(self.hole.fills)

    def text_of(self, origin: str) -> str:
        """Return the text of the field that a segment of the program was copied from."""
        return self.hole.program if origin == "hole" and self.hole else str(getattr(self, origin))
