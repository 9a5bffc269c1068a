"""Metrics step, the farm: its state in PostgreSQL, read at each scrape of Prometheus."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from farm.errors import FarmError
from farm.judging.verdict import Outcome
from farm.log import logger
from farm.pauses import pause_after
from farm.store.readings import FarmReading
from farm.version import farm_version

#: Seconds for which a snapshot is reused,
_FRESH_SECONDS = 1.0
#: or this multiple of the time it took, if longer: PostgreSQL has other work,
_PAUSES = 20.0
#: but no longer than this: a snapshot also shows that PostgreSQL answers.
_MOST_SECONDS = 30.0
#: Seconds that a scrape waits for another's snapshot.
_WAIT_SECONDS = 5.0

#: Ends of attempts, and the checks that answer lines. They are reported as 0 before their first event: a
#: counter that began with its first event would hide that event from `increase`.
_ENDS = (*Outcome, "returned", "cancelled", "lost")
_ANSWERS = ("own", "shared")

_log = logger(__name__)

_F = TypeVar("_F", bound=GaugeMetricFamily | CounterMetricFamily)


class FarmMetrics(Collector):
    """Collects the state of the farm with `read`; threads may scrape at once."""

    def __init__(
        self, read: Callable[[], FarmReading], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._read, self._clock = read, clock
        self._lock = threading.Lock()
        self._reading: FarmReading | None = None
        self._fresh_until = 0.0

    def describe(self) -> Iterator[Metric]:
        """Yield the metrics without values, without asking PostgreSQL."""
        yield _gauge("farm_up", "Whether PostgreSQL answered.")
        yield from _families(None)

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics; if PostgreSQL does not answer, only `farm_up`."""
        reading = self._recent()
        up = _gauge("farm_up", "Whether PostgreSQL answered.")
        yield _with(up, [((), float(reading is not None))])
        if reading is not None:
            yield from _families(reading)

    def _recent(self) -> FarmReading | None:
        """Return a fresh reading; None if PostgreSQL gives none."""
        if not self._lock.acquire(timeout=_WAIT_SECONDS):
            _log.warning("PostgreSQL did not return the metrics within %g s", _WAIT_SECONDS)
            return None
        try:
            if self._clock() >= self._fresh_until:
                self._reading = self._new()
                seconds = 0.0 if self._reading is None else self._reading.seconds
                fresh = max(_FRESH_SECONDS, pause_after(seconds, times=_PAUSES, most=_MOST_SECONDS))
                self._fresh_until = self._clock() + fresh
            return self._reading
        finally:
            self._lock.release()

    def _new(self) -> FarmReading | None:
        try:
            return self._read()
        except FarmError as error:
            _log.warning("The metrics could not be read: %s", str(error).partition("\n")[0])
            return None


def registered(metrics: FarmMetrics) -> CollectorRegistry:
    """Return a registry with these metrics and no others."""
    registry = CollectorRegistry()
    registry.register(metrics)
    return registry


def exposition(metrics: FarmMetrics, accepted: str = "") -> tuple[bytes, str]:
    """Return metrics in the format that a client's `Accept` asks for, and the name of that format."""
    encode, content_type = choose_encoder(accepted)
    return encode(registered(metrics)), content_type


def _families(reading: FarmReading | None) -> Iterator[Metric]:
    """Yield each metric with its values, without values if `reading` is None."""
    yield from _facts(reading)
    yield from _queue(reading)
    yield from _counted(reading)
    yield from _runs(reading)


def _facts(reading: FarmReading | None) -> Iterator[Metric]:
    info = _gauge("farm_info", "Version of the farm and revision of its database.", "version", "schema")
    seconds = _gauge("farm_reading_seconds", "How long reading these numbers took.")
    size = _gauge("farm_database_bytes", "Size of the database.")
    oldest = _gauge("farm_oldest_run_seconds", "How long ago the oldest stored run was submitted.")
    silent = _gauge(
        "farm_environment_silent_seconds",
        "Seconds since a worker last reported that it serves it.",
        "environment",
    )
    if reading is not None:
        _with(info, [((farm_version(), reading.schema), 1)])
        _with(seconds, [((), reading.seconds)])
        _with(size, [((), reading.database_bytes)])
        _with(oldest, [((), reading.oldest_run_seconds)])
        _with(silent, _by_one(reading.silent_seconds))
    yield from (info, seconds, size, oldest, silent)


def _queue(reading: FarmReading | None) -> Iterator[Metric]:
    waiting = _gauge("farm_queue_checks", "Checks that wait for a worker.", "environment", "class")
    oldest = _gauge(
        "farm_queue_oldest_seconds", "How long the oldest of the next checks waits.", "environment", "class"
    )
    held = _gauge("farm_leases_held", "Checks that workers hold.", "environment")
    overdue = _gauge("farm_leases_overdue", "Expired leases that no worker has taken back.")
    if reading is not None:
        _with(waiting, reading.waiting.items())
        _with(oldest, reading.oldest_seconds.items())
        _with(held, _by_one(reading.held))
        _with(overdue, [((), reading.overdue)])
    yield from (waiting, oldest, held, overdue)


def _counted(reading: FarmReading | None) -> Iterator[Metric]:
    attempts = CounterMetricFamily("farm_attempts", "Attempts that ended.", labels=["outcome"])
    lines = CounterMetricFamily("farm_lines", "Lines and items that were submitted.", labels=["check"])
    if reading is not None:
        _with(attempts, _by_one({**dict.fromkeys(_ENDS, 0), **reading.attempts}))
        _with(lines, _by_one({**dict.fromkeys(_ANSWERS, 0), **reading.lines}))
    yield from (attempts, lines)


def _runs(reading: FarmReading | None) -> Iterator[Metric]:
    in_progress = _gauge("farm_runs_in_progress", "Runs of manifests that have unfinished lines.")
    left = _gauge("farm_run_lines_left", "Unfinished lines of the newest of these runs.", "run")
    lag = _gauge("farm_run_export_lag_seconds", "How long the oldest verdict was not exported.", "run")
    if reading is not None:
        _with(in_progress, [((), reading.in_progress)])
        _with(left, _by_one(reading.left))
        _with(lag, _by_one(reading.lags))
    yield from (in_progress, left, lag)


def _gauge(name: str, meaning: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, meaning, labels=labels)


def _by_one(values: Mapping[str, float]) -> Iterator[tuple[Sequence[str], float]]:
    return (((label,), value) for label, value in values.items())


def _with(family: _F, values: Iterable[tuple[Sequence[str], float]]) -> _F:
    for labels, value in values:
        family.add_metric(labels, value)
    return family
