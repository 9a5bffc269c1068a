"""Adds to checks the proof system that their programs were assembled for."""

from __future__ import annotations

from alembic import op

revision = "0028"
down_revision = "0027"


def upgrade() -> None:
    """Add a column that the previous release leaves null and does not compare; no row is rewritten."""
    op.execute("ALTER TABLE checks ADD COLUMN kind TEXT")
