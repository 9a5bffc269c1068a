"""Ways step, shared: the question that every way to run Lean answers, and its reply."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import BinaryIO

from farm.judging.report import Execution, Report
from farm.lean_text.header import header_end
from farm.limits import Limits
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.environments.paths import hiding
from farm_workers.images.recipe import Recipe
from farm_workers.lean.messages import parse

FORKED, SNAPSHOT, COLD = "forked", "snapshot", "cold"
WAYS = (FORKED, SNAPSHOT, COLD)

#: What the farm does on its own account may take this, above all reading a header for the first time: no
#: line's limits hold for that, and the largest libraries come slowly from a disk that is slow, or far away.
FIRST_LOAD = Limits(wall_seconds=600.0, cpu_seconds=1200.0, memory_mib=16384)


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """One program for Lean; `mark` is printed when Lean has read it to its end.

    `header_end` is an offset in it, see `farm.lean_text.header`, and so is `context_end`, where the dataset's
    own context ends, 0 without one. `cancelled` is called now and then, and says whether nobody wants the
    answer any more. With `goals` the goals at errors and sorries are asked for, which only a fork can tell.
    With `shares_context` it is asked of a fork of an image that has read the context, or of nobody, and the
    module holds what the context does not declare. With `keeps_examples` the module holds what the program
    declares and Lean forgets, or the reply lists what the program declares.
    """

    program: str
    mark: str
    header_end: int
    environment: LeanEnvironment
    limits: Limits
    cancelled: Callable[[], bool]
    goals: bool = False
    context_end: int = 0
    shares_context: bool = False
    keeps_examples: bool = False

    @classmethod
    def of(
        cls,
        program: str,
        environment: LeanEnvironment,
        limits: Limits,
        cancelled: Callable[[], bool],
        *,
        goals: bool = False,
        context_end: int = 0,
        keeps_examples: bool = False,
    ) -> Question:
        """Return the question about a program, whose end mark nobody can guess."""
        return cls(
            program=program,
            mark=secrets.token_hex(16),
            header_end=header_end(program),
            environment=environment,
            limits=limits,
            cancelled=cancelled,
            goals=goals,
            context_end=context_end,
            keeps_examples=keeps_examples,
        )

    def instead(self, program: str, *, context_end: int = 0) -> Question:
        """Return the question about a program of the farm's, which may take as long as a first load.

        Of one with the same context, whose end is told, it is asked as this question is.
        """
        return replace(
            Question.of(program, self.environment, FIRST_LOAD, self.cancelled, context_end=context_end),
            shares_context=self.shares_context and context_end > 0,
        )

    def allowing(self, run: Execution, times: float = 1.0) -> Question:
        """Return the question with time for what a run has done, so many times, besides its own limits."""
        more = replace(
            self.limits,
            wall_seconds=self.limits.wall_seconds + times * run.wall_seconds,
            cpu_seconds=self.limits.cpu_seconds + times * run.cpu_seconds,
        )
        return replace(self, limits=more)

    @property
    def context(self) -> str:
        """The dataset's own context, "" without one."""
        return self.program[: self.context_end]

    @property
    def header(self) -> str:
        """The header with a line end: the text that an image or a snapshot is made of."""
        return self.program[: self.header_end] + "\n"

    @property
    def key(self) -> tuple[LeanEnvironment, Recipe]:
        """The environment, and what an image of it has read: programs that have both in common share one."""
        return self.environment, Recipe(
            header=self.header, context=self.context if self.shares_context else ""
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """The answer to a question: the facts, and what Lean compiled.

    `module` is a sealed copy, in memory, of the compiled module, where Lean ended well and left one. The
    caller closes it. `context` is the module of the context, where that is a module of its own. `declared`
    lists what the program declares, where Lean was asked for that and did it.
    """

    report: Report
    module: BinaryIO | None = None
    context: bytes | None = None
    declared: tuple[str, ...] | None = None

    @classmethod
    def of(cls, question: Question, run: Execution, way: str, module: Callable[[], BinaryIO | None]) -> Reply:
        """Return the reply that Lean gave in this run; `module` is called where it ended well."""
        hidden = hiding(question.environment)
        answer = parse(
            hidden.output(run.stdout),
            hidden.output(run.stderr),
            program=question.program,
            mark=question.mark,
            context_end=question.context_end,
        )
        return cls(
            report=Report(run=replace(run, stdout=b"", stderr=b""), answer=answer, way=way),
            module=module() if run.is_undisturbed and run.exit_status == 0 else None,
        )

    def with_end(self) -> Reply:
        """Return the reply of a Lean that is known to have read the program to its end."""
        answer = replace(self.report.answer, reached_end=True)
        return replace(self, report=replace(self.report, answer=answer))


class Doubtful(Exception):
    """One way cannot answer; another one must be asked."""


class NotShared(Exception):
    """There is no answer by way of a context that is shared: the program is to be asked about alone."""


class Unfit(NotShared):
    """A context cannot be shared whatever the proof is: the kernel does not take what it was compiled to."""
