"""Doubt step: what a text, or the run that it is of, leaves open when Lean has accepted it. Pure."""

from __future__ import annotations

from farm.assembly.declaration import read_target
from farm.assurance import FAST
from farm.challenge import Challenge, is_stated
from farm.job import Check
from farm.policy import Hit, Screen, refusing
from farm.verdict import Report
from workers.environments import LeanEnvironment


def screened(check: Check, environment: LeanEnvironment) -> tuple[tuple[Hit, ...], Hit | None]:
    """Return what the policy finds in a program, and the hit that rejects it, if one does."""
    if check.assurance is None:
        return (), None
    screen = Screen(policy=check.assurance.policy, submitted=check.submitted)
    hits, refused = screen.look(check.program, header=environment.header)
    can_replay = environment.checker is not None and check.challenge is not None
    if refused is None and not can_replay and (hit := screen.past_kernel(check.program)) is not None:
        hits, refused = (*hits, hit), refusing([hit])
    return hits, refused


def blames_statement(check: Check, challenge: Challenge, report: Report) -> bool:
    """Whether Lean's first error is about what the dataset has written: the header, or the statement.

    What a submission says before the statement may be to blame all the same.
    """
    first = next((message for message in report.messages if message.severity == "error"), None)
    core = read_target(challenge.program).core
    begins = check.program.find(core) if core else -1
    if first is None or begins < 0:
        return False
    at = _offset(check.program, first.line) + first.column
    submitted = check.submitted or ()
    own = any(start <= at < end for start, end in submitted if not start <= begins < end)
    return at < begins + len(core) and not own


def _offset(text: str, line: int) -> int:
    """Return where a line, counted from 1, begins."""
    at = 0
    for _ in range(line - 1):
        at = text.find("\n", at) + 1
    return at


def is_past_kernel(check: Check, environment: LeanEnvironment) -> bool:
    """Whether a text that the policy lets pass names what takes constants past the kernel, to be replayed."""
    if check.assurance is None or environment.checker is None or not environment.audited:
        return False
    screen = Screen(policy=check.assurance.policy, submitted=check.submitted)
    return screen.past_kernel(check.program) is not None


def is_open(check: Check, challenge: Challenge, environment: LeanEnvironment) -> bool:
    """Whether more than Lean's word is needed for what the first tier calls proved.

    So it is when the run asks for more; when only an audit can say whether what was proved is what the
    challenge asks for; and when the run lets a text pass that could prove anything.
    """
    assurance = check.assurance
    if assurance is not None and (assurance.tier != FAST or assurance.strongest != FAST):
        return assurance.strongest != assurance.tier
    if assurance is not None and (assurance.policy.is_weakened or is_past_kernel(check, environment)):
        return True
    whole = ((0, len(check.program)),)
    return not is_stated(challenge, check.program, whole if check.submitted is None else check.submitted)
