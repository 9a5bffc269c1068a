"""Checking step, policy stage: reads a program's text before Lean does."""

from __future__ import annotations

from farm.judging.report import Report
from farm.judging.verdict import judge_text
from farm.lean_text.policy.screen import Screen
from farm_workers.checking.stages import AskedCandidate


def screened(candidate: AskedCandidate) -> Report:
    """Return the policy's hits in a program, and the fault of a text that Lean must not run.

    A check without an assurance has no policy. The policy bounds the text that it reads, so that no
    submission occupies a worker slot for long.
    """
    check, tier = candidate.check, candidate.assurance.tier
    impossible = judge_text(check.program)
    if impossible is not None:
        return Report(tier=tier, text_error=impossible.detail, text_place=impossible.place)
    if check.assurance is None:
        return Report(tier=tier)
    screen = Screen(policy=check.assurance.rules, submitted=check.submitted)
    hits, refused = screen.look(check.program, header=candidate.question.environment.header)
    return Report(tier=tier, hits=hits, refused=refused)
