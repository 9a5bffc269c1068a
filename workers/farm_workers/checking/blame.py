"""Doubt step: decides for the checker whether the policy rejects a program, and whose text failed. Pure.

The functions bound the text that they read, so that no submission occupies a worker slot for long.
"""

from __future__ import annotations

from farm.assembly.challenge import Challenge
from farm.assembly.declaration import read_target
from farm.judging.job import Check
from farm.judging.report import Report
from farm.lean_text.policy.rules import Hit
from farm.lean_text.policy.screen import LONGEST_READ, Screen
from farm.lean_text.positions import Positions
from farm_workers.environments.lean_environment import LeanEnvironment


def screened(check: Check, environment: LeanEnvironment) -> tuple[tuple[Hit, ...], Hit | None]:
    """Return the policy's hits in a program, and the hit that rejects it, if one does."""
    if check.assurance is None:
        return (), None
    screen = Screen(policy=check.assurance.rules, submitted=check.submitted)
    return screen.look(check.program, header=environment.header)


def blames_statement(check: Check, challenge: Challenge, report: Report) -> bool:
    """Return whether Lean's first error may come from the dataset's header, context or statement.

    The submission's text above the statement may cause such an error too, so the caller then compiles the
    challenge alone. For a challenge that declares no name the result is always true.
    """
    if not challenge.name:
        return True
    first = report.answer.first_error
    if first is not None and report.is_of_context(first):
        return True
    at = None if first is None else Positions(check.program).offset(first.line, first.column)
    if max(len(check.program), len(challenge.program)) > LONGEST_READ:
        return False
    core = read_target(challenge.program[challenge.context_end :]).core
    begins = check.program.find(core, check.context_end) if core else -1
    submitted = check.submitted or ()
    if at is None:
        return False
    if begins < 0:  # the program lacks the statement, so only the submission's own spans are compared
        return bool(submitted) and not any(start <= at < end for start, end in submitted)
    own = any(start <= at < end for start, end in submitted if not start <= begins < end)
    return at < begins + len(core) and not own
