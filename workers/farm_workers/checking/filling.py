"""Checking step, holes: has Lean's parser read an answer in its hole, before anything of it is elaborated."""

from __future__ import annotations

import json
import signal
from dataclasses import replace

from farm.judging.audit import Finding
from farm.task import Fills
from farm_workers.box.supervisor import BoxFailed
from farm_workers.checking.forbidding import LimitReached
from farm_workers.checking.seals import Sealed
from farm_workers.checking.stages import Candidate
from farm_workers.images.image import NoImage
from farm_workers.images.protocol import FillAsked
from farm_workers.lean.compile import LeanRunner
from farm_workers.lean.way import NotShared

_WORD = "statement_mismatch"
_UNREAD = "Lean's parser did not get through the program as far as the hole"


class Filling:
    """Has answers read in their holes; thread-safe."""

    def __init__(self, runner: LeanRunner) -> None:
        self._runner = runner

    def read(self, candidate: Candidate) -> Candidate:
        """Return the candidate with the fault of its answer, itself if it fills no hole of several.

        Where Lean cannot be forked nothing reads the answer, and the audit alone decides. Raises
        LimitReached, NotShared if the image of a shared context is gone, and BoxFailed when the farm fails.
        """
        fills = candidate.check.task.fills
        if fills is None:
            return candidate
        try:
            run, answer = self._runner.read_filling(candidate.question, _asked(candidate, fills))
        except NoImage as error:
            if candidate.shared is not None:
                raise NotShared(str(error)) from error
            return candidate
        if run.limit is not None:
            raise LimitReached(run)
        if answer is not None and run.exit_status == 0:
            return replace(candidate, misfit=_fault(answer))
        if run.box_error is not None or run.signal in (None, signal.SIGKILL):
            raise BoxFailed(f"the answer could not be read: {run.box_error or run.exit_status}")
        return replace(candidate, misfit=_UNREAD)

    def held(self, candidate: Candidate, sealed: Sealed) -> Sealed:
        """Return a sealed module with the finding against an answer that does not fit into its hole."""
        if candidate.misfit is None:
            return sealed
        finding = Finding(word=_WORD, sentence=f"{candidate.misfit}.")
        audit = replace(sealed.audit, accepted=False, findings=(finding, *sealed.audit.findings))
        return replace(sealed, audit=audit, module=None)


def _asked(candidate: Candidate, fills: Fills) -> FillAsked:
    program, question = candidate.check.program, candidate.question
    ends = [each for each in (question.context_end, question.header_end) if each <= fills.start]
    return FillAsked(
        program=program,
        draft=fills.open(program),
        start=next(filter(None, ends), 0),
        answer=(fills.start, len(program) - fills.tail),
        hole=(fills.start, fills.start + len(fills.text)),
    )


def _fault(answer: bytes) -> str | None:
    """Return what a fork found; a Lean that lacks what the reading needs finds nothing."""
    try:
        fault = json.loads(answer).get("fault")
    except (ValueError, AttributeError):
        return _UNREAD
    return None if fault is None else str(fault)[:500]
