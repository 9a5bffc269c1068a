"""Checking step, fallback stage: has a check's next candidate judged where that may help."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from farm.judging.job import Fallback
from farm.judging.report import Execution, Report
from farm.judging.verdict import Outcome, judge
from farm_workers.checking.candidates import first_stating, lacks_refused_text, may_do_better
from farm_workers.checking.stages import Candidate, JudgedCandidate

#: A check's next program is not compiled with less remaining time.
LEAST_SECONDS = 0.1


class Fallbacks:
    """Has `judge` judge the candidates of checks, one after the other; thread-safe."""

    def __init__(self, judge: Callable[[Candidate], JudgedCandidate]) -> None:
        self._judge = judge

    def judged(self, own: Candidate) -> Report:
        """Return the report of the last candidate that was judged, with the time of all of them.

        After a program that was refused for text above its proof, or that proves another statement, the
        check's next program is compiled within the remaining limits. It is not partial if it lacks the text
        for which the earlier one was refused: that text is a failed proof, and no permitted sorry.
        """
        counted, first, others = first_stating(own.check)
        left = [other for _, other in others]
        begun = own if first is own.check else own.instead(first)
        judged = self._judge(begun.with_others(left))
        if not others and first is own.check:
            return judged.report
        run = judged.report.run
        for preamble, other in others:
            following = _following(judged, other)
            if following is None:
                break
            left = left[1:]
            found = self._judge(following.with_others(left))
            if _is_partial_without(judged, other, found.report):
                run = both(found.report.run, run)
                break
            counted, judged, run = preamble, found, both(run, found.report.run)
        return replace(judged.report, preamble=counted, run=run)


def _is_partial_without(judged: JudgedCandidate, other: Fallback, report: Report) -> bool:
    """Return whether a later program is partial because it admits what an earlier one failed to prove."""
    if judge(report).outcome is not Outcome.PARTIAL:
        return False
    return lacks_refused_text(judged.candidate.check, other, judged.report)


def _following(judged: JudgedCandidate, other: Fallback) -> Candidate | None:
    """Return the candidate of another program, within the remaining limits; None if it cannot do better.

    The time to read the context does not count against the limits: the judged question's limits contain it.
    """
    check, run = judged.candidate.check, judged.report.run
    limits, granted = check.limits, judged.candidate.question.limits
    wall = min(limits.wall_seconds, granted.wall_seconds - run.counted_seconds)
    cpu = min(limits.cpu_seconds, granted.cpu_seconds - run.cpu_seconds)
    if min(wall, cpu) < LEAST_SECONDS or not may_do_better(check, other, judged.report):
        return None
    remaining = replace(limits, wall_seconds=wall, cpu_seconds=cpu)
    following = replace(check, program=other.program, submitted=other.submitted, limits=remaining)
    return judged.candidate.instead(following)


def both(first: Execution, last: Execution) -> Execution:
    """Return the last of two runs with the time of both, and with what either may have lacked."""
    return replace(
        last,
        wall_seconds=first.wall_seconds + last.wall_seconds,
        waited_seconds=first.waited_seconds + last.waited_seconds,
        cpu_seconds=first.cpu_seconds + last.cpu_seconds,
        lacked=last.lacked or first.lacked,
    )
