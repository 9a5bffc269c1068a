"""Timeouts: how many, of which kind, what they cost, and whether longer limits would help."""

from __future__ import annotations

from docker.monitoring.dashboards.board import Board
from docker.monitoring.dashboards.panels import (
    ALL,
    STEP,
    Bars,
    Number,
    Panel,
    Prom,
    Rows,
    Series,
    Sql,
    here,
    per_second,
    share,
)

_CHECKS, _COST = "farm_checks_total", "farm_check_cpu_seconds_sum"
_TIMEOUT = 'verdict="timeout"'


def _near(*matchers: str, by: str = "", window: str = STEP) -> str:
    """Return the share of checks that used at least nine tenths of a limit."""
    below = per_second("farm_check_limit_ratio_bucket", *matchers, 'le="0.9"', by=by, window=window)
    return f"1 - {below} / {per_second('farm_check_limit_ratio_count', *matchers, by=by, window=window)}"


_NOW = (
    Number(
        "Timeouts among verdicts",
        "Share of the verdicts in the time shown that are timeouts of any kind.",
        Prom(share(_CHECKS, _TIMEOUT, window=ALL), now=True),
        unit="percentunit",
    ),
    Number(
        "Processor time spent on timeouts",
        """Share of Lean's processor time in the time shown that went into checks that timed out. It is much
        larger than the share of verdicts, because each timeout costs its whole limit.""",
        Prom(share(_COST, _TIMEOUT, window=ALL), now=True),
        unit="percentunit",
    ),
    Number(
        "Checks near their wall limit",
        """Share of checks that used 90 % or more of their wall limit, timeouts included. When it is much
        larger than the share of wall_limit verdicts, many proofs only just made it.""",
        Prom(_near('limit="wall"', window=ALL), now=True),
        unit="percentunit",
    ),
    Number(
        "Checks killed at a limit",
        """Boxed processes that workers killed in the time shown, by the limit that was reached. Seals and
        known programs count too; `cancelled` means that nobody wanted the answer any more.""",
        Prom(f"sum by (cause) (increase(farm_kills_total{ALL}))", "{{cause}}", now=True),
    ),
)

_OVER_TIME = (
    Series(
        "Timeout rate by environment",
        """Share of verdicts that are timeouts, by environment. A step in one environment alone points at its
        library or its nodes; a step in all of them at the proofs or at overloaded machines.""",
        Prom(share(_CHECKS, _TIMEOUT, by="environment"), "{{environment}}"),
        unit="percentunit",
    ),
    Series(
        "Ends at a limit by kind",
        """Verdicts per second by the limit that ended them. wall_limit without cpu_limit on busy machines
        means that checks wait for processors; heartbeat_limit is Lean's own and the same on every machine;
        kernel_time is the kernel's check of a proof that Lean accepted.""",
        Prom(per_second(_CHECKS, 'verdict=~"timeout|memory_limit"', by="reason"), "{{reason}}"),
        unit="ops",
        options={"stacked": True},
    ),
    Series(
        "Processor time spent on timeouts",
        """Share of Lean's processor time that goes into checks that time out, by environment. Halving the
        limit saves about half of this share; see below what it would cost.""",
        Prom(share(_COST, _TIMEOUT, by="environment"), "{{environment}}"),
        unit="percentunit",
    ),
    Series(
        "Checks at 90 % of a limit or more",
        """Share of checks that used at least nine tenths of a limit, by kind of limit. A longer limit can
        help only these.""",
        Prom(_near(by="limit"), "{{limit}}"),
        unit="percentunit",
    ),
)


def _use(limit: str, what: str) -> Panel:
    chosen = here("farm_check_limit_ratio_bucket", f'limit="{limit}"')
    return Bars(
        f"Use of the {what} limit",
        f"How many checks in the time shown used which part of their {what} limit; each bar reaches from "
        "the bound above it to its own, and +Inf is above the limit. A long bar at 0.9 or 1 beside "
        "short ones before it means that the limit cuts into honest work; an empty middle means that a "
        "longer limit gains nothing.",
        Prom(
            f"sum by (le) (increase({chosen}{ALL}))",
            "{{le}}",
            now=True,
            le=True,
        ),
        width=8,
    )


_FROM_VIEWS = (
    Rows(
        "Timeouts by run",
        """The 20 newest runs of manifests submitted in the time shown, with their timeouts by kind, the
        share of verdicts, without judge_error, that timed out, and the share of processor time that this
        took. Compare runs of the same problems: a run with twice the rate had a weaker model, tighter limits
        or a busier farm.""",
        Sql("""
SELECT created_at, run_id, manifests[1] AS manifest, judged, timeouts, wall_limits, cpu_limits,
       heartbeat_limits, kernel_times, timeouts::float8 / nullif(judged - judge_errors, 0) AS timeout_rate,
       timeout_cpu_seconds / nullif(cpu_seconds, 0) AS cpu_share
FROM (
    SELECT run_id FROM report.runs
    WHERE owner IS NULL AND $__timeFilter(created_at) ORDER BY created_at DESC LIMIT 20
) AS newest JOIN report.runs USING (run_id) ORDER BY created_at DESC
"""),
        width=24,
        height=10,
        options={"units": {"timeout_rate": "percentunit", "cpu_share": "percentunit"}},
    ),
    Rows(
        "Problems that time out most in the chosen run",
        """Problems of the run by the processor time that their timeouts took. A problem with timeouts and no
        proof may need a longer limit or be out of reach; one with timeouts and proofs has answers that are
        merely slow.""",
        Sql("""
SELECT problem, lines, judged, proved, timeouts, wall_limits, cpu_limits, heartbeat_limits, kernel_times,
       timeout_cpu_seconds, cpu_seconds
FROM report.problems WHERE run_id = '$run' AND timeouts > 0 ORDER BY timeout_cpu_seconds DESC LIMIT 50
"""),
        width=12,
        height=10,
        options={"units": {"timeout_cpu_seconds": "s", "cpu_seconds": "s"}},
    ),
    Rows(
        "Proofs that were nearest to a limit in the chosen run",
        """Proved lines of the run by the largest part of a limit that they used. Those near 1 would have
        failed with slightly tighter limits or on a slightly busier machine.""",
        Sql("""
SELECT problem, manifest, line, greatest(wall_use, cpu_use, memory_use) AS nearest,
       wall_use, cpu_use, memory_use, wall_seconds, wall_limit_seconds
FROM report.lines
WHERE run_id = '$run' AND verdict = 'proved' AND environment = ANY(ARRAY[$environment]::text[])
ORDER BY nearest DESC LIMIT 50
"""),
        width=12,
        height=10,
        options={
            "units": {
                **dict.fromkeys(("nearest", "wall_use", "cpu_use", "memory_use"), "percentunit"),
                **dict.fromkeys(("wall_seconds", "wall_limit_seconds"), "s"),
            }
        },
    ),
)

TIMEOUTS = Board(
    uid="farm-timeouts",
    title="Farm: timeouts",
    description=(
        "How many checks time out, of which kind, what it costs, and whether longer limits would help."
    ),
    panels=[
        *_NOW,
        *_OVER_TIME,
        _use("wall", "wall time"),
        _use("cpu", "processor time"),
        _use("memory", "memory"),
        *_FROM_VIEWS,
    ],
    has_runs=True,
    since="now-24h",
    refresh="5m",
)
