"""Prepares the deletion of old runs: in batches, and by indexes instead of scans of the remaining rows."""

from __future__ import annotations

from alembic import op

revision = "0017"
down_revision = "0016"

# The lines of a deleted run are deleted after it, in batches, so they have no foreign key to it. The key to
# checks prevents the deletion of a check that a line waits for, which would otherwise delete the line too.
# One statement inserts or deletes attempts and verdicts with their check; a foreign key would look each of
# them up again, which costs as much as its deletion.
_SCHEMA = """
    CREATE TABLE pruned_runs (
        run_id TEXT NOT NULL,
        CONSTRAINT pruned_runs_pkey PRIMARY KEY (run_id)
    );
    ALTER TABLE jobs DROP CONSTRAINT jobs_run_id_fkey;
    ALTER TABLE jobs DROP CONSTRAINT jobs_check_id_fkey;
    ALTER TABLE jobs ADD CONSTRAINT jobs_check_id_fkey
        FOREIGN KEY (check_id) REFERENCES checks (id) DEFERRABLE INITIALLY DEFERRED;
    ALTER TABLE attempts DROP CONSTRAINT attempts_check_id_fkey;
    ALTER TABLE verdicts DROP CONSTRAINT verdicts_check_id_fkey;

    CREATE INDEX runs_batches_idx ON runs (created_at) WHERE owner IS NOT NULL;
    CREATE INDEX runs_places_idx ON runs USING gin ((options -> 'places'))
        WHERE options ? 'places';
    CREATE INDEX checks_cancelled_idx ON checks (id) WHERE status = 'cancelled';
    CREATE INDEX checks_program_sha256_idx ON checks (program_sha256);
    CREATE INDEX checks_fallback_sha256_idx ON checks (fallback_sha256) WHERE fallback_sha256 IS NOT NULL;
    CREATE INDEX checks_challenge_sha256_idx ON checks (challenge_sha256) WHERE challenge_sha256 IS NOT NULL;
"""


def upgrade() -> None:
    """Add a table and indexes, and drop or loosen foreign keys; no row changes."""
    op.execute(_SCHEMA)
