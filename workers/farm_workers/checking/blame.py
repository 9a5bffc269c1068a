"""Checking step, blame stage: judges the dataset's text where a program is refused, whatever the reason is.

No answer to a faulty statement can be judged, so none of them may be rejected either: not by an error of its
own, a limit, or a text that Lean does not read. Which of the two errors Lean reports first depends on the
answer, on options and on the other threads of Lean, so the stage asks about the statement alone.
"""

from __future__ import annotations

import functools
from dataclasses import replace

from farm.assembly.challenge import Challenge
from farm.judging.report import Report
from farm.judging.verdict import Outcome, judge
from farm_workers.audit.audit import challenge_fault
from farm_workers.audit.declarations import opened_module
from farm_workers.audit.olean import MalformedOlean, Name
from farm_workers.box.supervisor import BoxFailed
from farm_workers.checking.challenges import BadChallenge, BadTask, Challenges
from farm_workers.checking.seals import text_end
from farm_workers.checking.stages import AskedCandidate, failed

#: The outcomes that blame the submission.
_BLAMING = frozenset({Outcome.REJECTED, Outcome.TIMEOUT, Outcome.MEMORY_LIMIT})


class Blame:
    """Finds out whether the dataset is at fault at a refused candidate; thread-safe."""

    def __init__(self, challenges: Challenges) -> None:
        self._challenges = challenges

    def blamed(self, candidate: AskedCandidate, report: Report) -> Report:
        """Return the report, with the fault of the statement if the submission is refused below a faulty one.

        Each statement is compiled once; an accepted proof was compared with it already.
        """
        challenge, question = candidate.check.challenge, candidate.question
        if challenge is None or judge(report).outcome not in _BLAMING:
            return report
        try:
            shared, fills = candidate.shared, candidate.check.task.fills
            stated = shared.challenge if shared else self._challenges.compiled(challenge, question)
            if fault := _fault(stated, challenge, b"" if shared is None else shared.context):
                raise BadTask(fault)
            if fills is not None:
                self._challenges.of_hole(fills.open(candidate.check.program), question)
        except (BadChallenge, BoxFailed) as error:  # a box's error may be the dataset's or the submission's
            return failed(replace(report, text_error=None, refused=None), error)
        return report


@functools.lru_cache(maxsize=256)
def _fault(compiled: bytes, challenge: Challenge, context: bytes) -> str | None:
    """Return the sentence about a statement that Lean accepts and nothing can prove, None without a fault."""
    negates = text_end(challenge.program[: challenge.negates]) if challenge.negates else None
    try:
        with opened_module(compiled) as module:
            foreign = _names(context) if context and negates else ()
            found = challenge_fault(module, text_end(challenge.program), negates, foreign)
            return None if found is None else found.sentence
    except MalformedOlean:
        return None  # the audit says so


def _names(context: bytes) -> list[Name]:
    with opened_module(context) as module:
        return list(module.names)
