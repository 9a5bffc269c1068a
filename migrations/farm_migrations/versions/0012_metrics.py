"""What metrics are read from: tallies, when manifests were exported, an index of the newest runs."""

from __future__ import annotations

from alembic import op

revision = "0012"
down_revision = "0011"

# What has verdicts and was never exported since is taken for exported: nobody knows.
_SCHEMA = """
    CREATE TABLE tallies (
        subject TEXT NOT NULL,
        word TEXT NOT NULL,
        number BIGINT NOT NULL
    );
    INSERT INTO tallies SELECT 'attempts', outcome, count(*) FROM attempts GROUP BY outcome;
    INSERT INTO tallies
    SELECT 'lines', CASE WHEN shared THEN 'shared' ELSE 'own' END, count(*) FROM jobs GROUP BY shared;

    ALTER TABLE manifests ADD COLUMN exported_at TIMESTAMP WITH TIME ZONE;
    UPDATE manifests SET exported_at = now();

    CREATE INDEX runs_created_at_idx ON runs (created_at) WHERE owner IS NULL;
"""


def upgrade() -> None:
    """Add them, and count what is there."""
    op.execute(_SCHEMA)
