"""Costly work is done rarely; a server that once answered late makes nobody pause for minutes."""

from __future__ import annotations

import pytest

from farm.judging.states import Priority
from farm.pauses import MOST_SECONDS, pause_after
from farm.store.watermark import Front

BATCH = [("core", Priority.BATCH)]


@pytest.mark.parametrize(
    ("seconds", "times", "pause"),
    [
        (0.0, 20.0, 0.0),
        (0.01, 20.0, 0.2),
        (0.5, 20.0, MOST_SECONDS),
        # A pooler that waits 15 s before it tries the server again, and a failover of a minute.
        (15.0, 20.0, MOST_SECONDS),
        (60.0, 4.0, MOST_SECONDS),
    ],
)
def test_a_pause_is_in_proportion_and_bounded(seconds: float, times: float, pause: float) -> None:
    assert pause_after(seconds, times=times) == pause


def test_a_look_that_waited_for_a_server_hides_no_urgent_check_for_long() -> None:
    now = 100.0
    front = Front(clock=lambda: now)
    assert front.look(BATCH) == [0]
    now += 60.0
    front.looked(BATCH, [])
    assert front.look(BATCH) != [0]
    now += MOST_SECONDS
    assert front.look(BATCH) == [0]
