"""Adds a view of the queues for autoscalers of workers; docs/reference/views.md describes it."""

from __future__ import annotations

from alembic import op

revision = "0016"
down_revision = "0015"

# Autoscalers query it every few seconds for each environment, so both subqueries of a queue are bounded; they
# read class by class, because the queue's index has the class before the turn.
_QUEUES = """
    CREATE VIEW report.queues AS
    SELECT
        environments.name AS environment,
        queue.waiting,
        coalesce(leases.held, 0) AS held,
        next.oldest_seconds
    FROM environments
    LEFT JOIN (
        SELECT environment, count(*) AS held FROM checks WHERE lease_until IS NOT NULL GROUP BY environment
    ) AS leases ON leases.environment = environments.name
    CROSS JOIN LATERAL (
        SELECT count(*) AS waiting FROM (
            SELECT FROM checks WHERE status = 'queued' AND checks.environment = environments.name LIMIT 10000
        ) AS first
    ) AS queue
    CROSS JOIN LATERAL (
        SELECT extract(epoch FROM now() - min(queued_at))::float8 AS oldest_seconds
        FROM unnest('{0, 1, 2}'::smallint[]) AS classes (class), LATERAL (
            SELECT queued_at FROM checks
            WHERE status = 'queued' AND checks.environment = environments.name AND priority = class
            ORDER BY turn, id LIMIT 1000
        ) AS first
    ) AS next;
"""

# As in the revision 0014.
_GRANT = """
    DO $$
    BEGIN
        IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'farm_reader') THEN
            GRANT SELECT ON report.queues TO farm_reader;
        END IF;
    END
    $$;
"""


def upgrade() -> None:
    """Add the view; existing tables do not change."""
    op.execute(_QUEUES)
    op.execute(_GRANT)
