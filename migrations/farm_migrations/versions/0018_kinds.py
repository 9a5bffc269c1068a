"""Environments of other proof systems, and checks whose program begins with a context."""

from __future__ import annotations

from alembic import op

revision = "0018"
down_revision = "0017"

# Both defaults are what the rows that are there mean, so no row is written.
_SCHEMA = """
    ALTER TABLE environments ADD COLUMN kind TEXT NOT NULL DEFAULT 'lean';
    ALTER TABLE checks ADD COLUMN context_end INTEGER NOT NULL DEFAULT 0;
"""


def upgrade() -> None:
    """Add two columns; nothing that is there changes."""
    op.execute(_SCHEMA)
