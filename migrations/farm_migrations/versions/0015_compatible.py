"""Upgrades without a stop: the schema says which farms may use it."""

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
    """Add the table; nothing that is there changes.

    A revision that takes away, or changes, what the release before needs sets `oldest` to the revision of the
    first release that does without it. One that only adds leaves it as it is.
    """
    op.execute(_SCHEMA)
