"""Overview: what the farm judges, what waits, and whether its cores are at work."""

from __future__ import annotations

from docker.monitoring.dashboards.board import Board
from docker.monitoring.dashboards.panels import STEP, Number, Prom, Series, here, high, per_second

_CHECKS = per_second("farm_checks_total", by="verdict")
_WAIT = per_second("farm_check_wait_seconds_bucket", by="le, class")
# Several replicas may show the farm's own numbers; each number counts once.
_QUEUE = f"max by (environment, class) ({here('farm_queue_checks')})"
_OLDEST = f"max by (environment, class) ({here('farm_queue_oldest_seconds')})"

_NOW = (
    Number(
        "Database answers",
        """1 when PostgreSQL answers the farm's metrics exporter. At 0 nothing is judged: see
        FarmDatabaseDown in the runbook. `none` means that nobody exports the farm's own metrics.""",
        Prom("max(farm_up)", now=True),
        width=4,
    ),
    Number(
        "Workers that take checks",
        """Workers that answer Prometheus and judge known programs correctly. A number below that of your
        nodes means that a worker is down or unfit: look at the dashboard Nodes.""",
        Prom("sum(farm_worker_healthy)", now=True),
        width=4,
    ),
    Number(
        "Checks waiting",
        """Checks that no worker has taken yet, in all classes. A large number is normal after a large
        submit; watch whether it falls.""",
        Prom(f"sum({_QUEUE}) or vector(0)", now=True),
        width=4,
    ),
    Number(
        "Oldest wait",
        """How long the check that is due next has waited. In the class batch hours are normal while a large
        run is judged; in interactive and online seconds are.""",
        Prom(f"max({_OLDEST}) or vector(0)", now=True),
        unit="s",
        width=4,
    ),
    Number(
        "Busy slots",
        """Share of the workers' slots that are at work. Near 100 % while checks wait is what you pay for; a
        low share while checks wait means that something keeps the workers from working.""",
        Prom("sum(farm_worker_busy_slots) / sum(farm_worker_slots)", now=True),
        unit="percentunit",
        width=4,
    ),
    Number(
        "Runs in progress",
        "Runs of manifests that have unfinished lines. Batches over HTTP are not among them.",
        Prom("max(farm_runs_in_progress)", now=True),
        width=4,
    ),
)

_FLOW = (
    Series(
        "Verdicts per second",
        """Verdicts that workers recorded, by verdict; the height of the stack is the farm's throughput. A
        band that grows while the height stays is a change in the proofs, not in the farm.""",
        Prom(_CHECKS, "{{verdict}}"),
        unit="ops",
        options={"stacked": True},
    ),
    Series(
        "Verdict mix",
        """The same as shares of all verdicts. Sudden steps usually follow a new model or dataset; a step of
        judge_error follows a broken node or environment.""",
        Prom(f"{_CHECKS} / ignoring (verdict) group_left {per_second('farm_checks_total')}", "{{verdict}}"),
        unit="percentunit",
        options={"stacked": True, "most": 1},
    ),
    Series(
        "Checks waiting",
        """Length of each queue, by environment and priority class. A queue that only grows needs more
        workers for its environment.""",
        Prom(_QUEUE, "{{environment}} {{class}}"),
    ),
    Series(
        "Age of the oldest waiting check",
        """How long the check that is due next has waited, by environment and class. A line that rises one
        second per second means that nobody takes checks from that queue.""",
        Prom(_OLDEST, "{{environment}} {{class}}"),
        unit="s",
    ),
    Series(
        "Wait until a worker takes a check",
        """Median and 95th percentile of the time that checks waited before a worker took them, by class.
        This is what users of interactive and online feel before any proof is read.""",
        [
            Prom(f"histogram_quantile(0.5, {_WAIT})", "{{class}} median"),
            Prom(high("farm_check_wait_seconds", "class"), "{{class}} 95 %"),
        ],
        unit="s",
    ),
    Series(
        "Slots",
        """Slots that the workers have, and slots at work. The gap between them while checks wait is lost
        capacity.""",
        [
            Prom("sum(farm_worker_slots)", "slots"),
            Prom("sum(farm_worker_busy_slots)", "busy"),
        ],
    ),
    Series(
        "Time of a check",
        """95th percentile of the wall time of checks, by verdict. proved that creeps towards the limit means
        that the next harder set will time out.""",
        Prom(high("farm_check_wall_seconds", "verdict"), "{{verdict}}"),
        unit="s",
    ),
    Series(
        "Failures of the farm",
        """Attempts per second at which the farm itself failed, by environment and reason. These say nothing
        about proofs; each check is tried again. Zero is normal.""",
        Prom(per_second("farm_failures_total", by="environment, reason"), "{{environment}} {{reason}}"),
        unit="ops",
    ),
    Series(
        "Lines submitted per second",
        """Lines and items as clients submitted them: `own` needed a check, `shared` found a check or a
        verdict that was there already. A shared line that later needs a check of its own, because chance
        decided the first, stays `shared`.""",
        Prom(f"max by (check) (rate(farm_lines_total{STEP}))", "{{check}}"),
        unit="ops",
        options={"stacked": True},
    ),
    Series(
        "Export lag",
        """How long the oldest verdict waits that is not in its manifest yet, over the newest runs; a few
        late verdicts of a large run may be overlooked. It grows while a run is judged and falls to 0 when
        `farm export` or the waiting `farm submit` writes the manifest.""",
        Prom("max(farm_run_export_lag_seconds)", "oldest verdict"),
        unit="s",
    ),
)

OVERVIEW = Board(
    uid="farm-overview",
    title="Farm: overview",
    description="What the farm judges, what waits, and whether its cores are at work.",
    panels=[*_NOW, *_FLOW],
)
