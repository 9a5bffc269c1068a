"""Everything around a farm fails while it works, and every line still has the verdict that it has in peace.

The short form of `tests.chaos`; the long one is `make chaos`.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from commands import ENDLESS, entry, write
from farms import Quiet
from processes import PATIENCE, eventually

from tests.chaos.disturbances import DISTURBANCES
from tests.chaos.run import Plan, run


@pytest.mark.timeout(600 * PATIENCE)
def test_a_farm_that_is_disturbed_in_every_way_judges_as_one_in_peace() -> None:
    seed = int(os.environ.get("FARM_TEST_SEED") or int.from_bytes(os.urandom(4)))
    plan = Plan(
        seed=seed,
        lines=150,
        seconds=300.0,
        most=len(DISTURBANCES),
        pause_seconds=(0.2, 1.0),
        endless_seconds=3.0,
    )
    result = run(plan)
    assert not result.complaints, result.story


def test_a_check_that_is_lost_with_every_worker_ends_as_the_farm_s_failure(
    quiet: Quiet, tmp_path: Path
) -> None:
    manifest = write(tmp_path / "endless.jsonl", entry(ENDLESS, 1, timeout=60.0))
    with quiet.farm.started(tmp_path / "submit", "submit", manifest) as submit:
        while submit.process.poll() is None:
            with quiet.farm.started(tmp_path / "worker", "worker") as worker:
                eventually(lambda: submit.process.poll() is not None or _is_held(quiet, worker.process.pid))
                worker.process.send_signal(signal.SIGKILL)
    assert submit.process.returncode == 3, submit.said
    assert quiet.ask("SELECT outcome FROM attempts ORDER BY number") == ["lost"] * 3
    assert quiet.ask("SELECT reason FROM verdicts") == ["worker_lost"]


def _is_held(quiet: Quiet, worker: int) -> bool:
    """Whether this worker has a check now."""
    held = quiet.ask("SELECT worker FROM attempts WHERE ended_at IS NULL")
    return any(str(name).endswith(f":{worker}") for name in held)
