"""Everything around a farm fails while it works, and every line still has the verdict that it has in peace.

The short form of `tests.chaos`; the long one is `make chaos`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.chaos import searching
from tests.chaos.disturbances import DISTURBANCES
from tests.chaos.facts import Facts
from tests.chaos.field import Ground
from tests.chaos.run import Plan, run
from tests.commands import ENDLESS, entry, write
from tests.farms import Quiet
from tests.processes import PATIENCE, eventually


# What it disturbs is drawn by lot: as a test of a change, it would blame the change for another's fault.
@pytest.mark.long
@pytest.mark.timeout(600 * PATIENCE)
@pytest.mark.parametrize(("lines", "most"), [(30, 4), (150, len(DISTURBANCES))])
def test_a_farm_that_is_disturbed_judges_as_one_in_peace(lines: int, most: int) -> None:
    seed = int(os.environ.get("FARM_TEST_SEED") or int.from_bytes(os.urandom(4)))
    plan = Plan(
        seed=seed,
        lines=lines,
        seconds=300.0,
        most=most,
        pause_seconds=(0.1, 0.7),
        endless_seconds=4.0,
    )
    result = run(plan)
    assert not result.complaints, result.story


@pytest.mark.long
@pytest.mark.timeout(900 * PATIENCE)
@pytest.mark.parametrize(
    ("searches", "disturbances", "kinds"),
    [(4, 4, searching.KILLS), (20, 60, searching.MORE)],
    ids=["short", "long"],
)
def test_searches_on_a_farm_whose_parts_are_killed_end_as_in_peace(
    searches: int, disturbances: int, kinds: Sequence[Callable[[Ground], str]]
) -> None:
    seed = int(os.environ.get("FARM_TEST_SEED") or int.from_bytes(os.urandom(4)))
    plan = searching.Plan(seed=seed, searches=searches, disturbances=disturbances, kinds=kinds)
    result = searching.run(plan)
    assert not result.complaints, result.story


def test_a_check_that_is_lost_with_every_worker_ends_as_the_farm_s_failure(
    quiet: Quiet, tmp_path: Path
) -> None:
    manifest = write(tmp_path / "endless.jsonl", entry(ENDLESS, 1, timeout=60.0))
    facts = Facts(quiet.engine.url.render_as_string(hide_password=False))
    with quiet.farm.forked(tmp_path / "submit", "submit", manifest) as submit:
        ended = submit.process.poll
        while ended() is None:
            with quiet.farm.forked(tmp_path / "worker", "worker") as worker:
                pid = worker.process.pid
                eventually(lambda pid=pid: ended() is not None or facts.is_holding(pid), seconds=60)
                worker.process.kill()
    assert submit.ended() == 3, submit.said
    (run,) = facts.runs(manifest)
    assert [attempt.outcome for attempt in facts.attempts(run)] == ["lost"] * 3
    assert [line.verdict for line in facts.lines(run)] == [("judge_error", "worker_lost")]
