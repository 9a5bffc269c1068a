"""The batch step: items become a run without files, in one short transaction."""

from __future__ import annotations

from collections.abc import Sequence

from farm import tracing
from farm.judging.submit_options import SubmitOptions
from farm.manifest.entry import Entry
from farm.runs.ids import new_id
from farm.runs.prepare.blocks import Preparer
from farm.runs.prepare.problems import problem_of
from farm.store import batches
from farm.store.batches import Batch, ItemKey
from farm.store.environments import ServedEnvironment
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


def store_batch(
    store: Store,
    items: Items,
    *,
    keys: Sequence[ItemKey] = (),
    owner: str = "",
    traceparent: str | None = None,
) -> Batch:
    """Store a batch, or find the items that were stored before under the same idempotency keys.

    The span of the batch belongs to the client's trace, named by ``traceparent``. Raises `KeyReused`,
    `UsageError` and `ServerDown`.
    """
    attributes = {"lines": len(items.prepared), **items.options.span_attributes}
    with tracing.root("farm.submit", attributes, parent=traceparent) as span:
        batch = batches.store_batch(
            store,
            new_id(_ID_LENGTH),
            items.options,
            items.prepared,
            keys=keys,
            owner=owner,
            traceparent=span.traceparent,
            more={**items.told, **({"batch_name": items.name} if items.name else {})},
        )
        span.set_attributes(run_id=batch.id)
    return batch
