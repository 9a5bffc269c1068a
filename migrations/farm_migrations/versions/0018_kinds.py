"""Environments of other proof systems; checks say where their context ends, and which image they need."""

from __future__ import annotations

from alembic import op

revision = "0018"
down_revision = "0017"

# The defaults are what the rows that are there mean, so no row is written. Queued checks that
# need one image are found side by side: in the queue's own index they stand in the order of their turns.
_SCHEMA = """
    ALTER TABLE environments ADD COLUMN kind TEXT NOT NULL DEFAULT 'lean';
    ALTER TABLE checks ADD COLUMN context_end INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE checks ADD COLUMN image BIGINT NOT NULL DEFAULT 0;
    CREATE INDEX checks_images_idx ON checks (environment, priority, image, turn, id)
        WHERE status = 'queued' AND image <> 0;
"""


def upgrade() -> None:
    """Add three columns and an index; nothing that is there changes."""
    op.execute(_SCHEMA)
