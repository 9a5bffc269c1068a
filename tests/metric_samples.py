"""What metrics are told of, for tests: a reading of a farm, a worker's state and a claim."""

from __future__ import annotations

from datetime import UTC, datetime

from farm_workers.metrics.state import WorkerState

from farm.judging.assurance import Assurance
from farm.judging.job import Check
from farm.limits import Limits
from farm.store.attempt import Claim
from farm.store.readings import FarmReading

READING = FarmReading(
    schema="0020",
    seconds=0.01,
    database_bytes=1 << 20,
    oldest_run_seconds=90_000.0,
    waiting={("core", "batch"): 3},
    oldest_seconds={("core", "batch"): 7.5},
    held={"core": 2},
    overdue=1,
    silent_seconds={"core": 1.5},
    attempts={"proved": 5, "lost": 1},
    lines={"own": 8, "shared": 2},
    in_progress=1,
    left={"run1": 4},
    lags={"run1": 12.0},
)

STATE = WorkerState(
    version="1",
    worker="host:1",
    isolation="cgroup2+bwrap",
    way="forked",
    slots=2,
    busy=1,
    leases=3,
    is_healthy=True,
    is_broker_up=False,
    is_database_up=True,
    images=[("core", 100), ("core", 50), ("mathlib", 7)],
)

CLAIM = Claim(
    check_id=1,
    attempt=1,
    claimed_at=datetime(2026, 1, 31, tzinfo=UTC),
    failures=0,
    suspect=False,
    environment="core",
    check=Check.of(
        program="",
        limits=Limits(wall_seconds=2.0, cpu_seconds=4.0, memory_mib=64),
        assurance=Assurance(tier="audit"),
    ),
    priority=1,
    waited_seconds=3.0,
)
