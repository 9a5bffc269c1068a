"""Batches in the store: a small run without files, its items and checks, in one short transaction.

A run of manifests is staged in a temporary table; a thousand batches a second would fill the catalogue with
those. What equal checks have in common is settled as in `farm.runs.load`: one check for all who ask the same.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.rows import DictRow, dict_row

from farm.errors import FarmError, UsageError
from farm.store.records import Item

_RUN = """
    INSERT INTO runs (id, options, farm_version, deadline_at, owner)
    VALUES (%(id)s, %(options)s, %(version)s, now() + %(deadline)s * interval '1 second', %(owner)s)
"""

# Who asks for the same key at the same moment waits here until the other has stored it, or has not.
_TAKE_KEYS = """
    INSERT INTO item_keys (owner, key, request_sha256, run_id, line)
    SELECT %(owner)s, key, sha256, %(id)s, line
    FROM unnest(CAST(%(keys)s AS text[]), CAST(%(sha256s)s AS bytea[]), CAST(%(lines)s AS integer[]))
         AS asked (key, sha256, line)
    ORDER BY key ON CONFLICT DO NOTHING
    RETURNING line
"""
# The batches are locked: nobody deletes one before this one is there to be seen, and refers to it.
_KEYS = """
    SELECT key, request_sha256, run_id, line
    FROM item_keys JOIN runs ON runs.id = run_id
    WHERE item_keys.owner = %(owner)s AND key = ANY(%(keys)s) FOR KEY SHARE OF runs
"""

_IS_WHOLE = """
    SELECT NOT options::jsonb ? 'places' AND %(count)s = (SELECT count(*) FROM jobs WHERE run_id = runs.id)
           AS is_whole
    FROM runs WHERE id = %(batch)s
"""
_PLACES = """
    UPDATE runs SET options = options::jsonb || jsonb_build_object('places', CAST(%(places)s AS jsonb))
    WHERE id = %(id)s
"""

# What is there already is locked: nobody deletes it before the commit. So is a check whose verdict is known.
_TEXTS = """
    WITH known AS (
        SELECT sha256 FROM programs WHERE sha256 = ANY(CAST(%(sha256s)s AS bytea[])) FOR KEY SHARE
    )
    INSERT INTO programs (sha256, source)
    SELECT sha256, source FROM unnest(CAST(%(sha256s)s AS bytea[]), CAST(%(sources)s AS bytea[]))
         AS asked (sha256, source)
    WHERE sha256 NOT IN (SELECT sha256 FROM known)
"""

_JUDGED = """
    SELECT id, identity FROM checks WHERE identity = ANY(%(identities)s) AND status = 'done' FOR KEY SHARE
"""

# A batch begins at the turn that its class and environment have come to, as any run does.
_BEGUN = """
    begun AS (
        SELECT environment, coalesce((
            SELECT turn FROM checks
            WHERE status = 'queued' AND checks.environment = named.environment
              AND priority = %(priority)s AND attempt = 0
            ORDER BY turn LIMIT 1), 0) AS turn
        FROM (SELECT DISTINCT environment FROM asked) AS named
    )
"""

# Identities in their order, so that two batches wait for each other instead of locking up.
_CHECKS = f"""
    WITH asked AS (
        SELECT * FROM jsonb_to_recordset(CAST(%(checks)s AS jsonb)) AS asked (
            id bigint, line integer, identity text, program text, submitted json, fallback text,
            fallback_submitted json, restated text, restated_submitted json,
            context_end integer, challenge text, challenge_name text,
            environment text,
            wall_seconds float8, cpu_seconds float8, memory_mib integer, image bigint,
            judged boolean)
    ), {_BEGUN}
    INSERT INTO checks (
        id, identity, program_sha256, submitted, fallback_sha256, fallback_submitted, restated_sha256,
        restated_submitted, challenge_sha256, challenge_name, context_end, environment,
        environment_digest, checker_version, tier, native, axioms,
        policy, wall_seconds, cpu_seconds, memory_mib, image, goals, priority, turn, status)
    SELECT id, decode(identity, 'hex'), decode(program, 'hex'), submitted, decode(fallback, 'hex'),
           fallback_submitted, decode(restated, 'hex'), restated_submitted,
           decode(challenge, 'hex'), challenge_name, context_end, environment,
           environments.digest,
           environments.checker_version, %(tier)s, %(native)s, %(axioms)s, %(policy)s, wall_seconds,
           cpu_seconds, memory_mib, image, %(goals)s, %(priority)s, begun.turn + line - 1,
           CASE WHEN judged THEN 'done' ELSE 'queued' END
    FROM asked JOIN begun USING (environment) JOIN environments ON environments.name = environment
    ORDER BY identity, line
    ON CONFLICT (identity) WHERE identity IS NOT NULL DO NOTHING
    RETURNING id
"""  # noqa: S608 - a constant

_IDS = "SELECT nextval(pg_get_serial_sequence('checks', 'id')) AS id FROM generate_series(1, %(count)s)"

# What others brought is held until this batch is there to be seen, and comes as early as if it were its own.
_JOIN = """
    SELECT locked.id, locked.identity FROM (
        SELECT id, identity FROM checks WHERE identity = ANY(%(identities)s) ORDER BY id
    ) AS others, LATERAL (
        SELECT id, identity FROM checks
        WHERE checks.id = others.id AND checks.identity = others.identity FOR NO KEY UPDATE
    ) AS locked
"""
_HASTEN = f"""
    WITH asked AS (
        SELECT checks.id, environment, line FROM checks
        JOIN unnest(CAST(%(ids)s AS bigint[]), CAST(%(lines)s AS integer[])) AS asked (id, line) USING (id)
    ), {_BEGUN}
    UPDATE checks SET priority = %(priority)s, turn = begun.turn + line - 1
    FROM asked JOIN begun USING (environment)
    WHERE checks.id = asked.id AND status = 'queued'
      AND (checks.priority, checks.turn) > (%(priority)s, begun.turn + line - 1)
"""  # noqa: S608 - a constant

_JOBS = """
    INSERT INTO jobs (
        run_id, manifest, line, check_id, name, group_name, races, shared, segments, fallback_segments,
        restated_segments, warnings)
    SELECT %(id)s, 0, line, check_id, name, group_name, %(races)s, shared, segments, fallback_segments,
           restated_segments, warnings
    FROM jsonb_to_recordset(CAST(%(jobs)s AS jsonb)) AS asked (
        line integer, check_id bigint, name text, group_name text, shared boolean, segments json,
        fallback_segments json, restated_segments json, warnings json)
"""

_TALLY = "INSERT INTO tallies SELECT 'lines', * FROM unnest(%(words)s::text[], %(numbers)s::bigint[])"

_VERDICTS = """
    INSERT INTO verdicts (
        check_id, attempt, verdict, reason, detail, messages, hits, wall_seconds, cpu_seconds,
        peak_memory_kib, isolation, environment_digest, toolchain, checker_version)
    SELECT check_id, 0, verdict, reason, detail, '[]', '[]', 0, 0, 0, '', '', '', %(version)s
    FROM jsonb_to_recordset(CAST(%(verdicts)s AS jsonb)) AS judged (
        check_id bigint, verdict text, reason text, detail text)
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class ItemKey:
    """By which name a client knows an item, and the sha256 of what it asks for under that name."""

    key: str
    sha256: bytes
    line: int


class KeyReused(FarmError):
    """A key of a batch was used before, for something else; `keys` names them."""

    def __init__(self, keys: Sequence[str]) -> None:
        super().__init__(f"used before, with another body: {', '.join(map(repr, keys[:10]))}")
        self.keys = tuple(keys)


class BatchRows:
    """Stores one batch, step by step, inside a transaction of whoever calls.

    What a step need not know before the next is sent together with it, where the connection is in the
    pipeline mode of libpq: only what is fetched is waited for.
    """

    def __init__(self, connection: psycopg.Connection[Any], values: Mapping[str, object]) -> None:
        """Take a connection, and what is the same for all of the batch: id, owner, options and the like."""
        self._connection, self._values = connection, values

    def _execute(self, statement: str, values: Mapping[str, object]) -> psycopg.Cursor[DictRow]:
        # A cursor for each: of one, a statement would take the rows of the one before it.
        return self._connection.cursor(row_factory=dict_row).execute(statement, values)

    def add_run(self) -> None:
        """Store the run itself."""
        self._execute(_RUN, self._values)

    def drop_run(self) -> None:
        """Take the run back: it is one that was asked for before."""
        self._execute("DELETE FROM runs WHERE id = %(id)s", self._values)

    def is_whole(self, batch_id: str, count: int) -> bool:
        """Return whether a batch has so many items, and all of them are its own."""
        row = self._execute(_IS_WHOLE, {"batch": batch_id, "count": count}).fetchone()
        return row is not None and bool(row["is_whole"])

    def add_places(self, places: Sequence[Item]) -> None:
        """Note which items the batch is asked for, some of them in other batches."""
        self._execute(_PLACES, {**self._values, "places": json.dumps(places)})

    def take_keys(self, keys: Sequence[ItemKey]) -> dict[int, Item]:
        """Return which lines were asked for before, under the same key, and where; take the other keys.

        Raises `KeyReused` where something else was asked for under a key.
        """
        if not keys:
            return {}
        values = {
            **self._values,
            "keys": [each.key for each in keys],
            "sha256s": [each.sha256 for each in keys],
            "lines": [each.line for each in keys],
        }
        known: dict[str, Mapping[str, Any]] = {}
        while {each.key for each in keys} - known.keys():  # again where one was deleted meanwhile
            if len(self._execute(_TAKE_KEYS, values).fetchall()) == len(keys):
                return {}
            known = {row["key"]: row for row in self._execute(_KEYS, values)}
        if odd := [each.key for each in keys if bytes(known[each.key]["request_sha256"]) != each.sha256]:
            raise KeyReused(odd)
        found = {each.line: (known[each.key]["run_id"], known[each.key]["line"]) for each in keys}
        return {line: item for line, item in found.items() if item != (self._values["id"], line)}

    def judged(self, identities: Sequence[bytes]) -> dict[bytes, int]:
        """Return the checks whose verdict is that of every equal check, by identity."""
        rows = self._execute(_JUDGED, {"identities": list(identities)}) if identities else ()
        return {bytes(row["identity"]): row["id"] for row in rows}

    def add_texts(self, texts: Mapping[bytes, bytes]) -> None:
        """Store the texts that are not there yet, by their sha256."""
        self._execute(_TEXTS, {"sha256s": list(texts), "sources": list(texts.values())})

    def ids(self, count: int) -> list[int]:
        """Return so many ids for new checks."""
        return [row["id"] for row in self._execute(_IDS, {"count": count})]

    def add_checks(self, checks: Sequence[Mapping[str, Any]]) -> dict[int, int]:
        """Make checks, or find equal ones of others; returns by the id of each the id of the one that counts.

        No two of them may be equal. Raises UsageError when an environment is gone.
        """
        found = self._insert(checks)
        left = [each for each in checks if each["id"] not in found]
        if left:
            found |= self._join(left)
            # What was there a moment ago is not to be shared any more. These are nobody's but this batch's:
            # to insert them under their identities now, out of order, could lock up with another batch.
            alone = [{**each, "identity": None} for each in left if each["id"] not in found]
            found |= self._insert(alone)
        if len(found) < len(checks):
            raise UsageError("an environment of the batch is gone, and nothing was stored; name another")
        return found

    def _insert(self, checks: Sequence[Mapping[str, Any]]) -> dict[int, int]:
        if not checks:
            return {}
        rows = self._execute(_CHECKS, {**self._values, "checks": json.dumps(checks)})
        return {row["id"]: row["id"] for row in rows}

    def _join(self, checks: Sequence[Mapping[str, Any]]) -> dict[int, int]:
        """Hold the equal checks of others, as far as they are there, and have them come as early as these."""
        asked = {bytes.fromhex(each["identity"]): each for each in checks if each["identity"]}
        rows = self._execute(_JOIN, {"identities": list(asked)}).fetchall()
        found = [(row["id"], asked[bytes(row["identity"])]) for row in rows]
        if found:
            joined = {"ids": [id_ for id_, _ in found], "lines": [each["line"] for _, each in found]}
            self._execute(_HASTEN, {**self._values, **joined})
        return {each["id"]: id_ for id_, each in found}

    def add_jobs(self, jobs: Sequence[Mapping[str, object]]) -> None:
        """Store the items, each with the check that it waits for, and count them."""
        self._execute(_JOBS, {**self._values, "jobs": json.dumps(jobs)})
        counted = Counter("shared" if each["shared"] else "own" for each in jobs)
        self._execute(_TALLY, {"words": list(counted), "numbers": list(counted.values())})

    def be_quick(self) -> None:
        """Do not wait for the disk: what is stored can be asked for again, and nothing has to be judged."""
        self._execute("SET LOCAL synchronous_commit TO off", {})

    def add_verdicts(self, verdicts: Sequence[Mapping[str, object]]) -> None:
        """Store the verdicts of what Lean need not be asked."""
        if verdicts:
            self._execute(_VERDICTS, {**self._values, "verdicts": json.dumps(verdicts)})
