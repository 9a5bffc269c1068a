"""Runs the revisions against the engine that `farm.store.postgres.upgrade` hands over, in one transaction.

All of it, so that a lock of the transaction is enough: behind a pooler that keeps no sessions, a lock of the
session would stay with another client's connection.
"""

from __future__ import annotations

from alembic import context
from sqlalchemy import text

from farm_migrations.tables import metadata

# One number for every farm on this database: whoever holds it migrates while the others wait.
_LOCK = 0x6661726D

with context.config.attributes["engine"].begin() as connection:
    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
    # A migration that cannot get a table's lock soon gives up rather than hold up every worker behind it.
    seconds = context.config.attributes.get("lock_seconds", 10)
    connection.execute(text(f"SET LOCAL lock_timeout = '{seconds}s'"))
    connection.execute(text("SET LOCAL statement_timeout = '10min'"))
    context.configure(connection=connection, target_metadata=metadata)
    context.run_migrations()
