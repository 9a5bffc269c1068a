"""Runs the revisions against the engine that `farm.store.postgres.upgrade` hands over, in one transaction.

One transaction runs all revisions, so it can hold the advisory lock itself: behind a pooler that shares
connections between clients, the lock of a session would stay with another client's connection.
"""

from __future__ import annotations

from alembic import context
from sqlalchemy import text

from farm.store import roles
from farm_migrations.tables import metadata

# The key of the advisory lock, the same for every farm: the process that holds it migrates, others wait.
_LOCK = 0x6661726D

with context.config.attributes["engine"].begin() as connection:
    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
    # Workers' queries queue behind a migration that waits for a table's lock, so it gives up soon.
    seconds = context.config.attributes.get("lock_seconds", 10)
    connection.execute(text(f"SET LOCAL lock_timeout = '{seconds}s'"))
    connection.execute(text("SET LOCAL statement_timeout = '10min'"))
    with roles.owning(connection):
        context.configure(connection=connection, target_metadata=metadata)
        context.run_migrations()
