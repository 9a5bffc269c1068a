"""Benchmarks, metrics: what they cost a worker, and how long a reading takes where very much is stored."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

from farm_workers.metrics import events

from farm.judging.assurance import Assurance
from farm.judging.job import Check
from farm.judging.report import Answer, Execution, Report
from farm.judging.verdict import judge
from farm.store import readings
from farm.store.attempt import Claim, Decision
from tests.bench.around.site import farm_at_work
from tests.bench.checks.figures import Figure
from tests.bulk_rows import fill
from tests.reports import SEALED

#: What is stored when it is read: lines in runs, and how many of them wait.
LINES, RUNS, WAITING = 1_000_000, 50, 100_000
_CHECKS_A_SECOND = 200
_CHECKS, _TURNS = 20_000, 9
_READINGS = 9

_REPORT = Report(
    run=Execution(exit_status=0, wall_seconds=0.02, cpu_seconds=0.01, peak_memory_kib=40_000),
    answer=Answer(reached_end=True),
    way="forked",
    audit=SEALED,
)
_CLAIM = Claim(
    check_id=1,
    attempt=1,
    claimed_at=datetime(2026, 1, 31, tzinfo=UTC),
    failures=0,
    suspect=False,
    environment="core",
    check=Check.of(program="", assurance=Assurance()),
)
_DECISION = Decision(
    report=_REPORT, verdict=judge(_REPORT), digest="0" * 64, toolchain="none", checker_version=""
)


def metrics() -> Iterator[Figure]:
    """Count checks as a worker does, and read a farm with a million lines."""
    yield Figure(
        key="metrics_share",
        name=f"a worker's metrics at {_CHECKS_A_SECOND} checks/s, of one core",
        unit="%",
        samples=tuple(_share() for _ in range(_TURNS)),
        at_most=1.0,
    )
    with farm_at_work() as farm:
        sys.stderr.write(f"Storing {LINES} lines\n")
        fill(farm.engine, runs=RUNS, lines=LINES // RUNS, done=LINES - WAITING)
        farm.settle()
        samples = tuple(readings.read(farm.engine).seconds * 1000 for _ in range(_READINGS))
        yield Figure(
            key="metrics_reading",
            name=f"reading the farm's metrics, {LINES} lines stored, {WAITING} waiting",
            unit="ms",
            samples=samples,
            at_most=300,
        )
        yield Figure(
            key="metrics_once",
            name="farm metrics --once, the whole command",
            unit="ms",
            samples=tuple(_once({**os.environ, **farm.settings}) for _ in range(3)),
        )


def _share() -> float:
    """Return what the metrics of so many checks cost, in percent of a second of processor time."""
    proved, failed = _DECISION, replace(_DECISION, report=replace(_REPORT, audit=None))
    with events.served(address="127.0.0.1", port=0):
        began = time.process_time()
        for number in range(_CHECKS):
            events.begun(_CLAIM, waited_seconds=0.1)
            events.forked("core", "check")
            events.forked("core", "seal")
            events.recorded(_CLAIM, failed if number % 2 else proved)
            events.killed("wall")
        seconds = time.process_time() - began
    return 100 * seconds / _CHECKS * _CHECKS_A_SECOND


def _once(environment: dict[str, str]) -> float:
    command = [sys.executable, "-P", "-m", "farm", "metrics", "--once"]
    began = time.monotonic()
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    return (time.monotonic() - began) * 1000
