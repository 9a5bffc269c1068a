"""The load step: a whole run into the store in one transaction, streamed, in bounded memory.

Lines become jobs and texts at once, and what they ask for goes to a temporary table, unless its verdict is
known. At the end checks are made of that, one for all lines that are equal, here or in any other run. Nothing
of a run is visible before all is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from struct import Struct
from types import MappingProxyType
from typing import Any, cast

from psycopg import Cursor
from sqlalchemy import Connection, text

from farm.errors import FarmError, QueueFull
from farm.manifest.lines import Fingerprint
from farm.runs.prepare.options import SubmitOptions
from farm.runs.prepare.rows import CHECK_COLUMNS, JOB_COLUMNS, Block, words_field
from farm.store import waiting
from farm.store.postgres import hashing
from farm.version import VERSION

_STAGE = f"""
    CREATE TEMPORARY TABLE staged (
        {", ".join(f"{name} {kind}" for name, kind in CHECK_COLUMNS.items())},
        check_id bigint,
        ordinal bigint GENERATED ALWAYS AS IDENTITY
    ) ON COMMIT DROP
"""

# Of a COPY in binary format, what comes before its rows and after them, how many fields a row says it has,
# and fields of one and of eight bytes: https://www.postgresql.org/docs/current/sql-copy.html
_HEAD, _TAIL = b"PGCOPY\n\xff\r\n\0" + bytes(8), b"\xff\xff"
_count = Struct("!h").pack
_boolean = Struct("!i?").pack
_bigint = Struct("!iq").pack
_SHARED, _UNSHARED = _boolean(1, True), _boolean(1, False)

_COPY_STAGED = f"COPY staged ({', '.join(CHECK_COLUMNS)}, check_id) FROM STDIN (FORMAT BINARY)"
_STAGED_FIELDS = len(CHECK_COLUMNS) + 1
_COPY_JOBS = (
    f"COPY jobs ({', '.join(JOB_COLUMNS)}, run_id, races, check_id, shared) FROM STDIN (FORMAT BINARY)"
)
_JOB_FIELDS = len(JOB_COLUMNS) + 4
_COPY_TEXTS = "COPY programs (sha256, source) FROM STDIN (FORMAT BINARY)"

# %b is an argument in binary: https://www.psycopg.org/psycopg3/docs/basic/params.html
# A verdict that stayed in its identity stays there. What is found is locked: nobody deletes it before the
# commit.
_JUDGED = "SELECT identity, id FROM checks WHERE identity = ANY(%b) AND status = 'done' FOR KEY SHARE"
_KNOWN = "SELECT sha256 FROM programs WHERE sha256 = ANY(%b) FOR KEY SHARE"
_IDS = "SELECT nextval(pg_get_serial_sequence('checks', 'id')) FROM generate_series(1, %b)"

_RUN = text("""
    INSERT INTO runs (id, options, farm_version, deadline_at)
    VALUES (:id, CAST(:options AS jsonb), :version, now() + :deadline * interval '1 second')
""")

# Before its lines, which belong to it; what it was is known after them.
_MANIFEST = text("""
    INSERT INTO manifests (run_id, number, path, sha256, size) VALUES (:run_id, :number, :path, '', 0)
""")
_WAS_READ = text("""
    UPDATE manifests SET sha256 = :sha256, size = :size WHERE run_id = :run_id AND number = :number
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
        WHERE NOT :again OR (EXISTS (
            SELECT FROM jobs
            WHERE run_id = :run_id AND (jobs.manifest, jobs.line) = (staged.manifest, staged.line)
              AND jobs.check_id = staged.check_id
        ) AND NOT EXISTS (SELECT FROM checks WHERE checks.id = staged.check_id))
        ORDER BY coalesce(identity, int8send(check_id)), ordinal
    )
    INSERT INTO checks (
        id, identity, program_sha256, submitted, fallback_sha256, fallback_submitted,
        restated_sha256, restated_submitted, challenge_sha256, challenge_name, context_end, environment,
        environment_digest, checker_version, tier, native, axioms, policy,
        wall_seconds, cpu_seconds, memory_mib, image, goals, priority, turn, status)
    SELECT check_id, identity, program_sha256, submitted, fallback_sha256, fallback_submitted,
           restated_sha256, restated_submitted, challenge_sha256, challenge_name,
           context_end, environment, environments.digest,
           environments.checker_version, :tier, :native,
           CAST(:axioms AS jsonb), CAST(:policy AS jsonb), wall_seconds, cpu_seconds, memory_mib, image,
           :goals, :priority, begun.turn + ordinal - 1,
           CASE WHEN verdict IS NULL THEN 'queued' ELSE 'done' END
    FROM first JOIN begun USING (environment) JOIN environments ON environments.name = environment
    ON CONFLICT (identity) WHERE identity IS NOT NULL DO NOTHING
""")

# Lines whose check was there already wait for that one.
_JOIN = text("""
    UPDATE jobs SET check_id = equal.id, shared = true
    FROM staged, LATERAL (
        SELECT id FROM checks WHERE checks.identity = staged.identity LIMIT 1 FOR KEY SHARE
    ) AS equal
    WHERE run_id = :run_id AND (jobs.manifest, jobs.line) = (staged.manifest, staged.line)
      AND jobs.check_id = staged.check_id AND equal.id <> staged.check_id
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
    SELECT locked.id FROM (
        SELECT DISTINCT check_id AS id FROM jobs WHERE run_id = :run_id AND shared ORDER BY id
    ) AS others, LATERAL (
        SELECT id FROM checks WHERE checks.id = others.id AND status IN ('queued', 'running')
        LIMIT 1 FOR NO KEY UPDATE
    ) AS locked
""")

# It comes as early as if it were this run's own.
_WANTED = text("""
    SELECT jobs.check_id, min(begun.turn + ordinal - 1) AS turn
    FROM jobs JOIN staged USING (manifest, line) JOIN begun USING (environment)
    JOIN unnest(CAST(:ids AS bigint[])) AS others (id) ON others.id = jobs.check_id
    WHERE run_id = :run_id GROUP BY 1
""")
_HASTEN = text("""
    UPDATE checks SET priority = :priority, turn = wanted.turn
    FROM unnest(CAST(:ids AS bigint[]), CAST(:turns AS bigint[])) AS wanted (id, turn)
    WHERE checks.id = wanted.id AND status = 'queued'
      AND (checks.priority, checks.turn) > (:priority, wanted.turn)
""")

_TALLY = text("""
    INSERT INTO tallies
    SELECT 'lines', CASE WHEN shared THEN 'shared' ELSE 'own' END, count(*)
    FROM jobs WHERE run_id = :run_id GROUP BY shared
""")

#: The second pass is rare already.
_MOST_PASSES = 100

_QUEUED = text("SELECT count(*) FROM (SELECT FROM checks WHERE status = 'queued' LIMIT :limit) AS queued")


class Load:
    """A run being loaded; nothing of it is visible yet."""

    def __init__(self, run_id: str, connection: Connection, *, races: bool) -> None:
        self.run_id = run_id
        self.lines = self.staged = 0
        self._connection = connection
        self._cursor = cast("Cursor[Any]", connection.connection.cursor(binary=True))
        self._manifests = 0
        self._run = words_field(run_id) + _boolean(1, races)

    def open_manifest(self, path: Path) -> None:
        """Begin the next manifest; they are numbered from 0 in this order."""
        values = {"run_id": self.run_id, "number": self._manifests, "path": str(path)}
        self._connection.execute(_MANIFEST, values)
        self._manifests += 1

    def add(self, block: Block) -> None:
        """Add lines of the manifest that was begun last."""
        self.lines += block.lines
        judged = self._judged(block.identities)
        ids = iter(self._ids(sum(identity not in judged for identity in block.identities)))
        jobs, staged = [], []
        for identity, job, check in zip(block.identities, block.jobs, block.checks, strict=True):
            check_id = judged.get(identity)
            if check_id is not None:
                jobs.append(job + self._run + check_id + _SHARED)
                continue
            check_id = next(ids)
            jobs.append(job + self._run + check_id + _UNSHARED)
            staged.append(check + check_id)
        self._copy(_COPY_JOBS, _JOB_FIELDS, jobs)
        if staged:
            if block.texts:
                self._add_texts(dict(block.texts))
            self._copy(_COPY_STAGED, _STAGED_FIELDS, staged)
            self.staged += len(staged)

    def close_manifest(self, fingerprint: Fingerprint) -> None:
        """Say what the manifest just read was, byte for byte."""
        values = {"run_id": self.run_id, "number": self._manifests - 1}
        self._connection.execute(_WAS_READ, values | {"sha256": fingerprint.sha256, "size": fingerprint.size})

    def _judged(self, identities: Sequence[bytes | None]) -> dict[bytes | None, bytes]:
        """Return the checks, as fields, whose verdict is that of every equal check."""
        asked = [identity for identity in identities if identity is not None]
        found = self._cursor.execute(_JUDGED, (asked,)) if asked else ()
        return {identity: _bigint(8, check_id) for identity, check_id in found}

    def _ids(self, count: int) -> list[bytes]:
        """Return so many ids for new checks, as fields."""
        return [_bigint(8, check_id) for (check_id,) in self._cursor.execute(_IDS, (count,))] if count else []

    def _add_texts(self, texts: Mapping[bytes, bytes]) -> None:
        known = {sha256 for (sha256,) in self._cursor.execute(_KNOWN, (list(texts),))}
        with self._cursor.copy(_COPY_TEXTS) as copy:
            copy.set_types(["bytea", "bytea"])
            for sha256 in texts.keys() - known:
                copy.write_row((sha256, texts[sha256]))

    def _copy(self, statement: str, fields: int, rows: Sequence[bytes]) -> None:
        count = _count(fields)
        with self._cursor.copy(statement) as copy:
            copy.write(b"".join((_HEAD, count, count.join(rows), _TAIL)))


@contextmanager
def loading(
    connection: Connection,
    run_id: str,
    options: SubmitOptions,
    *,
    queue_limit: int | None = None,
    traceparent: str | None = None,
    more: Mapping[str, object] = MappingProxyType({}),
) -> Iterator[Load]:
    """Load a run: all that is added inside the block becomes a part of the transaction at its end.

    With a `queue_limit` no more checks than that may wait in the farm. Raises `QueueFull`. The spans of its
    checks become children of the `traceparent`. What is `more` is kept with the run beside its options.
    """
    if queue_limit is not None:
        # Where there is no room at all, nothing need be read.
        _require_room(connection, queue_limit, queue_limit - 1)
    races = options.stop_on_first_proof
    run = {"run_id": run_id, "priority": options.priority, "races": races}
    values = {"version": VERSION, "deadline": options.deadline_seconds}
    stored = options.stored(traceparent=traceparent, **more)
    connection.execute(_RUN, {"id": run_id, "options": stored, **values})
    connection.execute(text(_STAGE))
    load = Load(run_id, connection, races=races)
    yield load
    if load.staged:
        _attach(connection, load.staged, run | options.columns)
        if queue_limit is not None:
            _require_room(connection, queue_limit, queue_limit)
        _settle(connection, run)
    connection.execute(_TALLY, {"run_id": run_id})
    if races:
        waiting.stop_rivals_of_run(connection, run_id)


def _attach(connection: Connection, left: int, values: dict[str, object]) -> None:
    """Make checks of what is staged, and have lines wait for those that were there already.

    A check that was there when ours was not made can be gone when the line is to wait for it: then again.
    Raises FarmError when that does not come to an end.
    """
    connection.execute(text("ANALYZE staged"))
    connection.execute(_BEGUN, values)
    for place in range(_MOST_PASSES):
        left -= _attached(connection, left, values | {"again": place > 0})
        if not left:
            break
    else:
        raise FarmError(
            f"{left} {'line' if left == 1 else 'lines'} could not be queued: their environment is gone. "
            "Nothing was stored. See farm environments, start a worker that serves it, and submit again"
        )
    connection.execute(_VERDICTS, {"version": VERSION})


def _attached(connection: Connection, left: int, values: Mapping[str, object]) -> int:
    """Make checks, have the other lines wait for those that are there, and return how many lines have one."""
    made = connection.execute(_CHECKS, values).rowcount
    if made == left:
        return made
    with hashing(connection):
        return made + connection.execute(_JOIN, values).rowcount


def _settle(connection: Connection, run: dict[str, object]) -> None:
    """See to what became meanwhile of the checks that others brought."""
    if ids := connection.scalars(_ATTACHED, run).all():
        with hashing(connection):
            wanted = connection.execute(_WANTED, run | {"ids": ids}).all()
        asked = {"ids": [id_ for id_, _ in wanted], "turns": [turn for _, turn in wanted]}
        connection.execute(_HASTEN, run | asked)
    waiting.part_left_alone(connection, str(run["run_id"]))


def _require_room(connection: Connection, limit: int, most: int) -> None:
    """Raise `QueueFull`, naming the limit, when more than `most` checks wait."""
    queued = connection.scalar(_QUEUED, {"limit": most + 1})
    if queued is not None and queued > most:
        raise QueueFull(
            f"the queue is full: with this run more than {limit} checks would wait; "
            "submit again when some are done (farm list shows the progress), or raise FARM_QUEUE_LIMIT"
        )
