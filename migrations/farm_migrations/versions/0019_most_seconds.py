"""Keys have a limit of their own for the seconds that one check may take."""

from __future__ import annotations

from alembic import op

revision = "0019"
down_revision = "0018"

# Null where the service's own limit holds, as it does for the keys that are there.
_SCHEMA = """
    ALTER TABLE api_keys ADD COLUMN most_seconds DOUBLE PRECISION;
    ALTER TABLE api_keys ADD CONSTRAINT api_keys_most_seconds_possible_check
        CHECK (most_seconds > 0 AND most_seconds <= 86400);
"""


def upgrade() -> None:
    """Add a column; nothing that is there changes."""
    op.execute(_SCHEMA)
