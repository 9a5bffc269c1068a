"""Checking step, holes: has Lean's parser read an answer in its hole, before Lean elaborates the answer."""

from __future__ import annotations

import json
from dataclasses import replace

from farm.judging.audit import Finding, against
from farm.judging.ending import says_nothing
from farm.judging.report import Answer, Execution, Report
from farm.task import Fills
from farm_workers.box.supervisor import BoxFailed
from farm_workers.checking.forbidding import LimitReached
from farm_workers.checking.seals import Sealed
from farm_workers.checking.stages import AskedCandidate
from farm_workers.images import protocol
from farm_workers.images.image import NoImage
from farm_workers.lean.compile import LeanRunner
from farm_workers.lean.way import FORKED, NotShared

_WORD = "statement_mismatch"
_UNREAD = "Lean's parser did not get through the program as far as the hole."
#: The faults of an answer, by the word of `protocol`. Where the parser refuses the program with the answer,
#: Lean gives the reason as well, when it compiles that.
_FAULTS = {
    protocol.UNREADABLE: "Lean's parser does not accept the answer where the hole is.",
    protocol.BREAKS_OUT: "The answer is not one sequence of tactics that ends where the answer ends: it "
    "changes how Lean's parser reads the text around the hole.",
    protocol.NO_HOLE: "The hole is not where Lean's parser reads a tactic or a term of the program.",
}


class BreaksOut(Exception):
    """An answer is not a part of its program that stands in the place of the hole; has the report."""

    def __init__(self, report: Report) -> None:
        super().__init__()
        self.report = report


class Filling:
    """Has answers read in their holes; thread-safe."""

    def __init__(self, runner: LeanRunner) -> None:
        self._runner = runner

    def read(self, candidate: AskedCandidate) -> AskedCandidate:
        """Return the candidate with the fault of its answer, itself if it fills no hole of several.

        Where Lean cannot be forked nothing reads the answer, and the audit alone decides. Raises BreaksOut
        for an answer that need not be compiled, LimitReached, NotShared if the image of a shared context is
        gone, and BoxFailed when the farm fails.
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
        if answer is None or run.exit_status != 0:
            if says_nothing(run):
                why = run.box_error or run.lacked or run.signal or run.exit_status
                raise BoxFailed(f"the answer could not be read: {why}")
            return replace(candidate, misfit=_UNREAD)
        fit = _fit(answer)
        if fit in (protocol.BREAKS_OUT, protocol.NO_HOLE):
            raise BreaksOut(_refused(candidate, run, _FAULTS[fit]))
        return replace(candidate, misfit=_FAULTS.get(fit))

    def held(self, candidate: AskedCandidate, sealed: Sealed) -> Sealed:
        """Return a sealed module with the finding against an answer that does not fit into its hole."""
        if candidate.misfit is None:
            return sealed
        finding = Finding(word=_WORD, sentence=candidate.misfit)
        audit = replace(sealed.audit, accepted=False, findings=(finding, *sealed.audit.findings))
        return replace(sealed, audit=audit, module=None)


def _asked(candidate: AskedCandidate, fills: Fills) -> protocol.FillAsked:
    program, question = candidate.check.program, candidate.question
    ends = [each for each in (question.context_end, question.header_end) if each <= fills.start]
    return protocol.FillAsked(
        program=program,
        draft=fills.open(program),
        start=next(filter(None, ends), 0),
        answer=(fills.start, len(program) - fills.tail),
        hole=(fills.start, fills.start + len(fills.text)),
    )


def _refused(candidate: AskedCandidate, run: Execution, sentence: str) -> Report:
    """Return the report of an answer that is refused and never elaborated."""
    return Report(
        run=run,
        answer=Answer(reached_end=True),
        way=FORKED,
        tier=candidate.assurance.tier,
        audit=against(_WORD, sentence),
    )


def _fit(answer: bytes) -> str:
    """Return the word that a fork has found; a Lean without the functions for the reading finds none."""
    try:
        return str(json.loads(answer).get("fit", protocol.FITS))
    except (ValueError, AttributeError):
        return protocol.UNREADABLE
