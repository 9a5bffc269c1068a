"""Manifest step, the value: the fields of one line of a manifest."""

from __future__ import annotations

from dataclasses import dataclass, field

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
    line asks of its proof beyond the usual.
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
