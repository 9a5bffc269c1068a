"""Adds to checks what their proof has to show beyond the usual, and three words to verdicts."""

from __future__ import annotations

from alembic import op

revision = "0024"
down_revision = "0023"

# The new list of words contains the old one, so the existing rows satisfy the constraint.
_SCHEMA = """
    ALTER TABLE checks ADD COLUMN task TEXT;
    ALTER TABLE verdicts
        DROP CONSTRAINT verdicts_verdict_known_check,
        ADD CONSTRAINT verdicts_verdict_known_check CHECK (verdict IN (
            'proved', 'disproved', 'partial', 'stated', 'rejected', 'timeout', 'memory_limit', 'judge_error'
        )) NOT VALID;
    ALTER TABLE verdicts VALIDATE CONSTRAINT verdicts_verdict_known_check;
"""


def upgrade() -> None:
    """Add a column that is null in existing rows, and allow three words."""
    op.execute(_SCHEMA)
