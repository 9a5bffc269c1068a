"""What workers and the farm tell is what Prometheus' own linter accepts."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest
from farm_workers.metrics import events
from farm_workers.metrics.registry import Metrics
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from farm.metrics.farm import FarmMetrics, exposition
from tests.farms import a_decision
from tests.metric_samples import CLAIM, READING, STATE


def of_a_worker(monkeypatch: pytest.MonkeyPatch) -> bytes:
    """Return what a worker shows that has done something of each kind."""
    metrics = Metrics()
    metrics.look = lambda: STATE
    monkeypatch.setattr(events, "_metrics", metrics)
    events.begun(CLAIM, waited_seconds=3.0)
    events.recorded(CLAIM, a_decision())
    events.image_begun("core", "made", 0.5)
    events.forked("core", "check")
    events.killed("wall")
    events.canary_judged("core", passed=True)
    events.examined("core", passed=True)
    return generate_latest(metrics.registry)


@pytest.mark.parametrize("who", ["worker", "farm"])
def test_promtool_accepts_what_is_told(
    program: Callable[[str], str], monkeypatch: pytest.MonkeyPatch, who: str
) -> None:
    told = of_a_worker(monkeypatch) if who == "worker" else exposition(FarmMetrics(lambda: READING))[0]
    assert list(text_string_to_metric_families(told.decode()))
    linted = subprocess.run([program("promtool"), "check", "metrics"], input=told, capture_output=True)
    assert (linted.returncode, linted.stderr.decode()) == (0, "")
