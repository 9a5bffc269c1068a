"""The load step: a whole run into the store in one transaction, streamed, in bounded memory.

The rows go by binary COPY into a temporary table, and from there by plain inserts into their own: nothing of
a run is visible before all of it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from psycopg import Copy
from sqlalchemy import Connection, text

from farm import __version__
from farm.assurance import Assurance
from farm.challenge import Challenge
from farm.job import Limits
from farm.manifest import Fingerprint
from farm.program import Program
from farm.store import Store, storable
from farm.verdict import Verdict


@dataclass(frozen=True, kw_only=True, slots=True)
class NewJob:
    """One manifest line on its way into the store.

    ``verdict`` is set when the line was judged without a check, because Lean cannot be given its text.
    """

    manifest: int
    line: int
    name: str
    group: str | None
    environment: str
    limits: Limits
    program: Program
    challenge: Challenge | None
    verdict: Verdict | None


_STAGE = text("""
    CREATE TEMPORARY TABLE staged (
        manifest int, line int, name text, group_name text, environment text,
        wall_seconds float8, cpu_seconds float8, memory_mib int,
        sha256 bytea, source bytea, submitted text, segments text, warnings text,
        challenge bytea, challenge_name text, challenge_source bytea, verdict text, reason text, detail text,
        check_id bigint DEFAULT nextval(pg_get_serial_sequence('checks', 'id'))
    ) ON COMMIT DROP
""")

_COLUMNS = {
    "manifest": "int4",
    "line": "int4",
    "name": "text",
    "group_name": "text",
    "environment": "text",
    "wall_seconds": "float8",
    "cpu_seconds": "float8",
    "memory_mib": "int4",
    "sha256": "bytea",
    "source": "bytea",
    "submitted": "text",
    "segments": "text",
    "warnings": "text",
    "challenge": "bytea",
    "challenge_name": "text",
    "challenge_source": "bytea",
    "verdict": "text",
    "reason": "text",
    "detail": "text",
}
_COPY = f"COPY staged ({', '.join(_COLUMNS)}) FROM STDIN (FORMAT BINARY)"

# In the order of the key, so that two loads of the same programs wait for each other instead of deadlocking.
_PROGRAMS = text("""
    INSERT INTO programs (sha256, source)
    SELECT DISTINCT ON (sha256) sha256, source FROM staged ORDER BY sha256
    ON CONFLICT (sha256) DO NOTHING
""")

_CHALLENGES = text("""
    INSERT INTO challenges (sha256, name, source)
    SELECT DISTINCT ON (challenge) challenge, challenge_name, challenge_source
    FROM staged WHERE challenge IS NOT NULL ORDER BY challenge
    ON CONFLICT (sha256) DO NOTHING
""")

_CHECKS = text("""
    INSERT INTO checks (
        id, run_id, program_sha256, submitted, challenge_sha256, environment, tier, confirm, axioms, policy,
        wall_seconds, cpu_seconds, memory_mib, status)
    SELECT check_id, :run_id, sha256, submitted::jsonb, challenge, environment, :tier, :confirm,
           CAST(:axioms AS jsonb), CAST(:policy AS jsonb), wall_seconds, cpu_seconds, memory_mib,
           CASE WHEN verdict IS NULL THEN 'queued' ELSE 'done' END
    FROM staged ORDER BY check_id
""")

_JOBS = text("""
    INSERT INTO jobs (run_id, manifest, line, check_id, name, group_name, segments, warnings)
    SELECT :run_id, manifest, line, check_id, name, group_name, segments::jsonb, warnings::jsonb FROM staged
""")

_VERDICTS = text("""
    INSERT INTO verdicts (
        check_id, run_id, attempt, verdict, reason, detail, messages, hits, wall_seconds, cpu_seconds,
        peak_memory_kib, isolation, environment_digest, toolchain, checker_version)
    SELECT check_id, :run_id, 0, verdict, reason, detail, '[]', '[]', 0, 0, 0, '', '', '', :version
    FROM staged WHERE verdict IS NOT NULL
""")

_RUN = text("INSERT INTO runs (id, options, farm_version) VALUES (:id, CAST(:options AS jsonb), :version)")

_MANIFEST = text("""
    INSERT INTO manifests (run_id, number, path, sha256, size)
    VALUES (:run_id, :number, :path, :sha256, :size)
""")


@dataclass(frozen=True, kw_only=True, slots=True)
class Load:
    """A run being loaded; nothing of it is visible yet."""

    run_id: str
    copy: Copy
    manifests: list[tuple[Path, Fingerprint]]

    def add(self, job: NewJob) -> None:
        """Add one line."""
        self.copy.write_row(_row(job))

    def close_manifest(self, path: Path, fingerprint: Fingerprint) -> None:
        """Say what the manifest just read was, byte for byte; manifests are numbered from 0 in this order."""
        self.manifests.append((path, fingerprint))


@contextmanager
def loading(store: Store, run_id: str, options: dict[str, object], *, assurance: Assurance) -> Iterator[Load]:
    """Load a run: all that is added inside the block is committed at its end, or nothing is.

    Raises `ServerDown`; any error inside the block leaves the store as it was.
    """
    with store.transaction() as connection:
        connection.execute(_STAGE)
        with connection.connection.cursor().copy(_COPY) as copy:
            copy.set_types(list(_COLUMNS.values()))
            load = Load(run_id=run_id, copy=copy, manifests=[])
            yield load
        _move(connection, load, options, assurance)


def _move(connection: Connection, load: Load, options: dict[str, object], assurance: Assurance) -> None:
    run = {"run_id": load.run_id}
    connection.execute(_RUN, {"id": load.run_id, "options": json.dumps(options), "version": __version__})
    connection.execute(
        _MANIFEST,
        [
            run | {"number": number, "path": str(path), "sha256": print_.sha256, "size": print_.size}
            for number, (path, print_) in enumerate(load.manifests)
        ],
    )
    connection.execute(_PROGRAMS)
    connection.execute(_CHALLENGES)
    connection.execute(_CHECKS, run | _asked(assurance))
    connection.execute(_JOBS, run)
    connection.execute(_VERDICTS, run | {"version": __version__})


def _asked(assurance: Assurance) -> dict[str, object]:
    return {
        "tier": assurance.tier,
        "confirm": assurance.confirm,
        "axioms": json.dumps(list(assurance.axioms)),
        "policy": json.dumps(dict(assurance.policy.actions)),
    }


def _row(job: NewJob) -> tuple[object, ...]:
    program, challenge, verdict = job.program, job.challenge, job.verdict
    segments = [[s.start, s.length, s.origin, s.origin_start] for s in program.segments]
    warnings = [[w.code, w.origin, w.line, w.column] for w in program.warnings]
    return (
        job.manifest,
        job.line,
        storable(job.name),
        None if job.group is None else storable(job.group),
        job.environment,
        job.limits.wall_seconds,
        job.limits.cpu_seconds,
        job.limits.memory_mib,
        bytes.fromhex(program.sha256),
        program.text.encode("utf-8", "surrogatepass"),
        json.dumps(program.submitted),
        json.dumps(segments),
        json.dumps(warnings),
        challenge and bytes.fromhex(challenge.sha256),
        challenge and storable(challenge.name),
        challenge and challenge.program.encode("utf-8", "surrogatepass"),
        None if verdict is None else str(verdict.outcome),
        None if verdict is None else str(verdict.reason),
        None if verdict is None else storable(verdict.detail),
    )
