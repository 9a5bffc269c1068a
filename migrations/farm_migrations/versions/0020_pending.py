"""Adds to workers the environments that they do not serve yet, with the reason."""

from __future__ import annotations

from alembic import op

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    """Add a column to a table of few rows; a worker of the previous release leaves it empty."""
    op.execute("ALTER TABLE workers ADD COLUMN pending JSONB NOT NULL DEFAULT '[]'")
