"""Adds the column `contested` to the view of lines, whose other columns are those of the revision 0014."""

from __future__ import annotations

from alembic import op

revision = "0027"
down_revision = "0026"

# The views that read this one, and the rights on it, stay: a new column may be added at the end.
_LINES = """
    CREATE OR REPLACE VIEW report.lines AS
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
        verdicts.checker_version,
        verdicts.contested
    FROM jobs
    JOIN checks ON checks.id = jobs.check_id
    LEFT JOIN verdicts ON verdicts.check_id = jobs.check_id AND cancelled IS NULL;
"""


def upgrade() -> None:
    """Replace the view; no table changes, and the previous release works with it."""
    op.execute(_LINES)
