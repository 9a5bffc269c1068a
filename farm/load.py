"""The load step: a whole run into the store in one transaction, streamed, in bounded memory.

Texts go straight to their table, what is asked of each line to a temporary one; at the end checks are made of
the lines, one for all that are equal, here or in any other run. Nothing of a run is visible before all is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from sqlalchemy import Connection, text

from farm import __version__, waiting
from farm.assurance import Assurance
from farm.errors import QueueFull
from farm.job import Priority
from farm.manifest import Fingerprint
from farm.prepare import COLUMNS, Block

_STAGE = f"""
    CREATE TEMPORARY TABLE staged (
        {", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())},
        ordinal bigint GENERATED ALWAYS AS IDENTITY,
        check_id bigint DEFAULT nextval(pg_get_serial_sequence('checks', 'id'))
    ) ON COMMIT DROP
"""

# Of a COPY in binary format, what comes before its rows and after them:
# https://www.postgresql.org/docs/current/sql-copy.html
_HEAD, _TAIL = b"PGCOPY\n\xff\r\n\0" + bytes(8), b"\xff\xff"
_COPY_ROWS = f"COPY staged ({', '.join(COLUMNS)}) FROM STDIN (FORMAT BINARY)"
_COPY_TEXTS = "COPY programs (sha256, source) FROM STDIN (FORMAT BINARY)"

_KNOWN = text("SELECT sha256 FROM programs WHERE sha256 = ANY(:sha256s)")

_RUN = text("""
    INSERT INTO runs (id, options, farm_version, deadline_at)
    VALUES (:id, CAST(:options AS jsonb), :version, now() + :deadline * interval '1 second')
""")

_MANIFEST = text("""
    INSERT INTO manifests (run_id, number, path, sha256, size)
    VALUES (:run_id, :number, :path, :sha256, :size)
""")

# A run begins at the turn that its class and environment have come to; from there its lines take turns with
# those of the others (start-time fair queueing: Goyal, Vin and Cheng, SIGCOMM 1996).
_BEGUN = text("""
    CREATE TEMPORARY TABLE begun ON COMMIT DROP AS
    SELECT environment, coalesce((
        SELECT turn FROM checks
        WHERE status = 'queued' AND checks.environment = named.environment
          AND priority = :priority AND attempt = 0
        ORDER BY turn LIMIT 1), 0) AS turn
    FROM (SELECT DISTINCT environment FROM staged) AS named
""")

# In the order of identities, so that two loads wait for each other instead of locking up.
_CHECKS = text("""
    WITH first AS (
        SELECT DISTINCT ON (coalesce(identity, int8send(check_id))) * FROM staged
        WHERE NOT :again OR NOT EXISTS (
            SELECT FROM jobs
            WHERE run_id = :run_id AND (jobs.manifest, jobs.line) = (staged.manifest, staged.line))
        ORDER BY coalesce(identity, int8send(check_id)), ordinal
    )
    INSERT INTO checks (
        id, identity, program_sha256, submitted, challenge_sha256, challenge_name, environment,
        environment_digest, checker_version, tier, confirm, axioms, policy,
        wall_seconds, cpu_seconds, memory_mib, priority, turn, status)
    SELECT check_id, identity, program_sha256, submitted::jsonb, challenge_sha256, challenge_name,
           environment, environments.digest, environments.checker_version, :tier, :confirm,
           CAST(:axioms AS jsonb), CAST(:policy AS jsonb), wall_seconds, cpu_seconds, memory_mib,
           :priority, begun.turn + ordinal - 1, CASE WHEN verdict IS NULL THEN 'queued' ELSE 'done' END
    FROM first JOIN begun USING (environment) JOIN environments ON environments.name = environment
    ON CONFLICT (identity) WHERE identity IS NOT NULL DO NOTHING
""")

_JOBS = text("""
    INSERT INTO jobs (
        run_id, manifest, line, check_id, name, group_name, races, shared, segments, warnings)
    SELECT :run_id, manifest, line, checks.id, name, group_name, :races, checks.id <> staged.check_id,
           segments::jsonb, warnings::jsonb
    FROM staged JOIN checks ON checks.id = CASE
        WHEN staged.identity IS NULL THEN staged.check_id
        ELSE (SELECT id FROM checks AS equal WHERE equal.identity = staged.identity) END
    WHERE NOT :again OR NOT EXISTS (
        SELECT FROM jobs
        WHERE run_id = :run_id AND (jobs.manifest, jobs.line) = (staged.manifest, staged.line))
""")

_VERDICTS = text("""
    INSERT INTO verdicts (
        check_id, attempt, verdict, reason, detail, messages, hits, wall_seconds, cpu_seconds,
        peak_memory_kib, isolation, environment_digest, toolchain, checker_version)
    SELECT check_id, 0, verdict, reason, detail, '[]', '[]', 0, 0, 0, '', '', '', :version
    FROM staged WHERE verdict IS NOT NULL
""")

# What others brought and is unfinished may end, or be cancelled, before this run is there to be seen: it is
# held for the moment that is left.
_ATTACHED = text("""
    SELECT id FROM checks WHERE status IN ('queued', 'running')
    AND id IN (SELECT check_id FROM jobs WHERE run_id = :run_id AND shared)
    ORDER BY id FOR NO KEY UPDATE
""")

# It comes as early as if it were this run's own.
_HASTEN = text("""
    UPDATE checks SET priority = :priority, turn = wanted.turn
    FROM (
        SELECT jobs.check_id, min(begun.turn + ordinal - 1) AS turn
        FROM jobs JOIN staged USING (manifest, line) JOIN begun USING (environment)
        WHERE run_id = :run_id AND jobs.check_id = ANY(:ids) GROUP BY 1
    ) AS wanted
    WHERE checks.id = wanted.check_id AND status = 'queued'
      AND (checks.priority, checks.turn) > (:priority, wanted.turn)
""")

_QUEUED = text("SELECT count(*) FROM (SELECT FROM checks WHERE status = 'queued' LIMIT :limit) AS queued")


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """How a run is to be carried out, beside what each of its lines says.

    `options` are kept with the run. Checks that have not begun `deadline_seconds` from now are cancelled;
    with `races`, so is the rest of a group when one of it is proved. With a `queue_limit` no more checks than
    that may wait in the farm.
    """

    options: Mapping[str, object]
    assurance: Assurance
    priority: Priority = Priority.BATCH
    deadline_seconds: float | None = None
    races: bool = False
    queue_limit: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Load:
    """A run being loaded; nothing of it is visible yet."""

    run_id: str
    connection: Connection
    manifests: list[tuple[Path, Fingerprint]] = field(default_factory=list)

    def add(self, block: Block) -> None:
        """Add lines."""
        cursor = self.connection.connection.cursor()
        texts = dict(block.texts)
        known = self.connection.scalars(_KNOWN, {"sha256s": list(texts)}).all()
        with cursor.copy(_COPY_TEXTS) as copy:
            copy.set_types(["bytea", "bytea"])
            for sha256 in texts.keys() - set(known):
                copy.write_row((sha256, texts[sha256]))
        with cursor.copy(_COPY_ROWS) as copy:
            copy.write(_HEAD + block.rows + _TAIL)

    def close_manifest(self, path: Path, fingerprint: Fingerprint) -> None:
        """Say what the manifest just read was, byte for byte; manifests are numbered from 0 in this order."""
        self.manifests.append((path, fingerprint))


@contextmanager
def loading(connection: Connection, run_id: str, order: Order) -> Iterator[Load]:
    """Load a run: all that is added inside the block becomes a part of the transaction at its end.

    Raises `QueueFull`.
    """
    if order.queue_limit is not None:
        # Where there is no room at all, nothing need be read.
        _require_room(connection, order.queue_limit, order.queue_limit - 1)
    connection.execute(text(_STAGE))
    load = Load(run_id=run_id, connection=connection)
    yield load
    _begin(connection, load, order)
    run = {"run_id": run_id, "priority": order.priority, "races": order.races}
    _attach(connection, run | _asked(order.assurance))
    if order.queue_limit is not None:
        _require_room(connection, order.queue_limit, order.queue_limit)
    _settle(connection, run)


def _begin(connection: Connection, load: Load, order: Order) -> None:
    """Write the run and its manifests down, and find out at which turn it begins."""
    run = {
        "id": load.run_id,
        "options": json.dumps(order.options),
        "version": __version__,
        "deadline": order.deadline_seconds,
    }
    connection.execute(_RUN, run)
    connection.execute(
        _MANIFEST,
        [
            {"run_id": load.run_id, "number": number, "path": str(path), **asdict(print_)}
            for number, (path, print_) in enumerate(load.manifests)
        ],
    )
    connection.execute(text("ANALYZE staged"))
    connection.execute(_BEGUN, {"priority": order.priority})


def _attach(connection: Connection, values: dict[str, object]) -> None:
    """Make a job of every line, waiting for a check that is new or was there already.

    A check that was there when ours was not made can be gone when the line is to wait for it: then again.
    """
    left = int(connection.scalar(text("SELECT count(*) FROM staged")) or 0)
    again = False
    while left:
        connection.execute(_CHECKS, values | {"again": again})
        left -= connection.execute(_JOBS, values | {"again": again}).rowcount
        again = True
    connection.execute(_VERDICTS, {"version": __version__})


def _settle(connection: Connection, run: dict[str, object]) -> None:
    """See to what became meanwhile of the checks that others brought, and to groups that are won already."""
    if ids := connection.scalars(_ATTACHED, run).all():
        connection.execute(_HASTEN, run | {"ids": ids})
    waiting.part_left_alone(connection, str(run["run_id"]))
    if run["races"]:
        waiting.stop_rivals_of_run(connection, str(run["run_id"]))


def _require_room(connection: Connection, limit: int, most: int) -> None:
    """Raise `QueueFull`, naming the limit, when more than `most` checks wait."""
    queued = connection.scalar(_QUEUED, {"limit": most + 1})
    if queued is not None and queued > most:
        raise QueueFull(
            f"with this run more than {limit} checks would wait, which is the farm's limit; "
            "submit again when some are done (farm list shows how far runs are), or raise FARM_QUEUE_LIMIT"
        )


def _asked(assurance: Assurance) -> dict[str, object]:
    return {
        "tier": assurance.tier,
        "confirm": assurance.confirm,
        "axioms": json.dumps(list(assurance.axioms)),
        "policy": json.dumps(dict(assurance.policy.actions)),
    }
