"""Batches: a small run without files, with its items and checks, is stored in one short transaction.

Batches that arrive at the same time and have the same options may share the transaction and its statements:
single proofs then cost as much as items of one batch.

A load of manifests stages its lines in a temporary table; a thousand batches a second would fill PostgreSQL's
catalogue with those. So a batch passes its items as JSON.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

from farm.errors import FarmError, OverLimit, UsageError
from farm.judging.submit_options import SubmitOptions
from farm.store import waiting
from farm.store.columns import columns_of, declared
from farm.store.keys import Key
from farm.store.limits import Admission, has_limit
from farm.store.new_lines import STAGED_COLUMNS, NewJob, NewLine, check_record, records_json
from farm.store.new_runs import HASTEN, INSERT_CHECKS, INSERT_VERDICTS, NewRun, begun, begun_by_tenant
from farm.store.postgres import together
from farm.store.records import Item
from farm.store.transitions import Store

# A concurrent batch with the same key waits here until the other transaction has ended.
_TAKE_KEYS = """
    INSERT INTO item_keys (owner, key, request_sha256, run_id, line)
    SELECT %(owner)s, key, sha256, run_id, line
    FROM unnest(CAST(%(keys)s AS text[]), CAST(%(sha256s)s AS bytea[]), CAST(%(runs)s AS text[]),
                CAST(%(lines)s AS integer[])) AS asked (key, sha256, run_id, line)
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
    WHERE id = %(resumed)s
"""
_DROP = "DELETE FROM runs WHERE id = ANY(%(dropped)s)"

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

# Locks other runs' checks until this batch commits. A check stays in its tenant's queue, where it moves to
# the turn that the batch's own would have there.
_JOIN = """
    SELECT locked.id, locked.identity FROM (
        SELECT id, identity FROM checks WHERE identity = ANY(%(identities)s) ORDER BY id
    ) AS others, LATERAL (
        SELECT id, identity FROM checks
        WHERE checks.id = others.id AND checks.identity = others.identity FOR NO KEY UPDATE
    ) AS locked
"""
_WANTED = "(SELECT id, turn + line - 1 AS turn FROM asked JOIN begun USING (environment, tenant))"
_HASTEN = f"""
    WITH asked AS (
        SELECT checks.id, environment, tenant, line FROM checks
        JOIN unnest(CAST(%(ids)s AS bigint[]), CAST(%(lines)s AS integer[])) AS asked (id, line) USING (id)
    ), begun AS ({begun_by_tenant("asked")})
    {HASTEN.format(wanted=_WANTED)}
"""

_JOB = ", ".join(NewJob._fields)
_JOBS = f"""
    INSERT INTO jobs (run_id, manifest, races, line, check_id, shared, {_JOB})
    SELECT run_id, 0, %(races)s, line, check_id, shared, {_JOB}
    FROM jsonb_to_recordset(CAST(%(jobs)s AS jsonb)) AS asked (
        run_id text, line integer, check_id bigint, shared boolean, {declared(columns_of(NewJob))})
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


@dataclass(frozen=True, kw_only=True, slots=True)
class NewBatch:
    """A batch to store: its items, their idempotency keys, and `more` to keep with the options.

    It belongs to the trace of the `traceparent`.
    """

    id: str
    lines: Sequence[NewLine]
    keys: Sequence[ItemKey] = ()
    traceparent: str | None = None
    more: Mapping[str, object]

    @property
    def items(self) -> dict[Item, NewLine]:
        """Its items, by their places."""
        return {(self.id, number): line for number, line in enumerate(self.lines, 1)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Submitter:
    """The submitter of batches: `key` has the limits and the weight of an API key."""

    owner: str = ""
    key: Key | None = None


def store_batches(
    store: Store, options: SubmitOptions, batches: Sequence[NewBatch], submitter: Submitter
) -> list[Batch | FarmError]:
    """Store batches together, or find the items that were stored before under the same idempotency keys.

    Returns each batch as it is stored, or its error if it is not: `KeyReused` or `OverLimit`. Waits for
    PostgreSQL's disk only where something is queued. Several batches have one item each: so all locks are
    taken in one order. Raises `UsageError` for an environment that is gone, and `ServerDown`; nothing is
    stored then.
    """
    with store.transaction() as connection:
        with together(connection) as driver:
            stored = BatchRows(driver, batches[0].id, options, submitter).store(batches)
        if options.stop_on_first_proof:
            for each in stored:
                if isinstance(each, Batch):
                    waiting.stop_rivals_of_run(connection, each.id)
    return stored


class BatchRows(NewRun):
    """Stores batches with the same options inside the caller's transaction.

    In libpq's pipeline mode statements are sent together; only a fetch waits for their results.
    """

    def __init__(
        self, connection: psycopg.Connection[Any], run_id: str, options: SubmitOptions, submitter: Submitter
    ) -> None:
        weight = 1 if submitter.key is None else submitter.key.weight
        super().__init__(connection, run_id, options, owner=submitter.owner, weight=weight)
        self._options, self._key = options, submitter.key

    def store(self, batches: Sequence[NewBatch]) -> list[Batch | FarmError]:
        """Store the items that were not stored before, and return all of them, or the error of a batch."""
        refused = self._refused(batches)
        admitted = [each for each in batches if each.id not in refused]
        for each in admitted:
            self.add(each)
        before, odd = self.take_keys(admitted)
        self.drop_runs(list(odd))
        kept = [each for each in admitted if each.id not in odd]
        new = {
            place: line for each in kept for place, line in each.items.items() if before.get(place) is None
        }
        judged = self.judged([key for line in new.values() if (key := line.check.identity) is not None])
        checks = self._checks(new, judged)
        if new:
            self.add_jobs(new, checks)
        self.add_verdicts([(checks[place][0], each) for place, each in new.items() if each.verdict])
        known = frozenset(judged.values())
        done = frozenset(place for place, each in new.items() if each.verdict or checks[place][0] in known)
        if new.keys() <= done:
            self.be_quick()
        stored = {each.id: self._stored(each, before, checks, done) for each in kept}
        return [refused.get(each.id) or odd.get(each.id) or stored[each.id] for each in batches]

    def _refused(self, batches: Sequence[NewBatch]) -> dict[str, FarmError]:
        """Count the batches for their key, and return why some of them exceed its limits."""
        if self._key is None or not has_limit(self._key):
            return {}
        admission, refused = Admission(self._connection, self._key), dict[str, FarmError]()
        for each in batches:
            try:
                admission.admit(each.id, len(each.lines), keys=[key.key for key in each.keys])
            except OverLimit as error:
                refused[each.id] = error
        admission.end()
        return refused

    def add(self, batch: NewBatch) -> None:
        """Store a batch's run."""
        options = self._options.stored(traceparent=batch.traceparent, **batch.more)
        self.add_run({"run_id": batch.id, "options": options})

    def _stored(
        self,
        batch: NewBatch,
        before: Mapping[Item, Item],
        checks: Mapping[Item, tuple[int, bool]],
        done: frozenset[Item],
    ) -> Batch:
        places = {place: before.get(place, place) for place in batch.items}
        new = [place for place in places if place not in before]
        is_resumed = len(new) < len(places)
        return Batch(
            id=self._resumed(batch.id, list(places.values())) if is_resumed else batch.id,
            items=tuple(places.values()),
            checks={place: checks[place][0] for place in new},
            judged=frozenset(place for place in new if place in done),
            queued=frozenset(batch.items[place].check.environment for place in new if place not in done),
        )

    def _resumed(self, batch_id: str, places: Sequence[Item]) -> str:
        """Return the id of the batch that has these items, some of which were stored before."""
        first = places[0][0]
        if list(places) == [(first, number) for number in range(1, len(places) + 1)] and self.is_whole(
            first, len(places)
        ):
            self.drop_runs([batch_id])
            return first
        self.add_places(batch_id, places)
        return batch_id

    def _checks(
        self, new: Mapping[Item, NewLine], judged: Mapping[bytes, int]
    ) -> dict[Item, tuple[int, bool]]:
        """Return each item's check, and whether another item or run brought it; insert the missing checks."""
        found = {
            place: (judged[identity], True)
            for place, each in new.items()
            if (identity := each.check.identity) is not None and identity in judged
        }
        asked = {place: each for place, each in new.items() if place not in found}
        if not asked:
            return found
        self.add_texts({sha256: source for each in asked.values() for sha256, source in each.texts})
        own = dict(zip(asked, self.ids(len(asked)), strict=True))
        same = {place: each.check.identity or own[place] for place, each in asked.items()}
        first = {key: place for place, key in reversed(same.items())}
        brought = set(first.values())
        made = self.add_checks({place: (own[place], asked[place]) for place in asked if place in brought})
        for place, key in same.items():
            check_id = made[first[key]]
            found[place] = check_id, check_id != own[place]
        return found

    def drop_runs(self, batch_ids: Sequence[str]) -> None:
        """Delete runs of this transaction: their items are those of earlier batches, or are refused."""
        if batch_ids:
            self._execute(_DROP, dropped=list(batch_ids))

    def is_whole(self, batch_id: str, count: int) -> bool:
        """Return whether a batch has this number of items, and none of another batch."""
        row = self._execute(_IS_WHOLE, first=batch_id, count=count).fetchone()
        return row is not None and bool(row[0])

    def add_places(self, batch_id: str, places: Sequence[Item]) -> None:
        """Store which items, some of them of other batches, a batch consists of."""
        self._execute(_PLACES, resumed=batch_id, places=json.dumps(places))

    def take_keys(self, batches: Sequence[NewBatch]) -> tuple[dict[Item, Item], dict[str, FarmError]]:
        """Store idempotency keys; return for each item whose key was used before the item stored then.

        Returns also `KeyReused` by the ids of the batches that use a key with another body.
        """
        asked = {(batch.id, key.line): key for batch in batches for key in batch.keys}
        if not asked:
            return {}, {}
        known = self._known_keys(asked)
        odd: dict[str, list[str]] = defaultdict(list)
        for (batch_id, _), key in asked.items():
            if known and known[key.key][0] != key.sha256:
                odd[batch_id].append(key.key)
        found = {place: known[key.key][1] for place, key in asked.items() if known}
        before = {place: item for place, item in found.items() if item != place and place[0] not in odd}
        return before, {batch_id: KeyReused(keys) for batch_id, keys in odd.items()}

    def _known_keys(self, asked: Mapping[Item, ItemKey]) -> dict[str, tuple[bytes, Item]]:
        """Store keys and return for each the digest and the item that it belongs to; {} if all are new."""
        values = {
            "keys": [key.key for key in asked.values()],
            "sha256s": [key.sha256 for key in asked.values()],
            "runs": [batch_id for batch_id, _ in asked],
            "lines": [line for _, line in asked],
        }
        known: dict[str, tuple[bytes, Item]] = {}
        while {
            key.key for key in asked.values()
        } - known.keys():  # again where another transaction deleted one
            if len(self._execute(_TAKE_KEYS, **values).fetchall()) == len(asked):
                return {}
            rows = self._execute(_KEYS, **values)
            known = {key: (bytes(sha256), (run_id, line)) for key, sha256, run_id, line in rows}
        return known

    def add_checks(self, checks: Mapping[Item, tuple[int, NewLine]]) -> dict[Item, int]:
        """Insert checks, or find equal ones of other runs; returns the id of each item's check.

        ``checks`` are a new id and an item by the item's place; no two may have the same cache key. Raises
        `UsageError` when an environment is gone.
        """
        found = self._insert(checks)
        if left := {place: each for place, each in checks.items() if place not in found}:
            found |= self._join(left)
            # An equal check can no longer be shared. These checks get no cache key: to insert keys now, out
            # of order, could deadlock with another batch.
            alone = {
                place: (check_id, new._replace(check=new.check._replace(identity=None)))
                for place, (check_id, new) in left.items()
                if place not in found
            }
            found |= self._insert(alone)
        if len(found) < len(checks):
            raise UsageError("an environment of the batch is gone, and nothing was stored; name another")
        return found

    def _insert(self, checks: Mapping[Item, tuple[int, NewLine]]) -> dict[Item, int]:
        if not checks:
            return {}
        rows = [check_record(new, check_id=id_, ordinal=line) for (_, line), (id_, new) in checks.items()]
        made = {check_id for (check_id,) in self._execute(_CHECKS, checks=records_json(rows))}
        return {place: check_id for place, (check_id, _) in checks.items() if check_id in made}

    def _join(self, checks: Mapping[Item, tuple[int, NewLine]]) -> dict[Item, int]:
        """Lock the equal checks of other runs, as far as they exist, and raise their priority."""
        asked = {new.check.identity: place for place, (_, new) in checks.items() if new.check.identity}
        rows = self._execute(_JOIN, identities=list(asked)).fetchall()
        found = {asked[bytes(identity)]: check_id for check_id, identity in rows}
        if found:
            self._execute(_HASTEN, ids=list(found.values()), lines=[line for _, line in found])
        return found

    def add_jobs(self, new: Mapping[Item, NewLine], checks: Mapping[Item, tuple[int, bool]]) -> None:
        """Store the items, each with the check that it waits for, and count them."""
        rows = [
            {
                "run_id": place[0],
                "line": place[1],
                "check_id": check_id,
                "shared": shared,
                **new[place].job._asdict(),
            }
            for place, (check_id, shared) in checks.items()
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
