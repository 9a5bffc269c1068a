"""Adds the proof system of environments, and the context's end and the image of checks."""

from __future__ import annotations

from alembic import op

revision = "0018"
down_revision = "0017"

# The defaults hold for all existing rows, so no row is rewritten. The new index orders queued checks by
# image, while the queue's own index orders them by turn.
_SCHEMA = """
    ALTER TABLE environments ADD COLUMN kind TEXT NOT NULL DEFAULT 'lean';
    ALTER TABLE checks ADD COLUMN context_end INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE checks ADD COLUMN image BIGINT NOT NULL DEFAULT 0;
    CREATE INDEX checks_images_idx ON checks (environment, priority, image, turn, id)
        WHERE status = 'queued' AND image <> 0;
"""


def upgrade() -> None:
    """Add three columns and an index; no existing value changes."""
    op.execute(_SCHEMA)
