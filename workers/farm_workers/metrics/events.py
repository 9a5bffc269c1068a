"""Metrics step, the events: counts the events of a worker; without metrics each call does nothing.

Each function is called where the event happens, by any thread, and never raises or waits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from farm.judging.states import Priority
from farm.judging.tiers import Tier
from farm.judging.verdict import Outcome, Reason

if TYPE_CHECKING:
    from farm.store.attempt import Claim, Decision
    from farm.store.sweeping import Swept
    from farm_workers.metrics.registry import Metrics
    from farm_workers.metrics.state import WorkerState

_metrics: Metrics | None = None

_CLASSES = {int(each): each.name.lower() for each in Priority}


@contextmanager
def served(*, address: str, port: int) -> Iterator[str]:
    """Count events inside the block, serve the metrics over HTTP, and give the URL; raises `UsageError`."""
    global _metrics  # events come from layers that know nothing of a worker
    from farm.metrics.port import exposed  # only a worker that serves metrics pays for the import
    from farm_workers.metrics.registry import Metrics

    metrics = Metrics()
    with exposed(metrics.registry, address=address, port=port, unready=metrics.unready) as url:
        _metrics = metrics
        try:
            yield url
        finally:
            _metrics = None


def started(environments: Mapping[str, Sequence[str]]) -> None:
    """Initialise the counters of the environments that this worker serves, on their tiers, with 0."""
    if _metrics is not None:
        _metrics.begin(environments)


def watch(look: Callable[[], WorkerState]) -> None:
    """Have each scrape ask this for the worker's state."""
    if _metrics is not None:
        _metrics.look = look


def begun(claim: Claim, *, waited_seconds: float) -> None:
    """Count a check that begins, by how long it had waited."""
    if _metrics is not None:
        name = _CLASSES.get(claim.priority, str(claim.priority))  # a newer release may have others
        _metrics.wait_seconds.labels(claim.environment, name).observe(waited_seconds)


def recorded(claim: Claim, decision: Decision) -> None:
    """Count a check whose verdict is committed."""
    if (metrics := _metrics) is None:
        return
    environment, verdict, run = claim.environment, decision.verdict, decision.report.run
    limits, assurance = claim.check.limits, claim.check.assurance
    tier = Tier.LEAN if assurance is None else assurance.tier
    metrics.checks.labels(environment, tier, verdict.outcome, verdict.reason).inc()
    measured = metrics.measured(environment, verdict.outcome)
    measured.wall_seconds.observe(run.wall_seconds)
    measured.cpu_seconds.observe(run.cpu_seconds)
    measured.memory_bytes.observe(run.peak_memory_kib << 10)
    measured.wall_ratio.observe(run.counted_seconds / limits.wall_seconds)
    measured.cpu_ratio.observe(run.cpu_seconds / limits.cpu_seconds)
    measured.memory_ratio.observe(run.peak_memory_kib / (limits.memory_mib << 10))
    _recorded_of_module(metrics, claim, decision)


def _recorded_of_module(metrics: Metrics, claim: Claim, decision: Decision) -> None:
    report, verdict = decision.report, decision.verdict
    if report.audit is not None or report.kernel_limit is not None:
        accepted = (Outcome.PROVED, Outcome.DISPROVED, Outcome.STATED)
        result = "accepted" if verdict.outcome in accepted else str(verdict.reason)
        metrics.seals.labels(claim.environment, result).inc()
    if verdict.reason is Reason.KERNELS_DISAGREE:
        metrics.disagreements.labels(claim.environment).inc()
    refused = () if report.refused is None else (report.refused,)
    for rule, action in {(hit.rule, hit.action) for hit in (*report.hits, *refused)}:
        metrics.policy_hits.labels(rule, action).inc()


def contradicted(claim: Claim, *, alarms: bool) -> None:
    """Count a recorded verdict on a statement that is proved and disproved."""
    if _metrics is not None:
        _metrics.contradictions.labels(claim.environment, "lean" if alarms else "other").inc()


def result_refused() -> None:
    """Count a late result that changed nothing."""
    if _metrics is not None:
        _metrics.refused.inc()


def returned(outcome: str) -> None:
    """Count a lease that was given back, by the outcome of its attempt."""
    if _metrics is not None:
        _metrics.returned.labels(outcome).inc()


def farm_failed(environment: str, reason: Reason) -> None:
    """Count an attempt at which the farm failed."""
    if _metrics is not None:
        _metrics.failures.labels(environment, reason).inc()


def lease_lost() -> None:
    """Count a check that this worker gave up because its lease had ended."""
    if _metrics is not None:
        _metrics.lost.inc()


def swept(swept: Swept) -> None:
    """Count a sweep, the leases that it took back, the checks that it ended, and the lines it cancelled."""
    if _metrics is not None:
        _metrics.sweeps.inc()
        _metrics.expired.inc(swept.taken_back)
        _metrics.late_lines.inc(swept.past_deadline)
        for each in swept.given_up:
            labels = each.environment, each.tier, Outcome.JUDGE_ERROR, Reason.WORKER_LOST
            _metrics.checks.labels(*labels).inc(each.checks)


def database_was_away() -> None:
    """Count a wait for PostgreSQL."""
    if _metrics is not None:
        _metrics.retries.inc()


def image_begun(environment: str, result: str, seconds: float) -> None:
    """Count an image that was ``made``, ``refused`` or ``failed`` after `seconds`."""
    if _metrics is not None:
        _metrics.images.labels(environment, result).inc()
        if result == "made":
            _metrics.image_seconds.labels(environment).observe(seconds)


def forked(environment: str, purpose: str) -> None:
    """Count a fork of an image for a ``check`` or a ``seal``."""
    if _metrics is not None:
        _metrics.forks.labels(environment, purpose).inc()


def stepped(environment: str, outcomes: Iterable[str]) -> None:
    """Count the outcomes of tactics."""
    if _metrics is not None:
        for each in outcomes:
            _metrics.steps.labels(environment, each).inc()


def holding(sessions: int) -> None:
    """Note how many sessions there are."""
    if _metrics is not None:
        _metrics.sessions.set(sessions)


def killed(cause: str) -> None:
    """Count a boxed process that was killed at a limit, ``starved``, or because it was ``cancelled``."""
    if _metrics is not None:
        _metrics.kills.labels(cause).inc()


def watched(wall_seconds: float, waited_seconds: float) -> None:
    """Count the time of a boxed process, and the part of it in which it waited for a core."""
    if _metrics is not None:
        _metrics.box_seconds.inc(wall_seconds)
        _metrics.core_wait_seconds.inc(waited_seconds)


def examined(environment: str, *, passed: bool) -> None:
    """Note whether the known programs of an environment came out right when they were last judged."""
    if _metrics is not None:
        _metrics.canary_wrong.labels(environment).set(not passed)


def forkable(environment: str, *, is_so: bool) -> None:
    """Note whether the Lean of an environment can be forked."""
    if _metrics is not None:
        _metrics.forkable.labels(environment).set(is_so)


def probed(environment: str, *, proved: int, failed: int) -> None:
    """Note how the probes of an environment came out."""
    if _metrics is not None:
        _metrics.probes.labels(environment, "proved").set(proved)
        _metrics.probes.labels(environment, "failed").set(failed)


def canary_judged(environment: str, *, passed: bool) -> None:
    """Count a known program that was judged, and when."""
    if _metrics is not None:
        result = "passed" if passed else "failed"
        _metrics.canaries.labels(environment, result).inc()
        _metrics.canary_time.labels(environment, result).set(time.time())
