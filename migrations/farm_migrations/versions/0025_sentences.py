"""Adds what proved theorems state, by which contradictions are found, and a mark for verdicts in one."""

from __future__ import annotations

from alembic import op

revision = "0025"
down_revision = "0024"

# A table of its own: an index of the verdicts would take minutes to build, and workers would wait for it.
_SCHEMA = """
    CREATE TABLE sentences (
        check_id BIGINT NOT NULL,
        key BYTEA NOT NULL,
        negated BOOLEAN NOT NULL,
        uses TEXT[] NOT NULL,
        allows TEXT[] NOT NULL,
        CONSTRAINT sentences_pkey PRIMARY KEY (check_id)
    );
    CREATE INDEX sentences_key_negated_idx ON sentences (key, negated);
    ALTER TABLE verdicts ADD COLUMN contested BOOLEAN NOT NULL DEFAULT false;
"""


def upgrade() -> None:
    """Add a table that the previous release does not fill, and a column that it leaves false."""
    op.execute(_SCHEMA)
