"""Which manifests are being submitted, in a table: advisory locks can be taken by whoever reads a view."""

from __future__ import annotations

from alembic import op

revision = "0014"
down_revision = "0013"

_SCHEMA = """
    CREATE TABLE submitting (
        paths_sha256 BYTEA NOT NULL,
        CONSTRAINT submitting_pkey PRIMARY KEY (paths_sha256)
    );
"""


def upgrade() -> None:
    """Add the table, in which no committed row ever stands."""
    op.execute(_SCHEMA)
