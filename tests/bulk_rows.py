"""Tables with very many rows, made quickly: runs of judged lines, of which the last are not judged yet."""

from __future__ import annotations

from sqlalchemy import Engine, text

_ROWS = (
    """
    INSERT INTO environments (name, digest, toolchain, tiers, checker_version, seen_at)
    VALUES ('core', 'd', 'Lean', '{kernel,audit,lean}', '1', now()) ON CONFLICT DO NOTHING
    """,
    "INSERT INTO programs VALUES (sha256('x'), 'x')",
    """
    INSERT INTO runs (id, options, farm_version, created_at)
    SELECT 'filled' || run, '{}', '1', now() - (1 + CAST(:runs AS integer) - run) * interval '1 hour'
    FROM generate_series(1, CAST(:runs AS integer)) AS run
    """,
    """
    INSERT INTO manifests (run_id, number, path, sha256, size)
    SELECT id, 0, '/' || id, '', 0 FROM runs WHERE owner IS NULL
    """,
    """
    INSERT INTO checks (
        identity, program_sha256, submitted, environment, environment_digest, checker_version, tier, native,
        axioms, policy, wall_seconds, cpu_seconds, memory_mib, priority, turn, status, attempt)
    SELECT sha256(int8send(n)), sha256('x'), '[[0, 100]]', 'core', 'd', '1', 'kernel', false, '["propext"]',
           '{}', 30, 60, 4096, 2, n, CASE WHEN n <= :done THEN 'done' ELSE 'queued' END, 1
    FROM generate_series(1, CAST(:runs AS bigint) * CAST(:lines AS bigint)) AS n
    """,
    """
    INSERT INTO jobs (run_id, manifest, line, check_id, name, segments, warnings, shared)
    SELECT 'filled' || (turn - 1) / size + 1, 0, (turn - 1) % size + 1, id, 'algebra_' || turn,
           '[[0, 100, "generation", 0]]', '[]', false
    FROM checks, CAST(:lines AS bigint) AS size
    """,
    """
    INSERT INTO attempts (check_id, number, worker, started_at, outcome, detail)
    SELECT id, 1, 'host:1', now(), CASE WHEN turn % 4 = 0 THEN 'proved' ELSE 'rejected' END, ''
    FROM checks WHERE status = 'done'
    """,
    """
    INSERT INTO verdicts (
        check_id, attempt, verdict, reason, detail, messages, hits, wall_seconds, cpu_seconds,
        peak_memory_kib, isolation, environment_digest, toolchain, checker_version, statement)
    SELECT id, 1, CASE WHEN turn % 4 = 0 THEN 'proved' ELSE 'rejected' END, 'ok', '', '[]', '[]',
           1, 1, 1, '', 'd', 'Lean', '1', 'compared'
    FROM checks WHERE status = 'done'
    """,
    "INSERT INTO tallies SELECT 'attempts', outcome, count(*) FROM attempts GROUP BY outcome",
    "INSERT INTO tallies SELECT 'lines', 'own', count(*) FROM jobs",
)


def fill(engine: Engine, *, runs: int, lines: int, done: int) -> None:
    """Fill empty tables with runs of so many lines each, `done` of them judged, from the oldest run on."""
    values = {"runs": runs, "lines": lines, "done": done}
    for statement in _ROWS:
        with engine.begin() as connection:
            connection.execute(text(statement), values if ":" in statement else {})
