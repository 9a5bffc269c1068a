"""Adds tenants to checks, by which queues take turns, weights to keys, and the use of limited keys."""

from __future__ import annotations

from alembic import op

revision = "0029"
down_revision = "0028"

# Checks that wait already, and those of the previous release, belong to one tenant, 0. Its workers go on with
# the indexes that are there.
_SCHEMA = """
    ALTER TABLE checks
        ADD COLUMN tenant BIGINT NOT NULL DEFAULT 0,
        ADD COLUMN weight SMALLINT NOT NULL DEFAULT 1;
    CREATE INDEX checks_tenants_idx ON checks (environment, priority, tenant, turn, id)
        WHERE status = 'queued';
    CREATE INDEX checks_tenant_images_idx ON checks (environment, priority, image, tenant, turn, id)
        WHERE status = 'queued' AND image <> 0;
    ALTER TABLE api_keys ADD COLUMN weight SMALLINT NOT NULL DEFAULT 1;
    ALTER TABLE api_keys ADD CONSTRAINT api_keys_weight_possible_check CHECK (weight BETWEEN 1 AND 100);
    CREATE TABLE key_uses (
        key_id TEXT NOT NULL,
        level DOUBLE PRECISION NOT NULL,
        at TIMESTAMP WITH TIME ZONE NOT NULL,
        full_until TIMESTAMP WITH TIME ZONE,
        CONSTRAINT key_uses_pkey PRIMARY KEY (key_id)
    );
    CREATE TABLE unfinished (
        id TEXT NOT NULL,
        owner TEXT NOT NULL,
        proofs INTEGER NOT NULL,
        expires_at TIMESTAMP WITH TIME ZONE,
        CONSTRAINT unfinished_pkey PRIMARY KEY (id)
    );
    CREATE INDEX unfinished_owner_idx ON unfinished (owner);
"""


def upgrade() -> None:
    """Add columns with constant defaults, two indexes of the queue and two tables; no value changes."""
    op.execute(_SCHEMA)
