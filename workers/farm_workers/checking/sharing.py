"""Checking step, context stage: has a candidate judged below a shared context, or with its own."""

from __future__ import annotations

from collections.abc import Callable

from farm.judging.report import Report
from farm_workers.box import once as box
from farm_workers.checking.contexts import Contexts
from farm_workers.checking.stages import AskedCandidate, JudgedCandidate
from farm_workers.lean.way import NotShared, Unfit


class Sharing:
    """Chooses how candidates get their context, and has `judge` judge them; thread-safe."""

    def __init__(self, contexts: Contexts, judge: Callable[[AskedCandidate], Report]) -> None:
        self._contexts, self._judge = contexts, judge

    def judged(self, candidate: AskedCandidate) -> JudgedCandidate:
        """Return the report of a candidate; raises BadChallenge and BoxFailed if its context is not read."""
        report = self._below_shared(candidate)
        if report is not None:
            return JudgedCandidate(candidate=candidate, report=report)
        reading = self._contexts.reading(candidate.question, candidate.check.challenge)
        alone = candidate.allowing(reading)
        return JudgedCandidate(candidate=alone, report=self._judge(alone))

    def _below_shared(self, candidate: AskedCandidate) -> Report | None:
        """Return the report of a check that shares its context with others; None if it cannot.

        A second kernel, or anybody else who gets the sealed module, reads whole modules: such checks share no
        context.
        """
        question = candidate.question
        if candidate.needs_whole_module:
            return None
        shared = self._contexts.shared(question, candidate.check.challenge)
        if shared is None:
            return None
        try:
            report = self._judge(candidate.below(shared))
        except Unfit as error:
            self._contexts.failed(question, error)
        except NotShared as error:
            self._contexts.suspect(question, error)
        else:
            if report.run.box_error in (None, box.CANCELLED):
                return report
            self._contexts.suspect(question, NotShared(report.run.box_error))
        return None
