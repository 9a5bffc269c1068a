"""Adds to API keys a limit of their own for the seconds of one check."""

from __future__ import annotations

from alembic import op

revision = "0019"
down_revision = "0018"

# Null means that the service's own limit applies, as it does for all existing keys.
_SCHEMA = """
    ALTER TABLE api_keys ADD COLUMN most_seconds DOUBLE PRECISION;
    ALTER TABLE api_keys ADD CONSTRAINT api_keys_most_seconds_possible_check
        CHECK (most_seconds > 0 AND most_seconds <= 86400);
"""


def upgrade() -> None:
    """Add a column; no existing value changes."""
    op.execute(_SCHEMA)
