"""A second program of a check, with the farm's own preamble, and which of the two counted."""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"

_FALLBACKS = """
    ALTER TABLE checks
        ADD COLUMN fallback_sha256 BYTEA,
        ADD COLUMN fallback_submitted JSON,
        ADD CONSTRAINT checks_fallback_whole_check
            CHECK ((fallback_sha256 IS NULL) = (fallback_submitted IS NULL));
    ALTER TABLE jobs ADD COLUMN fallback_segments JSON;
    ALTER TABLE verdicts
        ADD COLUMN preamble TEXT
            CONSTRAINT verdicts_preamble_known_check CHECK (preamble IN ('model', 'farm'));
"""


def upgrade() -> None:
    """Add what checks of an earlier farm do without."""
    op.execute(_FALLBACKS)
