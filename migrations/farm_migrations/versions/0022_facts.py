"""Verdicts keep a document: what SQL neither filters nor sums needs no column of its own any more."""

from __future__ import annotations

from alembic import op

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    """Add a column that workers of the release before leave null; no row is rewritten."""
    op.execute("ALTER TABLE verdicts ADD COLUMN facts JSONB")
