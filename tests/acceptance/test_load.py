"""Clients keep a farm busy over HTTP while its parts fail: the short form of `tests.load`."""

from __future__ import annotations

import os

import pytest

from tests.load.run import Plan, run
from tests.processes import PATIENCE


# What fails is drawn by lot: as a test of a change, it would blame the change for another's fault.
@pytest.mark.long
@pytest.mark.timeout(600 * PATIENCE)
@pytest.mark.parametrize("seconds", [8.0, 40.0])
def test_clients_of_a_farm_whose_parts_fail_are_told_the_right_verdicts(seconds: float) -> None:
    seed = int(os.environ.get("FARM_TEST_SEED") or int.from_bytes(os.urandom(4)))
    # Other tests may run beside it: latencies say nothing here.
    result = run(Plan(seed=seed, seconds=seconds, calm_seconds=seconds / 10, killed=0.02, compares=False))
    assert not result.complaints, result.story
