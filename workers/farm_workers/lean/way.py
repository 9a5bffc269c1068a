"""Ways step, shared: the question that every way to run Lean answers, and its reply."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import BinaryIO

from farm.judging.report import Execution, Report
from farm.lean_text.header import header_end
from farm.lean_text.positions import line_and_column
from farm.limits import Limits
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.environments.paths import hiding
from farm_workers.images.protocol import Banned
from farm_workers.images.recipe import Recipe
from farm_workers.lean.messages import parse
from farm_workers.lean.stopping import Decides

FORKED, PREPARED, COLD = "forked", "prepared", "cold"
WAYS = (FORKED, PREPARED, COLD)

#: Limits of the farm's own runs, above all the first read of a header: no limits of a line apply, and the
#: largest libraries come slowly from a slow or remote disk.
FIRST_LOAD = Limits(wall_seconds=600.0, cpu_seconds=1200.0, memory_mib=16384)


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """One program for Lean; `mark` is printed when Lean has read it to its end.

    `header_end` is an offset in it, see `farm.lean_text.header`; `context_end` is the offset at which the
    dataset's own context ends, 0 without one. `cancelled` is called now and then and returns whether the
    check was cancelled. With `goals` the reply has the goals at errors and sorries, which only a fork can
    report. `way` is the first way to try, None for the runner's own. With `shares_context` only a fork of an
    image that has read the context answers, and the module holds no declarations of the context. With
    `keeps_examples` the module holds declarations that Lean would forget, or the reply lists the program's
    declarations; with `moved`, which programs have that are compared with one with a hole, forks add them to
    the module as well. It is the line from which on the text stands lower than in that program, and by how
    many lines. A fork is ended at the first error for which `stops_at` returns True. With `banned`,
    forbidden tactics, the reply has those of them that Lean ran, which only a fork can report.
    """

    program: str
    mark: str
    header_end: int
    environment: LeanEnvironment
    limits: Limits
    cancelled: Callable[[], bool]
    way: str | None = None
    goals: bool = False
    context_end: int = 0
    shares_context: bool = False
    keeps_examples: bool = False
    moved: tuple[int, int] | None = None
    stops_at: Decides | None = None
    banned: Banned | None = None

    @classmethod
    def of(
        cls, program: str, environment: LeanEnvironment, limits: Limits, cancelled: Callable[[], bool]
    ) -> Question:
        """Return the question about a program, with a random end mark."""
        return cls(
            program=program,
            mark=secrets.token_hex(16),
            header_end=header_end(program),
            environment=environment,
            limits=limits,
            cancelled=cancelled,
        )

    def instead(self, program: str, *, way: str | None = None, context_end: int = 0) -> Question:
        """Return the question about a program of the farm's own, within the limits of a first load.

        With `context_end`, the program shares this question's context image. `way` is not this question's.
        """
        return replace(
            Question.of(program, self.environment, FIRST_LOAD, self.cancelled),
            way=way,
            context_end=context_end,
            shares_context=self.shares_context and context_end > 0,
        )

    def allowing(self, run: Execution, times: float = 1.0) -> Question:
        """Return the question with `times` the run's wall and processor time added to its limits."""
        more = replace(
            self.limits,
            wall_seconds=self.limits.wall_seconds + times * run.counted_seconds,
            cpu_seconds=self.limits.cpu_seconds + times * run.cpu_seconds,
        )
        return replace(self, limits=more)

    @property
    def context(self) -> str:
        """The dataset's own context, "" without one."""
        return self.program[: self.context_end]

    @property
    def header(self) -> str:
        """The header with a line end: the text that an image is made of."""
        return self.program[: self.header_end] + "\n"

    @property
    def key(self) -> tuple[LeanEnvironment, Recipe]:
        """The environment and the recipe of the image: programs with equal keys share an image."""
        return self.environment, Recipe(
            header=self.header, context=self.context if self.shares_context else ""
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """The reply to a question: the facts, and the compiled module.

    `module` is a sealed copy, in memory, of the compiled module, if Lean ended well and wrote one. The caller
    closes it. `context` is the module of the context, if it was compiled apart. `declared` lists the
    program's declarations, if the question keeps them and Lean listed them. `uses` has a sentence for each
    forbidden tactic that Lean ran, if the question has any; None if Lean left no list of them.
    """

    report: Report
    module: BinaryIO | None = None
    context: bytes | None = None
    declared: tuple[str, ...] | None = None
    uses: tuple[str, ...] | None = None

    @classmethod
    def of(cls, question: Question, run: Execution, way: str, module: Callable[[], BinaryIO | None]) -> Reply:
        """Return the reply of a run of Lean; `module` is called if the run ended well."""
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


def stops_in_header(question: Question, report: Report) -> bool:
    """Return whether Lean's first error stands in the header, below which it then reads nothing."""
    first = report.answer.first_error
    if first is None or not first.line or report.answer.reached_end:
        return False
    return (first.line, first.column) < line_and_column(question.program, question.header_end)


class Doubtful(Exception):
    """A way cannot reply; the caller falls back to another one."""


class NotShared(Exception):
    """No shared context can reply: the caller compiles the program alone."""


class Unfit(NotShared):
    """A context cannot be shared, whatever the proof is: the kernel rejects its compiled form."""
