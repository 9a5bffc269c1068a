"""Adds a third program to checks: one that restates the theorem, tried between the first and the last."""

from __future__ import annotations

from alembic import op

revision = "0021"
down_revision = "0020"

# No existing row has such a program, and the new list of words contains the old one, so the existing rows
# satisfy both constraints.
_SCHEMA = """
    ALTER TABLE checks
        ADD COLUMN restated_sha256 BYTEA,
        ADD COLUMN restated_submitted JSON,
        ADD CONSTRAINT checks_restated_whole_check
            CHECK ((restated_sha256 IS NULL) = (restated_submitted IS NULL)) NOT VALID;
    CREATE INDEX checks_restated_sha256_idx ON checks (restated_sha256) WHERE restated_sha256 IS NOT NULL;
    ALTER TABLE jobs ADD COLUMN restated_segments JSON;
    ALTER TABLE verdicts
        DROP CONSTRAINT verdicts_preamble_known_check,
        ADD CONSTRAINT verdicts_preamble_known_check
            CHECK (preamble IN ('model', 'restated', 'farm')) NOT VALID;
    ALTER TABLE checks VALIDATE CONSTRAINT checks_restated_whole_check;
    ALTER TABLE verdicts VALIDATE CONSTRAINT verdicts_preamble_known_check;
"""


def upgrade() -> None:
    """Add three columns and an index, and allow a word; no existing value changes."""
    op.execute(_SCHEMA)
