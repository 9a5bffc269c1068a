"""Adds a document to verdicts, for fields that SQL neither filters nor sums and that need no column."""

from __future__ import annotations

from alembic import op

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    """Add a column that workers of the previous release leave null; no row is rewritten."""
    op.execute("ALTER TABLE verdicts ADD COLUMN facts JSONB")
