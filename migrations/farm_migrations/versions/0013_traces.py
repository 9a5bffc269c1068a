"""Traces: in which trace a verdict was made."""

from __future__ import annotations

from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """Add a column; nothing that is there changes."""
    op.execute("ALTER TABLE verdicts ADD COLUMN trace_id TEXT")
