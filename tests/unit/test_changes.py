"""What a recheck changed: no failure of the farm is taken for a change of a proof."""

from __future__ import annotations

import pytest

from farm.judging.judgement import Judgement
from farm.judging.verdict import OUTCOMES, Outcome
from farm.reports.changes import Change, Changes, change_of

PROVED = Judgement("done", "proved", "ok")
WRONG = Judgement("done", "rejected", "error")
ADMITTED = Judgement("done", "rejected", "has_sorry")
SLOW = Judgement("done", "timeout", "wall_limit")
BUSY = Judgement("done", "timeout", "cpu_limit")
LARGE = Judgement("done", "memory_limit", "memory_limit")
FAILED = Judgement("done", "judge_error", "worker_lost")
CANCELLED = Judgement("cancelled", None, None)
WAITING = Judgement("queued", None, None)

EVERY = [Judgement("done", outcome, reason) for reason, outcome in OUTCOMES.items()]


@pytest.mark.parametrize(
    ("before", "now", "change"),
    [
        (PROVED, PROVED, Change.SAME),
        (PROVED, WRONG, Change.BROKEN),
        (PROVED, ADMITTED, Change.BROKEN),
        (WRONG, PROVED, Change.MENDED),
        (PROVED, SLOW, Change.OVER_LIMIT),
        (PROVED, LARGE, Change.OVER_LIMIT),
        (SLOW, PROVED, Change.WITHIN_LIMIT),
        (LARGE, PROVED, Change.WITHIN_LIMIT),
        (SLOW, BUSY, Change.SAME),
        (SLOW, LARGE, Change.OTHER),
        (WRONG, ADMITTED, Change.OTHER),
        (WRONG, SLOW, Change.OTHER),
        (SLOW, WRONG, Change.OTHER),
    ],
)
def test_a_change_is_told_by_what_it_says_of_the_proof(
    before: Judgement, now: Judgement, change: Change
) -> None:
    assert change_of(before, now) is change


@pytest.mark.parametrize("unknown", [FAILED, CANCELLED, WAITING])
@pytest.mark.parametrize("known", [PROVED, WRONG, SLOW])
def test_what_the_farm_did_not_judge_is_no_change_of_a_proof(unknown: Judgement, known: Judgement) -> None:
    assert change_of(unknown, known) is Change.UNKNOWN
    assert change_of(known, unknown) is Change.UNKNOWN


def test_a_proof_is_lost_exactly_where_the_farm_judged_that_it_is_none_any_more() -> None:
    for now in EVERY:
        changes = Changes()
        changes.add(PROVED, now)
        assert changes.lost == (now.verdict not in (Outcome.PROVED, Outcome.JUDGE_ERROR))
        assert changes.unjudged == (now.verdict == Outcome.JUDGE_ERROR)


def test_an_old_judge_error_is_not_a_line_that_the_recheck_could_not_judge() -> None:
    changes = Changes()
    changes.add(FAILED, PROVED)
    assert (changes.of(Change.UNKNOWN), changes.unjudged, changes.lost) == (1, 0, 0)


def test_the_worst_changes_come_first_and_among_them_the_most_lines() -> None:
    changes = Changes()
    pairs = [(PROVED, PROVED), (WRONG, PROVED), (PROVED, ADMITTED), (PROVED, WRONG), (PROVED, WRONG)]
    for before, now in pairs:
        changes.add(before, now)
    assert [(each.change, each.before, each.now, each.lines) for each in changes.counts()] == [
        ("broken", "proved", "rejected error", 2),
        ("broken", "proved", "rejected has_sorry", 1),
        ("mended", "rejected error", "proved", 1),
        ("same", "proved", "proved", 1),
    ]
    assert changes.lines == len(pairs)
