"""The batch step: items become a run without files, in one short transaction."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from farm import tracing
from farm.characters import storable
from farm.manifest.entry import Entry
from farm.runs.ids import new_id
from farm.runs.prepare.blocks import Prepared, Preparer
from farm.runs.prepare.options import SubmitOptions, problem_of
from farm.store import waiting
from farm.store.batches import BatchRows, ItemKey
from farm.store.environments import ServedEnvironment
from farm.store.postgres import together
from farm.store.records import Item
from farm.store.transitions import Store
from farm.version import VERSION

#: Letters of a batch's id: 78 bits, for there may be a thousand a second, for years.
_ID_LENGTH = 16


@dataclass(frozen=True, kw_only=True, slots=True)
class Batch:
    """A stored batch: its items in the order in which they came, and the check that each waits for.

    An item that was asked for before under the same key is the item of then, in the batch of then; a batch
    that was asked for before as a whole is the one of then. `queued` are the environments in which something
    waits now.
    """

    id: str
    items: tuple[Item, ...]
    checks: Mapping[Item, int]
    judged: frozenset[Item]
    queued: frozenset[str]


class Items:
    """Entries that were made ready for the store with the options of one batch."""

    def __init__(
        self,
        entries: Sequence[Entry],
        options: SubmitOptions,
        known: Sequence[ServedEnvironment],
        *,
        accept: Sequence[str] = (),
        name: str = "",
    ) -> None:
        """Assemble them, as a batch that the page shows under a name, "" where it has none.

        Raises `ManifestError` with the number of the item as its line, and `UsageError`.
        """
        served = {each.name: each for each in known}
        problem = problem_of(options.environment, served, options.assurance)
        if problem is not None and not all(entry.environment for entry in entries):
            raise problem.error()
        preparer = Preparer(options, served)
        self.options, self.accept, self.name = options, accept, name
        self.prepared = [preparer.prepared(entry) for entry in entries]


def store_batch(
    store: Store,
    items: Items,
    *,
    keys: Sequence[ItemKey] = (),
    owner: str = "",
    traceparent: str | None = None,
) -> Batch:
    """Store a batch, or find what was asked for before under the same keys; raises `KeyReused`, `ServerDown`.

    Nothing is waited for but the disk, and not even that where every verdict is known. Its trace is a part of
    that of the `traceparent`, which whoever asks has sent.
    """
    told = {"lines": len(items.prepared), **items.options.told}
    with tracing.root("farm.submit", told, parent=traceparent) as span:
        batch = _store(store, items, keys, owner, span.traceparent)
        span.tell(run_id=batch.id)
    return batch


def _store(store: Store, items: Items, keys: Sequence[ItemKey], owner: str, traceparent: str | None) -> Batch:
    options = items.options
    values = {
        "id": new_id(_ID_LENGTH),
        "options": options.stored(
            traceparent=traceparent,
            accept=list(items.accept),
            **({"batch_name": items.name} if items.name else {}),
        ),
        "version": VERSION,
        "deadline": options.deadline_seconds,
        "owner": owner,
        "priority": int(options.priority),
        "races": options.stop_on_first_proof,
        **options.columns,
    }
    with store.transaction() as connection:
        with together(connection) as driver:
            rows = BatchRows(driver, values)
            batch = _stored(rows, items, keys, str(values["id"]))
            if not batch.queued:
                rows.be_quick()
        if options.stop_on_first_proof:
            waiting.stop_rivals_of_run(connection, batch.id)
    return batch


def _stored(rows: BatchRows, items: Items, keys: Sequence[ItemKey], batch_id: str) -> Batch:
    rows.add_run()
    before = rows.take_keys(keys)
    new = {number: each for number, each in enumerate(items.prepared, 1) if number not in before}
    places = {number: before.get(number, (batch_id, number)) for number in range(1, len(items.prepared) + 1)}
    if before:
        batch_id = _shared(rows, batch_id, list(places.values()))
    judged = rows.judged([each.identity for each in new.values() if each.identity is not None])
    checks = _checks(rows, new, judged)
    if new:
        rows.add_jobs([_job(number, each, *checks[number]) for number, each in new.items()])
    rows.add_verdicts([_verdict(each, checks[number][0]) for number, each in new.items() if each.verdict])
    known = frozenset(judged.values())
    done = {number for number, each in new.items() if each.verdict or checks[number][0] in known}
    return Batch(
        id=batch_id,
        items=tuple(places.values()),
        checks={places[number]: check_id for number, (check_id, _) in checks.items()},
        judged=frozenset(places[number] for number in done),
        queued=frozenset(each.environment for number, each in new.items() if number not in done),
    )


def _shared(rows: BatchRows, batch_id: str, places: list[Item]) -> str:
    """Return the batch that has these items, some of which were asked for before."""
    first = places[0][0]
    if places == [(first, number) for number in range(1, len(places) + 1)] and rows.is_whole(
        first, len(places)
    ):
        rows.drop_run()
        return first
    rows.add_places(places)
    return batch_id


def _checks(
    rows: BatchRows, new: Mapping[int, Prepared], judged: Mapping[bytes, int]
) -> dict[int, tuple[int, bool]]:
    """Return the check of each item, and whether it is another's."""
    found = {
        number: (judged[each.identity], True)
        for number, each in new.items()
        if each.identity is not None and each.identity in judged
    }
    asked = {number: each for number, each in new.items() if number not in found}
    if not asked:
        return found
    rows.add_texts({sha256: source for each in asked.values() for sha256, source in each.texts})
    own = dict(zip(asked, rows.ids(len(asked)), strict=True))
    first = {each.identity or own[number]: number for number, each in reversed(asked.items())}
    made = rows.add_checks([_check(number, asked[number], own[number]) for number in sorted(first.values())])
    for number, each in asked.items():
        check_id = made[own[first[each.identity or own[number]]]]
        found[number] = check_id, check_id != own[number]
    return found


def _check(number: int, prepared: Prepared, check_id: int) -> dict[str, Any]:
    first, second, last = prepared.programs
    stated = prepared.stated
    return {
        "id": check_id,
        "line": number,
        "identity": prepared.identity and prepared.identity.hex(),
        "program": first.sha256.hex(),
        "submitted": json.loads(first.submitted),
        "fallback": last and last.sha256.hex(),
        "fallback_submitted": last and json.loads(last.submitted),
        "restated": second and second.sha256.hex(),
        "restated_submitted": second and json.loads(second.submitted),
        "context_end": first.context_end,
        "challenge": stated and stated.sha256.hex(),
        "challenge_name": stated and storable(stated.name),
        "environment": prepared.environment,
        "wall_seconds": prepared.limits.wall_seconds,
        "cpu_seconds": prepared.limits.cpu_seconds,
        "memory_mib": prepared.limits.memory_mib,
        "image": prepared.image,
        "judged": prepared.verdict is not None,
    }


def _job(number: int, prepared: Prepared, check_id: int, shared: bool) -> dict[str, object]:
    entry, (first, second, last) = prepared.entry, prepared.programs
    return {
        "line": number,
        "check_id": check_id,
        "shared": shared,
        "name": storable(entry.name),
        "group_name": entry.group,  # is storable: the preparer refuses another
        "segments": json.loads(first.segments),
        "fallback_segments": last and json.loads(last.segments),
        "restated_segments": second and json.loads(second.segments),
        "warnings": json.loads(prepared.warnings),
    }


def _verdict(prepared: Prepared, check_id: int) -> dict[str, object]:
    verdict = prepared.verdict
    assert verdict is not None  # noqa: S101 # whoever calls has looked
    return {
        "check_id": check_id,
        "verdict": verdict.outcome,
        "reason": verdict.reason,
        "detail": storable(verdict.detail),
    }
