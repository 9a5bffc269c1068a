"""Run: one run of manifests, its lines and its problems. All of it is read from PostgreSQL."""

from __future__ import annotations

from docker.monitoring.dashboards.board import Board
from docker.monitoring.dashboards.panels import Bars, Number, Rows, Series, Sql

_LINES = "FROM report.lines WHERE run_id = '$run' AND environment = ANY(ARRAY[$environment]::text[])"


def _number(title: str, description: str, asked: str, unit: str = "short") -> Number:
    text = f"SELECT {asked} FROM report.runs WHERE run_id = '$run'"  # noqa: S608
    return Number(title, description, Sql(text), unit=unit, width=4)


_NOW = (
    _number("Lines", "All lines of the run, cancelled ones included.", "lines"),
    _number(
        "Judged",
        "Share of the lines that have a verdict, judge_error included.",
        "judged::float8 / nullif(lines, 0)",
        "percentunit",
    ),
    _number(
        "Unfinished",
        "Lines that are queued or running; when it stands still, look at the queues on the overview.",
        "unfinished",
    ),
    _number(
        "Proved",
        "Share of the verdicts, without judge_error, that are proved. Lines count, not problems: see below.",
        "proved::float8 / nullif(judged - judge_errors, 0)",
        "percentunit",
    ),
    _number(
        "Timed out",
        "Share of the verdicts, without judge_error, that ran out of time, in any of the four ways.",
        "timeouts::float8 / nullif(judged - judge_errors, 0)",
        "percentunit",
    ),
    _number(
        "Not judged by the farm",
        "Lines that ended as judge_error: the farm failed; `farm rejudge RUN --in-place` judges them again.",
        "judge_errors",
    ),
)

_PROGRESS = (
    Series(
        "Verdicts per minute",
        """Verdicts of the run's lines by minute and verdict. A flat stack is a steady farm; gaps are times
        at which other runs had the turn, or nothing worked. Known verdicts that another run brought count
        when they were decided, maybe before this run was submitted.""",
        Sql(
            f"""
SELECT date_trunc('minute', decided_at) AS time, verdict AS metric, count(*) AS lines
{_LINES} AND $__timeFilter(decided_at)
GROUP BY 1, 2 ORDER BY 1
""",
            over_time=True,
        ),
        options={"stacked": True},
    ),
    Rows(
        "Verdicts and reasons",
        """How many lines have which verdict, and why, with the median and the largest time of their checks.
        docs/use/verdicts.md explains each reason.""",
        Sql(f"""
SELECT status, verdict, reason, count(*) AS lines,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY wall_seconds) AS median_seconds,
       max(wall_seconds) AS most_seconds
{_LINES} GROUP BY 1, 2, 3 ORDER BY lines DESC
"""),
        options={"units": {"median_seconds": "s", "most_seconds": "s"}},
    ),
)


def _use(column: str, what: str) -> Bars:
    return Bars(
        f"Use of the {what} limit",
        f"Lines of the run by the part of their {what} limit that they used, in tenths; the last bar is "
        "above the limit. Lines in the last two bars are the ones that another limit would decide "
        "otherwise.",
        Sql(f"""
SELECT CASE WHEN tenth > 10 THEN 'above the limit'
            ELSE to_char((tenth - 1) * 10, 'FM990') || ' to ' || to_char(tenth * 10, 'FM990') || ' %'
       END AS used, lines
FROM (
    SELECT width_bucket({column}, 0, 1, 10) AS tenth, count(*) AS lines
    {_LINES} AND {column} IS NOT NULL GROUP BY 1
) AS counted ORDER BY tenth
"""),  # noqa: S608
        width=8,
    )


_PROBLEMS = (
    Rows(
        "Problems",
        """Problems of the run, those without a proof first. Problems with many lines and no proof are what
        the model cannot do; those with timeouts among them may be in reach of a longer limit.""",
        Sql("""
SELECT problem, problem_by, lines, judged, proved, rejected, timeouts, memory_limits, judge_errors,
       unfinished, cpu_seconds
FROM report.problems WHERE run_id = '$run' ORDER BY proved > 0, timeouts DESC, problem LIMIT 200
"""),
        width=16,
        height=12,
        options={"units": {"cpu_seconds": "s"}},
    ),
    Rows(
        "What judged the run",
        """Lines by environment, version of Lean and version of the farm. More than one row per environment
        means that the run was judged by workers of different versions.""",
        Sql(f"""
SELECT environment, toolchain, checker_version, isolation, left(environment_digest, 12) AS digest,
       count(*) AS lines, count(*) FILTER (WHERE shared) AS shared
{_LINES} AND verdict IS NOT NULL GROUP BY 1, 2, 3, 4, 5 ORDER BY lines DESC
"""),
        width=8,
        height=12,
    ),
    Rows(
        "Slowest lines",
        """Lines of the run whose checks took longest, with their verdict. `farm show RUN` prints the same
        lines with what Lean said.""",
        Sql(f"""
SELECT manifest, line, problem, verdict, reason, wall_seconds, wall_limit_seconds, cpu_seconds,
       memory_mib, attempts, worker
{_LINES} AND verdict IS NOT NULL ORDER BY wall_seconds DESC LIMIT 100
"""),
        width=24,
        height=10,
        options={
            "units": {
                **dict.fromkeys(("wall_seconds", "wall_limit_seconds", "cpu_seconds"), "s"),
                "memory_mib": "mbytes",
            }
        },
    ),
)

RUN = Board(
    uid="farm-run",
    title="Farm: run",
    description="One run of manifests: how far it is, its verdicts, its problems and its slowest lines.",
    panels=[
        *_NOW,
        *_PROGRESS,
        _use("wall_use", "wall time"),
        _use("cpu_use", "processor time"),
        _use("memory_use", "memory"),
        *_PROBLEMS,
    ],
    has_runs=True,
    since="now-24h",
    refresh="5m",
)
