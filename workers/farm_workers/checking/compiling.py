"""Checking step, compile stage: has Lean compile a candidate, for the seal or for the blame."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace

from farm.lean_text.positions import line_and_column
from farm_workers.checking.stages import AskedCandidate, Compiled
from farm_workers.lean.compile import LeanRunner


class Compiling:
    """Has candidates compiled; thread-safe."""

    def __init__(self, runner: LeanRunner) -> None:
        self._runner = runner

    @contextlib.contextmanager
    def compiled(self, candidate: AskedCandidate) -> Iterator[Compiled]:
        """Give a compiled candidate; its module is closed at the end of the block.

        Raises NotShared if the candidate has to be compiled without its shared context.
        """
        check, question = candidate.check, candidate.question
        ends = line_and_column(check.program, check.context_end) if check.context_end else None
        with self._runner.compiled(question) as reply:
            found = self._runner.report(question, reply)
            report = replace(found, tier=candidate.assurance.tier, context_ends=ends)
            yield Compiled(candidate=candidate, reply=reply, report=report)
