"""Views of runs, lines and problems, for dashboards and SQL; docs/reference/views.md describes them.

They stand in a schema of their own, so that a role can be given them and nothing else. They show no program,
no message of Lean and no sentence that quotes either.
"""

from __future__ import annotations

from alembic import op

revision = "0011"
down_revision = "0010"

_LINES = """
    CREATE VIEW report.lines AS
    SELECT
        jobs.run_id,
        jobs.manifest,
        jobs.line,
        jobs.name,
        jobs.group_name,
        CASE WHEN group_name IS NOT NULL THEN 'group'
             WHEN name <> '' THEN 'name' ELSE 'line' END AS problem_by,
        coalesce(group_name, nullif(name, ''), manifest || ':' || line) AS problem,
        jobs.check_id,
        jobs.shared,
        jobs.cancelled,
        CASE WHEN cancelled IS NOT NULL THEN 'cancelled'
             WHEN status = 'running' AND ahead THEN 'queued' ELSE status END AS status,
        checks.environment,
        checks.tier,
        checks.priority,
        checks.attempt AS attempts,
        checks.worker,
        verdicts.verdict,
        verdicts.reason,
        verdicts.statement,
        verdicts.trusts,
        verdicts.wall_seconds,
        checks.wall_seconds AS wall_limit_seconds,
        verdicts.wall_seconds / checks.wall_seconds AS wall_use,
        verdicts.cpu_seconds,
        checks.cpu_seconds AS cpu_limit_seconds,
        verdicts.cpu_seconds / checks.cpu_seconds AS cpu_use,
        verdicts.peak_memory_kib / 1024.0::float8 AS memory_mib,
        checks.memory_mib AS memory_limit_mib,
        verdicts.peak_memory_kib / 1024.0::float8 / checks.memory_mib AS memory_use,
        checks.queued_at,
        checks.started_at,
        verdicts.decided_at,
        verdicts.isolation,
        verdicts.toolchain,
        verdicts.environment_digest,
        verdicts.checker_version
    FROM jobs
    JOIN checks ON checks.id = jobs.check_id
    LEFT JOIN verdicts ON verdicts.check_id = jobs.check_id AND cancelled IS NULL;
"""

# Of checks that several lines share, the time is counted once: for the line that brought the check.
_COUNTS = """
    count(*) AS lines,
    count(*) FILTER (WHERE status IN ('queued', 'running')) AS unfinished,
    count(*) FILTER (WHERE status = 'cancelled') AS cancelled,
    count(verdict) AS judged,
    count(*) FILTER (WHERE verdict = 'proved') AS proved,
    count(*) FILTER (WHERE verdict = 'rejected') AS rejected,
    count(*) FILTER (WHERE verdict = 'timeout') AS timeouts,
    count(*) FILTER (WHERE reason = 'wall_limit') AS wall_limits,
    count(*) FILTER (WHERE reason = 'cpu_limit') AS cpu_limits,
    count(*) FILTER (WHERE reason = 'heartbeat_limit') AS heartbeat_limits,
    count(*) FILTER (WHERE reason = 'kernel_time') AS kernel_times,
    count(*) FILTER (WHERE verdict = 'memory_limit') AS memory_limits,
    count(*) FILTER (WHERE verdict = 'judge_error') AS judge_errors,
    coalesce(sum(cpu_seconds) FILTER (WHERE NOT shared), 0) AS cpu_seconds,
    coalesce(sum(cpu_seconds) FILTER (WHERE NOT shared AND verdict = 'timeout'), 0) AS timeout_cpu_seconds,
    max(decided_at) AS last_decided_at
"""

# A run's lines are counted when its row is asked for, so the newest runs cost no more than their own lines.
_RUNS = """
    CREATE VIEW report.runs AS
    SELECT
        runs.id AS run_id,
        CASE WHEN runs.owner IS NULL THEN 'manifests' ELSE 'batch' END AS kind,
        runs.created_at,
        runs.owner,
        runs.farm_version,
        runs.options #>> '{{assurance,tier}}' AS tier,
        coalesce(paths, '{{}}') AS manifests,
        runs.deadline_at,
        runs.cancelled_at,
        counts.*
    FROM runs
    LEFT JOIN LATERAL (
        SELECT array_agg(path ORDER BY number) AS paths FROM manifests WHERE manifests.run_id = runs.id
    ) AS files ON true
    LEFT JOIN LATERAL (SELECT {counts} FROM report.lines WHERE lines.run_id = runs.id) AS counts ON true;
"""

_PROBLEMS = """
    CREATE VIEW report.problems AS
    SELECT run_id, problem_by, problem, {counts} FROM report.lines GROUP BY run_id, problem_by, problem;
"""

# Roles belong to the whole server: `farm db reader` may have made this one for the farm of another database.
_GRANTS = """
    DO $$
    BEGIN
        IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'farm_reader') THEN
            GRANT USAGE ON SCHEMA report TO farm_reader;
            GRANT SELECT ON ALL TABLES IN SCHEMA report TO farm_reader;
        END IF;
    END
    $$;
"""


def upgrade() -> None:
    """Add the schema `report` with its views; nothing that is there changes."""
    op.execute("CREATE SCHEMA report")
    op.execute(_LINES)
    op.execute(_RUNS.format(counts=_COUNTS))
    op.execute(_PROBLEMS.format(counts=_COUNTS))
    op.execute(_GRANTS)
