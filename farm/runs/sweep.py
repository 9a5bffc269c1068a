"""The sweep step by hand: requeues checks of dead workers, but none of workers that were only cut off."""

from __future__ import annotations

import threading
from collections.abc import Callable

from farm.store.lease_grace import LeaseGrace
from farm.store.queries import Queries
from farm.store.sweeping import Swept
from farm.store.transitions import Store
from farm.version import farm_version

#: Seconds between two looks at the leases that have run out.
_LOOK_SECONDS = 1.0


def sweep(
    store: Store, queries: Queries, *, lease_seconds: float, waits: Callable[[int], None] | None
) -> Swept:
    """Sweep once every worker has had the time to extend its leases, and return the result.

    Where leases have expired, it waits for `lease_seconds` of contact with PostgreSQL, or until all of them
    are extended; ``waits`` is called with their number. With None it sweeps at once. Raises `ServerDown`.
    """
    pause, grace = threading.Event(), LeaseGrace(gap_seconds=lease_seconds / 2)
    # A worker extends a lease that is a fifth old: of a worker that is well none is about to run out either.
    margin, look = lease_seconds / 5, min(_LOOK_SECONDS, lease_seconds / 5)
    while waits is not None and (left := queries.expired(within_seconds=margin)):
        if not grace.seconds:
            waits(left)
        grace.answered()
        if grace.seconds >= lease_seconds:
            break
        pause.wait(look)
    return store.sweep(checker_version=farm_version(), answer_seconds=lease_seconds / 2)
