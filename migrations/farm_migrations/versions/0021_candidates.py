"""A check may have three programs: one that restates may be tried between the first and the last."""

from __future__ import annotations

from alembic import op

revision = "0021"
down_revision = "0020"

# Of the rows that are there none has such a program. The constraint is not looked at for them: it only allows
# one word more.
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
    """Add three columns and an index, and allow a word; nothing that is there changes."""
    op.execute(_SCHEMA)
