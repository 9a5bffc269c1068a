"""Loading of manifests: a whole run is stored in one transaction, streamed, in bounded memory.

Jobs and texts are copied at once, and checks to a temporary table, unless an equal check has a verdict. At
the end the table's distinct checks are inserted, one for all equal lines of this run and others. No other
transaction sees the run before it is complete.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from struct import Struct
from types import MappingProxyType
from typing import Any, cast

import psycopg
from sqlalchemy import Connection

from farm.errors import FarmError, QueueFull
from farm.judging.submit_options import SubmitOptions
from farm.manifest.lines import Fingerprint
from farm.store import waiting
from farm.store.columns import bigint_field, boolean_field, declared, text_field
from farm.store.new_lines import JOB_COLUMNS, STAGED_COLUMNS, Block
from farm.store.new_runs import HASTEN, INSERT_CHECKS, INSERT_VERDICTS, NewRun, begun, begun_by_tenant
from farm.store.postgres import hashing

_STAGE = f"""
    CREATE TEMPORARY TABLE staged (
        {declared(STAGED_COLUMNS)}, check_id bigint, ordinal bigint GENERATED ALWAYS AS IDENTITY
    ) ON COMMIT DROP
"""

# The header and trailer of a COPY in binary format, and the number of fields that precedes each row.
_HEAD, _TAIL = b"PGCOPY\n\xff\r\n\0" + bytes(8), b"\xff\xff"
_count = Struct("!h").pack
_SHARED, _UNSHARED = boolean_field(True), boolean_field(False)

_COPY_STAGED = f"COPY staged ({', '.join(STAGED_COLUMNS)}, check_id) FROM STDIN (FORMAT BINARY)"
_STAGED_FIELDS = len(STAGED_COLUMNS) + 1
_COPY_JOBS = (
    f"COPY jobs ({', '.join(JOB_COLUMNS)}, run_id, races, check_id, shared) FROM STDIN (FORMAT BINARY)"
)
_JOB_FIELDS = len(JOB_COLUMNS) + 4
_COPY_TEXTS = "COPY programs (sha256, source) FROM STDIN (FORMAT BINARY)"
_KNOWN = "SELECT sha256 FROM programs WHERE sha256 = ANY(%(texts)b) FOR KEY SHARE"

# Lines refer to their manifest, so it is stored first; its fingerprint is known only after its last line.
_MANIFEST = """
    INSERT INTO manifests (run_id, number, path, sha256, size)
    VALUES (%(run_id)s, %(number)s, %(path)s, '', 0)
"""
_FINGERPRINT = """
    UPDATE manifests SET sha256 = %(sha256)s, size = %(size)s
    WHERE run_id = %(run_id)s AND number = %(number)s
"""

_BEGUN = f"CREATE TEMPORARY TABLE begun ON COMMIT DROP AS {begun('staged')}"

# Concurrent loads insert in the order of cache keys, so they wait for each other and do not deadlock.
_CHECKS = f"""
    WITH first AS (
        SELECT DISTINCT ON (coalesce(identity, int8send(check_id))) * FROM staged
        WHERE NOT %(again)s OR (EXISTS (
            SELECT FROM jobs
            WHERE run_id = %(run_id)s AND (jobs.manifest, jobs.line) = (staged.manifest, staged.line)
              AND jobs.check_id = staged.check_id
        ) AND NOT EXISTS (SELECT FROM checks WHERE checks.id = staged.check_id))
        ORDER BY coalesce(identity, int8send(check_id)), ordinal
    )
    {INSERT_CHECKS.format(first="first", order="")}
"""

# Lines whose check exists in another run wait for that one.
_JOIN = """
    UPDATE jobs SET check_id = equal.id, shared = true
    FROM staged, LATERAL (
        SELECT id FROM checks WHERE checks.identity = staged.identity LIMIT 1 FOR KEY SHARE
    ) AS equal
    WHERE run_id = %(run_id)s AND (jobs.manifest, jobs.line) = (staged.manifest, staged.line)
      AND jobs.check_id = staged.check_id AND equal.id <> staged.check_id
"""

# Locks other runs' unfinished checks until this transaction commits: else they could end, or be cancelled,
# before other transactions see that this run waits for them.
_ATTACHED = """
    SELECT locked.id FROM (
        SELECT DISTINCT check_id AS id FROM jobs WHERE run_id = %(run_id)s AND shared ORDER BY id
    ) AS others, LATERAL (
        SELECT id FROM checks WHERE checks.id = others.id AND status IN ('queued', 'running')
        LIMIT 1 FOR NO KEY UPDATE
    ) AS locked
"""
_WANTED = f"""
    WITH others AS MATERIALIZED (
        SELECT checks.id, environment, tenant
        FROM unnest(CAST(%(ids)s AS bigint[])) AS other (id), LATERAL (
            SELECT id, environment, tenant FROM checks WHERE checks.id = other.id LIMIT 1
        ) AS checks
    ), heads AS MATERIALIZED ({begun_by_tenant("others")})
    SELECT jobs.check_id, min(heads.turn + ordinal - 1) AS turn
    FROM jobs JOIN staged USING (manifest, line)
    JOIN others ON others.id = jobs.check_id
    JOIN heads ON (heads.environment, heads.tenant) = (others.environment, others.tenant)
    WHERE run_id = %(run_id)s GROUP BY 1
"""
_HASTEN = HASTEN.format(
    wanted="(SELECT * FROM unnest(CAST(%(ids)s AS bigint[]), CAST(%(turns)s AS bigint[])) AS _ (id, turn))"
)

_TALLY = """
    INSERT INTO tallies
    SELECT 'lines', CASE WHEN shared THEN 'shared' ELSE 'own' END, count(*)
    FROM jobs WHERE run_id = %(run_id)s GROUP BY shared
    RETURNING word, number
"""

#: A second pass is rare already.
_MOST_PASSES = 100

_QUEUED = "SELECT count(*) FROM (SELECT FROM checks WHERE status = 'queued' LIMIT %(limit)s) AS queued"


class Load(NewRun):
    """A run of manifests that is being stored.

    `lines` counts its lines; at the end `shared` counts those among them that have an equal line.
    """

    def __init__(self, session: Connection, *values: Any, **options: Any) -> None:
        """Take a session in a transaction, and the values of `NewRun`."""
        driver = cast("psycopg.Connection[Any]", session.connection.driver_connection)
        super().__init__(driver, *values, **options)
        self.lines = self.shared = self._staged = 0
        self._session = session
        self._manifests = 0
        self._run_fields = text_field(self.run_id) + boolean_field(bool(self._values["races"]))

    def open_manifest(self, path: Path) -> None:
        """Begin the next manifest; they are numbered from 0 in this order."""
        self._execute(_MANIFEST, number=self._manifests, path=str(path))
        self._manifests += 1

    def close_manifest(self, fingerprint: Fingerprint) -> None:
        """Store the fingerprint of the manifest that was begun last."""
        number = self._manifests - 1
        self._execute(_FINGERPRINT, number=number, sha256=fingerprint.sha256, size=fingerprint.size)

    def add(self, block: Block) -> None:
        """Add lines of the manifest that was begun last."""
        self.lines += block.lines
        judged = self.judged([identity for identity in block.identities if identity is not None])
        ids = iter(self.ids(sum(identity not in judged for identity in block.identities)))
        jobs, staged = [], []
        for identity, job, check in zip(block.identities, block.jobs, block.checks, strict=True):
            check_id = None if identity is None else judged.get(identity)
            if check_id is not None:
                jobs.append(job + self._run_fields + bigint_field(check_id) + _SHARED)
                continue
            field = bigint_field(next(ids))
            jobs.append(job + self._run_fields + field + _UNSHARED)
            staged.append(check + field)
        self._copy(_COPY_JOBS, _JOB_FIELDS, jobs)
        if staged:
            if block.texts:
                self._copy_texts(dict(block.texts))
            self._copy(_COPY_STAGED, _STAGED_FIELDS, staged)
            self._staged += len(staged)

    def _copy_texts(self, texts: Mapping[bytes, bytes]) -> None:
        known = {sha256 for (sha256,) in self._execute(_KNOWN, texts=list(texts))}
        with self._connection.cursor().copy(_COPY_TEXTS) as copy:
            copy.set_types(["bytea", "bytea"])
            for sha256 in texts.keys() - known:
                copy.write_row((sha256, texts[sha256]))

    def _copy(self, statement: str, fields: int, rows: Sequence[bytes]) -> None:
        count = _count(fields)
        with self._connection.cursor().copy(statement) as copy:
            copy.write(b"".join((_HEAD, count, count.join(rows), _TAIL)))

    def begin(self, queue_limit: int | None) -> None:
        """Store the run itself; raises `QueueFull`."""
        if queue_limit is not None:
            self._require_room(queue_limit, queue_limit - 1)
        self.add_run()
        self._execute(_STAGE)

    def end(self, queue_limit: int | None) -> None:
        """Insert the checks of all lines.

        Raises `QueueFull`, and `FarmError` for an environment that is gone.
        """
        if self._staged:
            self._attach()
            if queue_limit is not None:
                self._require_room(queue_limit, queue_limit)
            self._settle()
        self.shared = dict(self._execute(_TALLY).fetchall()).get("shared", 0)
        if self._values["races"]:
            waiting.stop_rivals_of_run(self._session, self.run_id)
        # PostgreSQL plans the submit's next questions on these statistics. ANALYZE comes last: a transaction
        # that waits for its lock then blocks nothing here.
        self._execute("SELECT renew_statistics(%(lines)s)", lines=self.lines)

    def _attach(self) -> None:
        """Insert the staged checks, and have lines with equal checks of other runs wait for those.

        An equal check can be deleted between the insert, which it prevents, and the line's update; then both
        are repeated.
        """
        self._execute("ANALYZE staged")
        self._execute(_BEGUN)
        left = self._staged
        for nth in range(_MOST_PASSES):
            left -= self._attached(left, again=nth > 0)
            if not left:
                break
        else:
            raise FarmError(
                f"{left} {'line' if left == 1 else 'lines'} could not be queued: their environment is gone. "
                "Nothing was stored. See farm environments, start a worker that serves it, and submit again"
            )
        self._execute(INSERT_VERDICTS.format(staged="staged"))

    def _attached(self, left: int, *, again: bool) -> int:
        """Return how many of the lines that had no check have one now."""
        made = self._execute(_CHECKS, again=again).rowcount
        if made == left:
            return made
        with hashing(self._session):
            return made + self._execute(_JOIN).rowcount

    def _settle(self) -> None:
        """Raise the priority of other runs' checks; replace those that can no longer be shared."""
        if ids := [check_id for (check_id,) in self._execute(_ATTACHED)]:
            with hashing(self._session):
                wanted = self._execute(_WANTED, ids=ids).fetchall()
            asked = {"ids": [check_id for check_id, _ in wanted], "turns": [turn for _, turn in wanted]}
            self._execute(_HASTEN, **asked)
        waiting.part_left_alone(self._session, self.run_id)

    def _require_room(self, limit: int, most: int) -> None:
        """Raise `QueueFull`, naming the limit, when more than `most` checks wait."""
        row = self._execute(_QUEUED, limit=most + 1).fetchone()
        if row is not None and row[0] > most:
            raise QueueFull(
                f"the queue is full: with this run more than {limit} checks would wait; "
                "submit again when some are done (farm status shows the progress), or raise FARM_QUEUE_LIMIT"
            )


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
    """Load a run: the transaction stores all lines that are added inside the block.

    Raises `QueueFull` where more than `queue_limit` checks would wait. The spans of the run's checks become
    children of the `traceparent`. `more` is stored with the run's options.
    """
    load = Load(connection, run_id, options, traceparent=traceparent, more=more)
    load.begin(queue_limit)
    yield load
    load.end(queue_limit)
