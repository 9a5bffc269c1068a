"""Workers say that they live; and what was decided lately is found without going through all verdicts."""

from __future__ import annotations

from alembic import op

revision = "0010"
down_revision = "0009"

# A worker changes its row every few seconds, and no indexed column of it: where a page has room, the new
# version stays in it (HOT), and later versions reuse the place of the old ones.
_SCHEMA = """
    CREATE TABLE workers (
        name TEXT NOT NULL,
        since TIMESTAMP WITH TIME ZONE NOT NULL,
        node TEXT NOT NULL,
        pid INTEGER NOT NULL,
        environments JSONB NOT NULL,
        isolation TEXT NOT NULL,
        farm_version TEXT NOT NULL,
        threads INTEGER NOT NULL,
        busy INTEGER NOT NULL,
        state TEXT NOT NULL,
        lease_seconds DOUBLE PRECISION NOT NULL,
        seen_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
        CONSTRAINT workers_pkey PRIMARY KEY (name, since),
        CONSTRAINT workers_state_known_check CHECK (state IN ('serving', 'unwell', 'stopping'))
    ) WITH (fillfactor = 50);
    CREATE INDEX verdicts_decided_at_idx ON verdicts (decided_at);
"""


def upgrade() -> None:
    """Add a table and an index; nothing that is there changes."""
    op.execute(_SCHEMA)
