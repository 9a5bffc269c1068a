"""Checking step, trying stage: judges the candidates of a check, the next one where that may help."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from farm.judging.report import Execution, Report
from farm.judging.verdict import Outcome, judge
from farm_workers.checking.candidates import first_stating, lacks_refused_text, may_do_better
from farm_workers.checking.stages import AskedCandidate, JudgedCandidate

#: A check's next program is not compiled with less remaining time.
LEAST_SECONDS = 0.1


class Trying:
    """Calls `judge` for the first candidate of a check, and then for the next ones; thread-safe."""

    def __init__(self, judge: Callable[[AskedCandidate], JudgedCandidate]) -> None:
        self._judge = judge

    def judged(self, own: AskedCandidate) -> Report:
        """Return the report of the last candidate that was judged, with the time of all of them.

        After a program that was refused for text above its proof, or that proves another statement, the
        check's next program is compiled within the remaining limits. It is not partial if it lacks the text
        for which the earlier one was refused: that text is a failed proof, and no permitted sorry.
        """
        place = first_stating(own.check)
        begun = own.instead(replace(own.check, candidates=own.check.candidates[place:])) if place else own
        judged = self._judge(begun.stopping())
        run = judged.report.run
        while (following := _following(judged)) is not None:
            found = self._judge(following.stopping())
            if _is_partial_without(judged, found.report):
                run = both(found.report.run, run)
                break
            place, judged, run = place + 1, found, both(run, found.report.run)
        negates = own.check.is_disproof
        return replace(judged.report, candidate=place, negates=negates, run=run)


def _is_partial_without(judged: JudgedCandidate, report: Report) -> bool:
    """Return whether the next program is partial because it admits a text that this one failed to prove."""
    if judge(report).outcome is not Outcome.PARTIAL:
        return False
    return lacks_refused_text(judged.candidate.check, judged.report)


def _following(judged: JudgedCandidate) -> AskedCandidate | None:
    """Return the next candidate, within the remaining limits; None if no further one can do better.

    The time to read the context does not count against the limits: the judged question's limits contain it.
    """
    check, run = judged.candidate.check, judged.report.run
    limits, granted = check.limits, judged.candidate.question.limits
    wall = min(limits.wall_seconds, granted.wall_seconds - run.counted_seconds)
    cpu = min(limits.cpu_seconds, granted.cpu_seconds - run.cpu_seconds)
    if len(check.candidates) == 1 or min(wall, cpu) < LEAST_SECONDS:
        return None
    if not may_do_better(check, judged.report):
        return None
    remaining = replace(limits, wall_seconds=wall, cpu_seconds=cpu)
    return judged.candidate.instead(replace(check, candidates=check.candidates[1:], limits=remaining))


def both(first: Execution, last: Execution) -> Execution:
    """Return the last of two runs with the time of both, and with what either may have lacked."""
    return replace(
        last,
        wall_seconds=first.wall_seconds + last.wall_seconds,
        waited_seconds=first.waited_seconds + last.waited_seconds,
        cpu_seconds=first.cpu_seconds + last.cpu_seconds,
        lacked=last.lacked or first.lacked,
    )
