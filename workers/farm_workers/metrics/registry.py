"""Metrics step, the registry: defines every metric of one worker, with its labels and buckets."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from farm.judging.verdict import OUTCOMES, Reason
from farm.lean_text.policy.rules import RULES, Action
from farm.store.environments import STARTING, UNFIT
from farm_workers.metrics.state import WorkerState

_MIB, _GIB = 1 << 20, 1 << 30
#: The word for an environment whose checks a worker takes.
SERVING = "serving"
#: Limits are from a second to ten minutes; a small check takes some milliseconds.
CHECK_SECONDS = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0),
    *(10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0),
)
WAIT_SECONDS = (
    *(0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0),
    *(300.0, 900.0, 3600.0, 14400.0, 86400.0),
)
IMAGE_SECONDS = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
LIMIT_RATIO = (0.05, 0.1, 0.25, 0.5, 0.8, 0.9, 1.0)
MEMORY_BYTES = tuple(float(mib * _MIB) for mib in (32, 64, 128, 256, 512)) + tuple(
    float(gib * _GIB) for gib in (1, 2, 4, 8, 16, 32)
)


#: The reasons with which the seal refuses a module that Lean accepted; all other results of a seal but
#: `accepted` are limits, failures, or findings that only the seal can make, such as a sorry.
REFUSALS = (
    *(Reason.AXIOM, Reason.NATIVE_DECIDE, Reason.STATEMENT_MISMATCH, Reason.AUDIT),
    *(Reason.MALFORMED_OLEAN, Reason.KERNEL, Reason.KERNEL_LIMIT),
)
#: Why an attempt of a worker fails.
FAILURES = (Reason.BOX_FAILED, Reason.KILLED, Reason.BAD_ENVIRONMENT, Reason.NO_REPLY)
#: The causes of killing a boxed process.
_CAUSES = ("wall", "cpu", "memory", "processes", "starved", "cancelled", "out_of_memory")
#: The outcomes of a tactic (`farm_workers.sessions.outcome`).
STEP_OUTCOMES = (
    *("goals", "no_goals", "error", "timeout", "heartbeats", "memory", "crashed", "skipped", "lost"),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Histograms:
    """The histograms of an environment and a verdict; to look each up costs half of the measurement."""

    wall_seconds: Histogram
    cpu_seconds: Histogram
    memory_bytes: Histogram
    wall_ratio: Histogram
    cpu_ratio: Histogram
    memory_ratio: Histogram


class Metrics:
    """The metrics of one worker, all in `registry`; `look` returns the worker's state once it is set."""

    def __init__(self) -> None:
        # Otherwise a gauge beside each counter says when that began.
        disable_created_metrics()  # type: ignore[no-untyped-call] # has no types
        self.registry = CollectorRegistry()
        self.look: Callable[[], WorkerState] | None = None
        self._measured: dict[tuple[str, str], Histograms] = {}
        self._add_checks()
        self._add_leases()
        self._add_images()
        self._add_canaries()
        self.registry.register(_Now(self))
        ProcessCollector(registry=self.registry)

    def unready(self) -> str | None:
        """Return why the worker takes no checks, or not those of all its environments; None where it does."""
        if self.look is None:
            return "the worker is starting: it examines its isolation and its Leans"
        if not self.look().is_database_up:
            return "the worker cannot reach PostgreSQL, and waits for it; its log has the error"
        if not self.look().is_healthy:
            return "the worker is unhealthy: it judged a known program wrongly; its log says which"
        if self.look().pending:
            told = "; ".join(f"{each.name}: {each.words}" for each in self.look().pending)
            return f"the worker does not serve all of its environments: {told}"
        return None

    def measured(self, environment: str, verdict: str) -> Histograms:
        """Return the histograms of an environment's checks with this verdict."""
        if (found := self._measured.get((environment, verdict))) is None:
            ratio = self.limit_ratio.labels
            found = self._measured[environment, verdict] = Histograms(
                wall_seconds=self.wall_seconds.labels(environment, verdict),
                cpu_seconds=self.cpu_seconds.labels(environment, verdict),
                memory_bytes=self.memory_bytes.labels(environment),
                wall_ratio=ratio(environment, "wall"),
                cpu_ratio=ratio(environment, "cpu"),
                memory_ratio=ratio(environment, "memory"),
            )
        return found

    def begin(self, environments: Mapping[str, Sequence[str]]) -> None:
        """Initialise every counter with 0 for these environments and tiers.

        A counter that appeared with its first event would hide that event: a rate needs a value before it.
        """
        for environment, tiers in environments.items():
            self._begin(environment, tiers)
        for rule in RULES:
            for action in (Action.REPORT, Action.REJECT):
                self.policy_hits.labels(rule, action)
        for cause in _CAUSES:
            self.kills.labels(cause)
        for outcome in ("returned", "judge_error"):
            self.returned.labels(outcome)

    def _begin(self, environment: str, tiers: Sequence[str]) -> None:
        for tier in tiers:
            for reason, outcome in OUTCOMES.items():
                self.checks.labels(environment, tier, outcome, reason)
        known: dict[Counter, Sequence[str]] = {
            self.seals: ("accepted", *REFUSALS),
            self.failures: FAILURES,
            self.images: ("made", "refused", "failed"),
            self.forks: ("check", "seal", "session"),
            self.steps: STEP_OUTCOMES,
            self.canaries: ("passed", "failed"),
            self.contradictions: ("lean", "other"),
        }
        for counter, words in known.items():
            for word in words:
                counter.labels(environment, word)
        self.disagreements.labels(environment)

    def _add_checks(self) -> None:
        self.checks = self._counter(
            "farm_checks", "Recorded checks.", "environment", "tier", "verdict", "reason"
        )
        self.wall_seconds = self._histogram(
            "farm_check_wall_seconds", "Wall time of checks.", CHECK_SECONDS, "environment", "verdict"
        )
        self.cpu_seconds = self._histogram(
            "farm_check_cpu_seconds", "Processor time of checks.", CHECK_SECONDS, "environment", "verdict"
        )
        self.memory_bytes = self._histogram(
            "farm_check_peak_memory_bytes", "Peak memory of checks.", MEMORY_BYTES, "environment"
        )
        self.limit_ratio = self._histogram(
            "farm_check_limit_ratio", "Share of a limit that was used.", LIMIT_RATIO, "environment", "limit"
        )
        self.seals = self._counter("farm_seals", "Sealed modules.", "environment", "result")
        self.disagreements = self._counter(
            "farm_kernels_disagree", "Modules that the second kernel alone refused.", "environment"
        )
        self.contradictions = self._counter(
            "farm_contradictions",
            "Verdicts on statements that are proved and disproved.",
            "environment",
            "axioms",
        )
        self.policy_hits = self._counter(
            "farm_policy_hits", "Checks in which a rule of the policy hit.", "rule", "action"
        )
        self.failures = self._counter(
            "farm_failures", "Attempts at which the farm failed.", "environment", "reason"
        )

        self.steps = self._counter(
            "farm_steps", "Tactics that were tried on a state of a session.", "environment", "outcome"
        )
        self.sessions = Gauge(
            "farm_sessions", "Sessions whose states are held by processes.", registry=self.registry
        )

    def _add_leases(self) -> None:
        self.wait_seconds = self._histogram(
            "farm_check_wait_seconds",
            "How long checks waited until they began.",
            WAIT_SECONDS,
            "environment",
            "class",
        )
        self.returned = self._counter("farm_leases_returned", "Leases that were given back.", "outcome")
        self.lost = self._counter("farm_leases_lost", "Checks given up because their lease had ended.")
        self.refused = self._counter("farm_results_refused", "Late results that were refused.")
        self.sweeps = self._counter("farm_sweeps", "Sweeps that were completed.")
        self.expired = self._counter("farm_leases_expired", "Expired leases that sweeps took back.")
        self.late_lines = self._counter("farm_lines_expired", "Lines cancelled at their deadline.")
        self.retries = self._counter("farm_database_retries", "Waits for a PostgreSQL that did not answer.")

    def _add_images(self) -> None:
        self.images = self._counter("farm_images_begun", "Images that were begun.", "environment", "result")
        self.image_seconds = self._histogram(
            "farm_image_seconds", "How long it took to make an image.", IMAGE_SECONDS, "environment"
        )
        self.forks = self._counter("farm_forks", "Forks of images.", "environment", "purpose")
        self.kills = self._counter("farm_kills", "Boxed processes that were killed.", "cause")
        self.box_seconds = self._counter("farm_box_seconds", "Wall time of boxed processes.")
        self.core_wait_seconds = self._counter(
            "farm_core_wait_seconds", "Wall time in which boxed processes waited for a core."
        )

    def _add_canaries(self) -> None:
        self.forkable = Gauge(
            "farm_environment_forkable",
            "Whether the Lean of an environment can be forked on this node.",
            ("environment",),
            registry=self.registry,
        )
        self.canaries = self._counter("farm_canaries", "Known programs judged.", "environment", "result")
        self.probes = Gauge(
            "farm_probes",
            "Lines that must be proved in an environment, as they came out last.",
            ("environment", "result"),
            registry=self.registry,
        )
        self.canary_wrong = Gauge(
            "farm_canary_wrong",
            "Whether the known programs came out wrong when they were last judged.",
            ("environment",),
            registry=self.registry,
        )
        self.canary_time = Gauge(
            "farm_canary_timestamp_seconds",
            "When a canary last passed or failed.",
            ("environment", "result"),
            registry=self.registry,
        )

    def _counter(self, name: str, meaning: str, *labels: str) -> Counter:
        return Counter(name, meaning, labels, registry=self.registry)

    def _histogram(self, name: str, meaning: str, buckets: Iterable[float], *labels: str) -> Histogram:
        return Histogram(name, meaning, labels, buckets=tuple(buckets), registry=self.registry)


_GAUGES: Mapping[str, str] = {
    "farm_worker_slots": "Checks that the worker can run at once.",
    "farm_worker_busy_slots": "Slots that are at work now.",
    "farm_worker_leases": "Checks that the worker holds.",
    "farm_worker_healthy": "Whether the worker takes checks.",
    "farm_worker_broker_up": "Whether Redis answered the last request.",
    "farm_worker_database_up": "Whether PostgreSQL answers this worker.",
}


class _Now(Collector):
    """Collects the state of a worker at a scrape; nothing before the worker serves."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def describe(self) -> Iterator[Metric]:
        """Yield the metrics without values, which reserves their names."""
        for name, meaning in _GAUGES.items():
            yield GaugeMetricFamily(name, meaning)
        yield from self._families()
        yield self._environments()

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics."""
        if self._metrics.look is None:
            return
        state = self._metrics.look()
        values = (
            *(state.slots, state.busy, state.leases),
            *(state.is_healthy, state.is_broker_up, state.is_database_up),
        )
        for (name, meaning), value in zip(_GAUGES.items(), values, strict=True):
            yield GaugeMetricFamily(name, meaning, float(value))
        info, images, sizes = self._families()
        info.add_metric([state.version, state.worker, state.isolation, state.way], 1)
        number: Tally[str] = Tally()
        size: Tally[str] = Tally()
        for environment, memory in state.images:
            number[environment] += 1
            size[environment] += memory
        for environment in number:
            images.add_metric([environment], number[environment])
            sizes.add_metric([environment], size[environment])
        environments = self._environments()
        for name, word in [
            *((n, SERVING) for n in state.serving),
            *((p.name, p.state) for p in state.pending),
        ]:
            for each in (SERVING, STARTING, UNFIT):
                environments.add_metric([name, each], float(word == each))
        yield from (info, images, sizes, environments)

    @staticmethod
    def _environments() -> GaugeMetricFamily:
        meaning = "Whether an environment of this worker is in this state: serving, starting, unfit."
        return GaugeMetricFamily("farm_worker_environment_state", meaning, labels=["environment", "state"])

    @staticmethod
    def _families() -> tuple[GaugeMetricFamily, GaugeMetricFamily, GaugeMetricFamily]:
        labels = ("version", "worker", "isolation", "way")
        return (
            GaugeMetricFamily(
                "farm_worker_info", "Version, isolation and way of this worker.", labels=labels
            ),
            GaugeMetricFamily("farm_images", "Images that can fork now.", labels=["environment"]),
            GaugeMetricFamily(
                "farm_images_memory_bytes", "Private memory of these images.", labels=["environment"]
            ),
        )
