"""The batch step: items become a run without files, in one short transaction."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from farm import tracing
from farm.errors import FarmError
from farm.judging.submit_options import SubmitOptions
from farm.manifest.entry import Entry
from farm.runs.ids import new_id
from farm.runs.prepare.blocks import Preparer
from farm.runs.prepare.problems import problem_of
from farm.store import batches
from farm.store.batches import Batch, ItemKey, NewBatch, Submitter
from farm.store.environments import ServedEnvironment
from farm.store.keys import Key
from farm.store.transitions import Store

#: Letters of a batch's id: 78 bits, for there may be a thousand a second, for years.
_ID_LENGTH = 16


class Items:
    """Entries that were made ready for the store with the options of one batch."""

    def __init__(
        self,
        entries: Sequence[Entry],
        options: SubmitOptions,
        known: Sequence[ServedEnvironment],
        *,
        accept: Sequence[str] = (),
        feedback: bool = False,
        name: str = "",
    ) -> None:
        """Assemble them; the page shows their batch under its name, "" for a batch without one.

        Raises `ManifestError` with the number of the item as its line, and `UsageError`.
        """
        served = {each.name: each for each in known}
        problem = problem_of(options.environment, served, options.assurance)
        if problem is not None and not all(entry.environment for entry in entries):
            raise problem.error()
        preparer = Preparer(options, served)
        self.options, self.name = options, name
        self.told = {"accept": list(accept), **({"feedback": True} if feedback else {})}
        self.prepared = [preparer.prepared(entry) for entry in entries]

    def new_batch(self, keys: Sequence[ItemKey], traceparent: str | None) -> NewBatch:
        """Return the batch to store, with a new id."""
        return NewBatch(
            id=new_id(_ID_LENGTH),
            lines=self.prepared,
            keys=keys,
            traceparent=traceparent,
            more={**self.told, **({"batch_name": self.name} if self.name else {})},
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """A batch that a client asks for: its items, their idempotency keys, and the client's trace."""

    items: Items
    keys: Sequence[ItemKey] = ()
    traceparent: str | None = None


def store_batch(
    store: Store,
    items: Items,
    *,
    keys: Sequence[ItemKey] = (),
    owner: str = "",
    key: Key | None = None,
    traceparent: str | None = None,
) -> Batch:
    """Store a batch, or find the items that were stored before under the same idempotency keys.

    The span of the batch belongs to the client's trace, named by ``traceparent``. Raises `KeyReused`,
    `OverLimit` for a `key` with limits, `UsageError` and `ServerDown`.
    """
    asked = Asked(items=items, keys=keys, traceparent=traceparent)
    (stored,) = store_batches(store, [asked], Submitter(owner=owner, key=key))
    if isinstance(stored, FarmError):
        raise stored
    return stored


def store_batches(store: Store, asked: Sequence[Asked], submitter: Submitter) -> list[Batch | FarmError]:
    """Store batches that have the same options in one transaction; see `farm.store.batches.store_batches`.

    Several batches have one item each.
    """
    options = asked[0].items.options
    with ExitStack() as spans:
        new, ends = [], []
        for each in asked:
            attributes = {"lines": len(each.items.prepared), **options.span_attributes}
            span = spans.enter_context(tracing.root("farm.submit", attributes, parent=each.traceparent))
            new.append(each.items.new_batch(each.keys, span.traceparent))
            ends.append(span)
        stored = batches.store_batches(store, options, new, submitter)
        for span, one in zip(ends, stored, strict=True):
            if isinstance(one, Batch):
                span.set_attributes(run_id=one.id)
    return stored
