"""Retries: finished lines of a run get new checks; their old checks and verdicts stay in the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

from farm.store import waiting
from farm.store.new_runs import WORK, begun_by_class
from farm.store.postgres import hashing

_CANCELLED = text("UPDATE runs SET cancelled_at = now() WHERE id = :run_id")
_GOES_ON = text("UPDATE runs SET cancelled_at = NULL, deadline_at = NULL WHERE id = :run_id")

_COUNTED = text("SELECT renew_statistics(:lines)")

_CHOSEN = """
    run_id = :run_id AND CASE
        WHEN cancelled IS NOT NULL THEN 'cancelled' = ANY(:status)
        ELSE verdict = ANY(:verdict) OR reason = ANY(:reason)
            OR verdict IS NOT NULL AND 'done' = ANY(:status) END
"""
_ASKED = text(f"""
    SELECT DISTINCT environment, tier
    FROM jobs JOIN checks ON checks.id = check_id LEFT JOIN verdicts USING (check_id) WHERE {_CHOSEN}
""")

# The columns in which a new check can differ from the old one. Only on the tier lean may a rule reject.
_CHANGED = {
    "tier": "coalesce(:tier, tier)",
    "policy": """
        CASE coalesce(:tier, tier) WHEN 'lean' THEN policy ELSE (
            SELECT coalesce(jsonb_object_agg(key, value), '{}') FROM jsonb_each(policy)
            WHERE value <> '"reject"') END""",
    "wall_seconds": "coalesce(:wall_seconds, wall_seconds)",
    "cpu_seconds": """
        coalesce(CAST(:cpu_seconds AS float8),
                 cpu_seconds * (CAST(:wall_seconds AS float8) / wall_seconds), cpu_seconds)""",
    "memory_mib": "coalesce(:memory_mib, memory_mib)",
}

# Materialized, the heads of the queues are looked up once and not for every line. Each check is locked before
# its job, in the order of their ids, as `farm.store.waiting` requires.
_RETRY = text(f"""
    WITH chosen AS (
        SELECT run_id, manifest, line, check_id, nextval(pg_get_serial_sequence('checks', 'id')) AS new_id
        FROM checks JOIN jobs ON check_id = checks.id LEFT JOIN verdicts USING (check_id)
        WHERE {_CHOSEN}
        ORDER BY check_id FOR NO KEY UPDATE OF checks, jobs
    ), begun AS MATERIALIZED ({begun_by_class("checks JOIN chosen ON check_id = checks.id")}), made AS (
        INSERT INTO checks (id, status, turn, {", ".join(WORK)})
        SELECT new_id, 'queued', begun.turn + row_number() OVER (ORDER BY manifest, line) - 1,
               {", ".join(_CHANGED.get(name, name) for name in WORK)}
        FROM chosen JOIN checks ON check_id = checks.id JOIN begun USING (environment, priority, tenant)
    )
    UPDATE jobs SET check_id = new_id, shared = false, cancelled = NULL FROM chosen
    WHERE (jobs.run_id, jobs.manifest, jobs.line) = (chosen.run_id, chosen.manifest, chosen.line)
    RETURNING chosen.check_id
""")


class CheckChanges(NamedTuple):
    """The tier and the limits of new checks; None keeps the old check's.

    Without `cpu_seconds` the limit of processor time grows with that of time.
    """

    tier: str | None = None
    wall_seconds: float | None = None
    cpu_seconds: float | None = None
    memory_mib: int | None = None


def environments_and_tiers(
    connection: Connection, run_id: str, picked: Mapping[str, Sequence[str]]
) -> list[tuple[str, str]]:
    """Return the environments and tiers of lines, which are picked by `verdict`, `reason` and `status`."""
    with hashing(connection):
        rows = connection.execute(_ASKED, {"run_id": run_id, **picked})
        return [(environment, tier) for environment, tier in rows]


def retry(
    connection: Connection, run_id: str, picked: Mapping[str, Sequence[str]], changes: CheckChanges
) -> int:
    """Give the lines new checks, and return their number."""
    with hashing(connection):
        left = connection.scalars(_RETRY, {"run_id": run_id, **picked, **changes._asdict()}).all()
    if left:
        waiting.leave_behind(connection, left)
        connection.execute(_GOES_ON, {"run_id": run_id})
        connection.execute(_COUNTED, {"lines": len(left)})
    return len(left)


def mark_cancelled(connection: Connection, run_id: str) -> None:
    """Store that a user cancelled the whole run."""
    connection.execute(_CANCELLED, {"run_id": run_id})
