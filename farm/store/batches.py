"""Batches: a small run without files, with its items and checks, is stored in one short transaction.

A load of manifests stages its lines in a temporary table; a thousand batches a second would fill PostgreSQL's
catalogue with those. So a batch passes its items as JSON.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from farm.errors import FarmError, UsageError
from farm.judging.submit_options import SubmitOptions
from farm.store import waiting
from farm.store.columns import columns_of, declared
from farm.store.new_lines import STAGED_COLUMNS, NewJob, NewLine, check_record, records_json
from farm.store.new_runs import HASTEN, INSERT_CHECKS, INSERT_VERDICTS, NewRun, begun
from farm.store.postgres import together
from farm.store.records import Item
from farm.store.transitions import Store

# A concurrent batch with the same key waits here until the other transaction has ended.
_TAKE_KEYS = """
    INSERT INTO item_keys (owner, key, request_sha256, run_id, line)
    SELECT %(owner)s, key, sha256, %(run_id)s, line
    FROM unnest(CAST(%(keys)s AS text[]), CAST(%(sha256s)s AS bytea[]), CAST(%(lines)s AS integer[]))
         AS asked (key, sha256, line)
    ORDER BY key ON CONFLICT DO NOTHING
    RETURNING line
"""
# The lock prevents the deletion of batches to which this one is about to refer.
_KEYS = """
    SELECT key, request_sha256, run_id, line
    FROM item_keys JOIN runs ON runs.id = run_id
    WHERE item_keys.owner = %(owner)s AND key = ANY(%(keys)s) FOR KEY SHARE OF runs
"""

_IS_WHOLE = """
    SELECT NOT options::jsonb ? 'places' AND %(count)s = (SELECT count(*) FROM jobs WHERE run_id = runs.id)
           AS is_whole
    FROM runs WHERE id = %(first)s
"""
_PLACES = """
    UPDATE runs SET options = options::jsonb || jsonb_build_object('places', CAST(%(places)s AS jsonb))
    WHERE id = %(run_id)s
"""

_ASKED = f"""
    jsonb_to_recordset(CAST(%(checks)s AS jsonb)) AS asked (
        {declared(STAGED_COLUMNS)}, check_id bigint, ordinal integer)
"""
# Concurrent batches insert in the order of cache keys, so they wait for each other and do not deadlock.
_CHECKS = (
    f"WITH asked AS (SELECT * FROM {_ASKED}), begun AS ({begun('asked')})"
    f"{INSERT_CHECKS.format(first='asked', order='ORDER BY identity, ordinal')} RETURNING id"
)
_VERDICTS = INSERT_VERDICTS.format(staged=_ASKED)

# Locks other runs' checks until this batch commits, and gives them the turns that its own would have.
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
    ), begun AS ({begun("asked")})
    {HASTEN.format(wanted="(SELECT id, turn + line - 1 AS turn FROM asked JOIN begun USING (environment))")}
"""

_JOB = ", ".join(NewJob._fields)
_JOBS = f"""
    INSERT INTO jobs (run_id, manifest, races, line, check_id, shared, {_JOB})
    SELECT %(run_id)s, 0, %(races)s, line, check_id, shared, {_JOB}
    FROM jsonb_to_recordset(CAST(%(jobs)s AS jsonb)) AS asked (
        line integer, check_id bigint, shared boolean, {declared(columns_of(NewJob))})
"""

_TALLY = "INSERT INTO tallies SELECT 'lines', * FROM unnest(%(words)s::text[], %(numbers)s::bigint[])"


@dataclass(frozen=True, kw_only=True, slots=True)
class Batch:
    """A stored batch: its items in the order in which they came, and the check that each waits for.

    An item whose idempotency key was used before is the earlier batch's item; where that holds for a whole
    batch, the batch is the earlier one. `queued` are the environments in which checks wait now.
    """

    id: str
    items: tuple[Item, ...]
    checks: Mapping[Item, int]
    judged: frozenset[Item]
    queued: frozenset[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class ItemKey:
    """The idempotency key of an item, and the sha256 of its body with the batch's options."""

    key: str
    sha256: bytes
    line: int


class KeyReused(FarmError):
    """A key of a batch was used before, for something else; `keys` names them."""

    def __init__(self, keys: Sequence[str]) -> None:
        super().__init__(f"used before, with another body: {', '.join(map(repr, keys[:10]))}")
        self.keys = tuple(keys)


def store_batch(
    store: Store,
    batch_id: str,
    options: SubmitOptions,
    lines: Sequence[NewLine],
    *,
    keys: Sequence[ItemKey] = (),
    owner: str = "",
    traceparent: str | None = None,
    more: Mapping[str, object],
) -> Batch:
    """Store a batch, or find the items that were stored before under the same idempotency keys.

    Waits for PostgreSQL's disk only where something is queued. Raises `KeyReused`, `UsageError` for an
    environment that is gone, and `ServerDown`.
    """
    with store.transaction() as connection:
        with together(connection) as driver:
            rows = BatchRows(driver, batch_id, options, owner=owner, traceparent=traceparent, more=more)
            batch = rows.store(lines, keys)
        if options.stop_on_first_proof:
            waiting.stop_rivals_of_run(connection, batch.id)
    return batch


class BatchRows(NewRun):
    """Stores one batch inside the caller's transaction.

    In libpq's pipeline mode statements are sent together; only a fetch waits for their results.
    """

    def store(self, lines: Sequence[NewLine], keys: Sequence[ItemKey]) -> Batch:
        """Store the items that were not stored before, and return all of them."""
        self.add_run()
        before = self.take_keys(keys)
        new = {number: each for number, each in enumerate(lines, 1) if number not in before}
        places = {number: before.get(number, (self.run_id, number)) for number in range(1, len(lines) + 1)}
        batch_id = self._resumed(list(places.values())) if before else self.run_id
        judged = self.judged(
            [each.check.identity for each in new.values() if each.check.identity is not None]
        )
        checks = self._checks(new, judged)
        if new:
            self.add_jobs(new, checks)
        self.add_verdicts([(checks[number][0], each) for number, each in new.items() if each.verdict])
        known = frozenset(judged.values())
        done = {number for number, each in new.items() if each.verdict or checks[number][0] in known}
        queued = frozenset(each.check.environment for number, each in new.items() if number not in done)
        if not queued:
            self.be_quick()
        return Batch(
            id=batch_id,
            items=tuple(places.values()),
            checks={places[number]: check_id for number, (check_id, _) in checks.items()},
            judged=frozenset(places[number] for number in done),
            queued=queued,
        )

    def _resumed(self, places: Sequence[Item]) -> str:
        """Return the id of the batch that has these items, some of which were stored before."""
        first = places[0][0]
        if list(places) == [(first, number) for number in range(1, len(places) + 1)] and self.is_whole(
            first, len(places)
        ):
            self.drop_run()
            return first
        self.add_places(places)
        return self.run_id

    def _checks(self, new: Mapping[int, NewLine], judged: Mapping[bytes, int]) -> dict[int, tuple[int, bool]]:
        """Return each item's check, and whether another item or run brought it; insert the missing checks."""
        found = {
            number: (judged[identity], True)
            for number, each in new.items()
            if (identity := each.check.identity) is not None and identity in judged
        }
        asked = {number: each for number, each in new.items() if number not in found}
        if not asked:
            return found
        self.add_texts({sha256: source for each in asked.values() for sha256, source in each.texts})
        own = dict(zip(asked, self.ids(len(asked)), strict=True))
        same = {number: each.check.identity or own[number] for number, each in asked.items()}
        first = {key: number for number, key in reversed(same.items())}
        made = self.add_checks({number: (own[number], asked[number]) for number in sorted(first.values())})
        for number, key in same.items():
            check_id = made[first[key]]
            found[number] = check_id, check_id != own[number]
        return found

    def drop_run(self) -> None:
        """Delete the run: its items are those of an earlier batch."""
        self._execute("DELETE FROM runs WHERE id = %(run_id)s")

    def is_whole(self, batch_id: str, count: int) -> bool:
        """Return whether a batch has this number of items, and none of another batch."""
        row = self._execute(_IS_WHOLE, first=batch_id, count=count).fetchone()
        return row is not None and bool(row[0])

    def add_places(self, places: Sequence[Item]) -> None:
        """Store which items, some of them of other batches, this batch consists of."""
        self._execute(_PLACES, places=json.dumps(places))

    def take_keys(self, keys: Sequence[ItemKey]) -> dict[int, Item]:
        """Store idempotency keys; return for each line whose key was used before the item stored then.

        Raises `KeyReused` where a key was used with another body.
        """
        if not keys:
            return {}
        values = {
            "keys": [each.key for each in keys],
            "sha256s": [each.sha256 for each in keys],
            "lines": [each.line for each in keys],
        }
        known: dict[str, tuple[bytes, Item]] = {}
        while {each.key for each in keys} - known.keys():  # again where another transaction deleted one
            if len(self._execute(_TAKE_KEYS, **values).fetchall()) == len(keys):
                return {}
            rows = self._execute(_KEYS, **values)
            known = {key: (bytes(sha256), (run_id, line)) for key, sha256, run_id, line in rows}
        if odd := [each.key for each in keys if known[each.key][0] != each.sha256]:
            raise KeyReused(odd)
        found = {each.line: known[each.key][1] for each in keys}
        return {line: item for line, item in found.items() if item != (self.run_id, line)}

    def add_checks(self, checks: Mapping[int, tuple[int, NewLine]]) -> dict[int, int]:
        """Insert checks, or find equal ones of other runs; returns the id of each item's check.

        ``checks`` are a new id and an item by the item's number; no two may have the same cache key. Raises
        `UsageError` when an environment is gone.
        """
        found = self._insert(checks)
        if left := {number: each for number, each in checks.items() if number not in found}:
            found |= self._join(left)
            # An equal check can no longer be shared. These checks get no cache key: to insert keys now, out
            # of order, could deadlock with another batch.
            alone = {
                number: (check_id, new._replace(check=new.check._replace(identity=None)))
                for number, (check_id, new) in left.items()
                if number not in found
            }
            found |= self._insert(alone)
        if len(found) < len(checks):
            raise UsageError("an environment of the batch is gone, and nothing was stored; name another")
        return found

    def _insert(self, checks: Mapping[int, tuple[int, NewLine]]) -> dict[int, int]:
        if not checks:
            return {}
        rows = [check_record(new, check_id=id_, ordinal=number) for number, (id_, new) in checks.items()]
        made = {check_id for (check_id,) in self._execute(_CHECKS, checks=records_json(rows))}
        return {number: check_id for number, (check_id, _) in checks.items() if check_id in made}

    def _join(self, checks: Mapping[int, tuple[int, NewLine]]) -> dict[int, int]:
        """Lock the equal checks of other runs, as far as they exist, and raise their priority."""
        asked = {new.check.identity: number for number, (_, new) in checks.items() if new.check.identity}
        rows = self._execute(_JOIN, identities=list(asked)).fetchall()
        found = {asked[bytes(identity)]: check_id for check_id, identity in rows}
        if found:
            self._execute(_HASTEN, ids=list(found.values()), lines=list(found))
        return found

    def add_jobs(self, new: Mapping[int, NewLine], checks: Mapping[int, tuple[int, bool]]) -> None:
        """Store the items, each with the check that it waits for, and count them."""
        rows = [
            {"line": number, "check_id": check_id, "shared": shared, **new[number].job._asdict()}
            for number, (check_id, shared) in checks.items()
        ]
        self._execute(_JOBS, jobs=records_json(rows))
        counted = Counter("shared" if shared else "own" for _, shared in checks.values())
        self._execute(_TALLY, words=list(counted), numbers=list(counted.values()))

    def be_quick(self) -> None:
        """Do not wait for the disk: a client can ask again for verdicts that are known already."""
        self._execute("SET LOCAL synchronous_commit TO off")

    def add_verdicts(self, checks: Sequence[tuple[int, NewLine]]) -> None:
        """Store the verdicts of items whose text alone decides, by the ids of their checks."""
        if checks:
            rows = [check_record(new, check_id=check_id) for check_id, new in checks]
            self._execute(_VERDICTS, checks=records_json(rows))
