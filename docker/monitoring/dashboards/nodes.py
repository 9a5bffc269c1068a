"""Nodes: each worker, its slots, its images and its failures, and the servers behind them."""

from __future__ import annotations

from docker.monitoring.dashboards.board import Board
from docker.monitoring.dashboards.panels import STEP, Prom, Rows, Series, here, high, per_second

_IMAGE_SECONDS = f"sum by (le, environment) ({here('farm_image_seconds_bucket')})"

_WORKERS = (
    Rows(
        "Workers",
        """Every worker that Prometheus reaches: its version, what confines its checks, and how it runs Lean.
        Different versions side by side are normal only during an upgrade; a worker whose isolation is weaker
        than the others' runs on a node that is set up differently.""",
        Prom("farm_worker_info"),
        width=16,
        options={"hidden": ["Time", "Value", "__name__", "job"]},
    ),
    Series(
        "Workers by version",
        "Number of workers by version. Two lines outside an upgrade mean that a node was forgotten.",
        Prom("count by (version) (farm_worker_info)", "{{version}}"),
        width=8,
    ),
    Series(
        "Busy slots by worker",
        """Share of each worker's slots that are at work. A worker far below the others while checks wait has
        a problem of its own: look at its log.""",
        Prom("farm_worker_busy_slots / farm_worker_slots", "{{instance}}"),
        unit="percentunit",
        options={"most": 1},
    ),
    Series(
        "Verdicts per second by worker",
        "Verdicts that each worker recorded. Equal machines should show equal lines.",
        Prom(per_second("farm_checks_total", by="instance"), "{{instance}}"),
        unit="ops",
    ),
    Series(
        "Fit to judge",
        """1 where a worker takes checks, 0 after it judged a known program wrongly. A gap means that
        Prometheus did not reach the worker.""",
        Prom("min by (instance) (farm_worker_healthy)", "{{instance}}"),
        options={"most": 1},
    ),
    Series(
        "PostgreSQL answers",
        """1 where PostgreSQL answered the worker's last request within half a lease. At 0 the worker takes
        no checks, and other workers take those that it held when their leases end.""",
        Prom("min by (instance) (farm_worker_database_up)", "{{instance}}"),
        options={"most": 1},
    ),
    Series(
        "Redis answers",
        """1 where Redis answered when the worker last asked it. At 0 the farm goes on: idle workers ask
        PostgreSQL once a second, and clients hear of verdicts up to a second later.""",
        Prom("min by (instance) (farm_worker_broker_up)", "{{instance}}"),
        options={"most": 1},
    ),
)

_TROUBLE = (
    Series(
        "Waits for a core",
        """Share of their time in which the checks of each worker waited for a processor core. Limits do not
        count it, but verdicts come later: lower FARM_CONCURRENCY, or move other programs off the node.""",
        Prom(
            f"sum by (instance) (rate(farm_core_wait_seconds_total{STEP}))"
            f" / sum by (instance) (rate(farm_box_seconds_total{STEP}))",
            "{{instance}}",
        ),
        options={"most": 1},
    ),
    Series(
        "Leases that went wrong",
        """Checks per second that changed hands: `lost` were given up by their worker before it had a verdict
        (also because somebody cancelled them), `refused` are late results that counted for nothing,
        `expired` were taken back from dead workers. All are 0 on a calm farm without cancelled runs.""",
        [
            Prom(f"sum(rate(farm_leases_lost_total{STEP}))", "lost"),
            Prom(f"sum(rate(farm_results_refused_total{STEP}))", "refused"),
            Prom(f"sum(rate(farm_leases_expired_total{STEP}))", "expired"),
        ],
        unit="ops",
    ),
    Series(
        "Leases held and overdue",
        """Checks that workers hold, and leases that have expired without anybody taking them back. Overdue
        leases that stay mean that no worker sweeps: run `farm worker --sweep`.""",
        [
            Prom("sum(max by (environment) (farm_leases_held))", "held"),
            Prom("max(farm_leases_overdue)", "overdue"),
        ],
    ),
    Series(
        "Attempts by outcome",
        """Attempts per second that ended, by outcome. `lost` died with their worker; `returned` were given
        back unharmed, as when a worker stops.""",
        Prom(f"max by (outcome) (rate(farm_attempts_total{STEP}))", "{{outcome}}"),
        unit="ops",
    ),
    Series(
        "Failures of the farm by worker",
        """Attempts per second at which a worker failed, by worker and reason. One worker alone points at its
        node; all of them at an environment or at the servers.""",
        Prom(
            per_second("farm_failures_total", by="instance, reason"),
            "{{instance}} {{reason}}",
        ),
        unit="ops",
    ),
)

_ENGINE = (
    Series(
        "Images and their memory",
        """Private memory of the header images in each worker. A line at the limit (FARM_IMAGES_MIB) while
        images are made all the time means that headers push each other out.""",
        Prom(f"sum by (instance) ({here('farm_images_memory_bytes')})", "{{instance}}"),
        unit="bytes",
    ),
    Series(
        "Images made per second",
        """Header images that workers began, by environment and result. After a start a few are made; a
        steady rate means that checks pay for imports: raise FARM_IMAGES or submit fewer different headers at
        a time.""",
        Prom(
            per_second("farm_images_begun_total", by="environment, result"),
            "{{environment}} {{result}}",
        ),
        unit="ops",
    ),
    Series(
        "Time to make an image",
        """95th percentile of the time that a header image took, the import of its libraries, over all images
        since the workers started: they are too rare for a rate.""",
        Prom(f"histogram_quantile(0.95, {_IMAGE_SECONDS})", "{{environment}}"),
        unit="s",
    ),
    Series(
        "Forks per second",
        "Forks of images by purpose: each check is one fork, and each seal another.",
        Prom(per_second("farm_forks_total", by="purpose"), "{{purpose}}"),
        unit="ops",
    ),
    Series(
        "Tactics per second",
        """Tactics that sessions tried, by outcome. Many timeouts waste slots: lower the provers' seconds for
        a tactic. Crashes and memory count tactics that end their processes.""",
        Prom(per_second("farm_steps_total", by="outcome"), "{{outcome}}"),
        unit="ops",
    ),
    Series(
        "Sessions",
        """Sessions whose states a worker's processes held at its last step. Idle ones end after a minute.""",
        Prom("sum by (instance) (farm_sessions)", "{{instance}}"),
    ),
    Series(
        "Peak memory of checks",
        """95th percentile of the peak memory of checks, by environment. Slots times this must fit into a
        node's memory beside its images.""",
        Prom(
            high("farm_check_peak_memory_bytes", "environment"),
            "{{environment}}",
        ),
        unit="bytes",
    ),
    Series(
        "Memory of the workers themselves",
        """Resident memory of each worker's own process, without Lean. It grows for the first minutes and
        then stays; a line that rises for days is a leak, and worth a report.""",
        Prom("process_resident_memory_bytes and on (instance) farm_worker_info", "{{instance}}"),
        unit="bytes",
    ),
)

_SERVERS = (
    Series(
        "Database size",
        """Size of the farm's database. Programs and verdicts are kept, so it grows with every new line; plan
        disks by its slope.""",
        Prom("max(farm_database_bytes)", "database"),
        unit="bytes",
    ),
    Series(
        "Time to read the farm's numbers",
        """How long PostgreSQL took for the farm's own metrics. Normally a few hundredths of a second;
        seconds mean that the database is overloaded.""",
        Prom("max(farm_reading_seconds)", "reading"),
        unit="s",
    ),
    Series(
        "Waits for PostgreSQL",
        """Times per second that a worker found PostgreSQL silent and tried again. 0 is normal; anything else
        is a database or a network that comes and goes.""",
        Prom(f"sum by (instance) (rate(farm_database_retries_total{STEP}))", "{{instance}}"),
        unit="ops",
    ),
    Series(
        "Silence of environments",
        """How long ago a worker last said that it serves an environment. Seconds are normal; a line that
        rises has no worker left.""",
        Prom(f"min by (environment) ({here('farm_environment_silent_seconds')})", "{{environment}}"),
        unit="s",
    ),
)

NODES = Board(
    uid="farm-nodes",
    title="Farm: nodes",
    description="Each worker, its slots, its images and its failures, and the servers behind them.",
    panels=[*_WORKERS, *_TROUBLE, *_ENGINE, *_SERVERS],
)
