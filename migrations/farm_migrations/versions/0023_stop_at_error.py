"""Adds to checks whether Lean is ended at the first error that decides."""

from __future__ import annotations

from alembic import op

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    """Add a column that the previous release leaves false; no row is rewritten."""
    op.execute("ALTER TABLE checks ADD COLUMN stop_at_error BOOLEAN NOT NULL DEFAULT false")
