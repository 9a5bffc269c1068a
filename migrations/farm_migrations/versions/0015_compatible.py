"""Adds the table `compatibility`, by which farms of two releases share a schema during an upgrade."""

from __future__ import annotations

from alembic import op

revision = "0015"
down_revision = "0014"

_SCHEMA = """
    CREATE TABLE compatibility (
        oldest TEXT NOT NULL
    );
    INSERT INTO compatibility VALUES ('0014');
"""


def upgrade() -> None:
    """Add the table; existing tables do not change.

    A revision that drops or changes a column which the previous release needs must set `oldest` to the
    revision of the first release that works without it. A revision that only adds leaves `oldest` unchanged.
    """
    op.execute(_SCHEMA)
