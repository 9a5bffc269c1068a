"""The revisions that Alembic runs, in the order of their numbers."""
