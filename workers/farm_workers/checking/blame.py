"""Checking step, blame stage: decides whose text Lean refused: the dataset's or the submission's.

The stage bounds the text that it reads, so that no submission occupies a worker slot for long.
"""

from __future__ import annotations

from farm.assembly.challenge import Challenge
from farm.assembly.declaration import read_target
from farm.judging.ending import lean_refused
from farm.judging.job import Check
from farm.judging.report import Report
from farm.lean_text.policy.screen import LONGEST_READ
from farm.lean_text.positions import Positions
from farm_workers.box.supervisor import BoxFailed
from farm_workers.checking.challenges import BadChallenge, Challenges, makes_errors_of_sorries
from farm_workers.checking.stages import Compiled, failed


class Blame:
    """Finds out whether Lean refused a candidate because of its statement; thread-safe."""

    def __init__(self, challenges: Challenges) -> None:
        self._challenges = challenges

    def blamed(self, compiled: Compiled) -> Report:
        """Return the report, with the statement's error if Lean refused the program because of that."""
        candidate, report = compiled.candidate, compiled.report
        if candidate.shared is not None:
            return report  # the statement was compiled with the context, so the error is not its own
        check, challenge = candidate.check, candidate.check.challenge
        if challenge is None:
            return report
        is_refused = lean_refused(report) and blames_statement(check, challenge, report)
        if not is_refused and not makes_errors_of_sorries(report):
            return report
        try:
            self._challenges.compiled(challenge, candidate.question)
        except (BadChallenge, BoxFailed) as error:  # a box's error may be the dataset's or the submission's
            return failed(report, error)
        return report


def blames_statement(check: Check, challenge: Challenge, report: Report) -> bool:
    """Return whether Lean's first error may come from the dataset's header, context or statement.

    The submission's text above the statement may cause such an error too, so the caller then compiles the
    challenge alone. For a challenge that declares no name, and for a long text, the result is always true.
    """
    if not challenge.name:
        return True
    first = report.answer.first_error
    if first is not None and report.is_of_context(first):
        return True
    at = None if first is None else Positions(check.program).offset(first.line, first.column)
    if max(len(check.program), len(challenge.program)) > LONGEST_READ:
        return True
    core = read_target(challenge.program[challenge.context_end :]).core
    begins = check.program.find(core, check.context_end) if core else -1
    submitted = check.submitted or ()
    if at is None:
        return False
    if begins < 0:  # the program lacks the statement, so only the submission's own spans are compared
        return bool(submitted) and not any(start <= at < end for start, end in submitted)
    own = any(start <= at < end for start, end in submitted if not start <= begins < end)
    return at < begins + len(core) and not own
