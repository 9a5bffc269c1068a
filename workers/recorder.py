"""Record step: what became of checks goes into the store, several at a time.

A transaction waits for the disk; so those that end within `TOGETHER_SECONDS` share one. Nothing is held back
when nothing else is under way.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence

from farm.log import logger
from farm.store import Claim, Decision, Returned, Store
from workers.held import Held
from workers.patience import insist

#: Verdicts that come within so many seconds are recorded together.
TOGETHER_SECONDS = 0.05
#: And so many at most.
MOST = 64

_log = logger(__name__)

Ended = tuple[Claim, Decision] | Returned


class Recorder(threading.Thread):
    """Records what became of checks, in the background; each is held until that is done.

    `recall_others` is called when there are checks to be done anew, which nobody may be awake for.
    """

    def __init__(self, store: Store, held: Held, *, waiting: Callable[[], None] = lambda: None) -> None:
        super().__init__(name="recorder", daemon=True)
        self._store, self._held, self._waiting = store, held, waiting
        self._ended: queue.Queue[Ended | None] = queue.Queue(maxsize=4 * MOST)

    def put(self, ended: Ended) -> None:
        """Have this recorded soon; waits while too much does already, for a database may be down."""
        self._ended.put(ended)

    def stop(self) -> None:
        """Record what is left and end."""
        self._ended.put(None)
        self.join()

    def run(self) -> None:
        """Record until stopped."""
        while (first := self._ended.get()) is not None:
            batch, is_last = self._gather(first)
            self._record(batch)
            if is_last:
                return

    def _gather(self, first: Ended) -> tuple[list[Ended], bool]:
        """Return what ends soon after the first, and whether nothing comes after."""
        batch, until = [first], time.monotonic() + TOGETHER_SECONDS
        while len(batch) < MOST and len(batch) < len(self._held):
            try:
                more = self._ended.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                break
            if more is None:
                return batch, True
            batch.append(more)
        return batch, False

    def _record(self, batch: Sequence[Ended]) -> None:
        decided = [each for each in batch if not isinstance(each, Returned)]
        returned = [each for each in batch if isinstance(each, Returned)]
        if decided:
            insist(lambda: self._finish(decided))
        if returned:
            insist(lambda: self._give_back(returned))

    def _finish(self, decided: Sequence[tuple[Claim, Decision]]) -> None:
        recorded = self._store.record(decided)
        self._settle([claim for claim, _ in decided], recorded.check_ids)
        if recorded.anew:
            self._waiting()

    def _give_back(self, returned: Sequence[Returned]) -> None:
        self._settle([each.claim for each in returned], self._store.give_back(returned))
        self._waiting()

    def _settle(self, claims: Sequence[Claim], recorded: frozenset[int]) -> None:
        self._held.let_go(claims)
        for claim in claims:
            if claim.check_id not in recorded:
                _log.warning(
                    "What became of check %d came too late and was refused: attempt %d was no longer held",
                    claim.check_id,
                    claim.attempt,
                )
