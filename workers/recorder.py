"""Record step: what became of checks goes into the store, several at a time.

A transaction waits for the disk; so those that end within `TOGETHER_SECONDS` share one. Nothing is held back
when nothing else is under way.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from farm.errors import ServerDown
from farm.log import logger
from farm.store import Claim, Decision, Returned, Store
from farm.verdict import judge
from workers.held import Held
from workers.patience import insist

#: Verdicts that come within so many seconds are recorded together.
TOGETHER_SECONDS = 0.04
#: And so many at most.
MOST = 64

_log = logger(__name__)

Ended = tuple[Claim, Decision] | Returned

_T = TypeVar("_T")


_UNSTORABLE = "its verdict could not be stored; the worker's log says why"


def _unstorable(decision: Decision) -> Decision:
    """Return what is recorded in the place of a verdict that the database does not take."""
    report = replace(decision.report, messages=(), hits=(), audit=None, box_error=_UNSTORABLE, refused=None)
    return replace(decision, report=report, verdict=judge(report))


class Recorder(threading.Thread):
    """Records what became of checks, in the background; each is held until that is done.

    `waiting` is called when there are checks to be done anew, which nobody may be awake for.
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
        try:
            self._record_together(batch)
        except ServerDown as error:
            _log.error("%s; %d checks are left to their leases", error, len(batch))
        except Exception:  # noqa: BLE001 # the thread's edge: what cannot be stored must not take others along
            _log.exception("What became of %d checks could not be recorded", len(batch))
            self._record_apart(batch)

    def _record_apart(self, batch: Sequence[Ended]) -> None:
        """Record each for itself; what cannot be stored even so is the farm's own failure."""
        if len(batch) > 1:
            for each in batch:
                self._record([each])
        elif isinstance(batch[0], Returned):
            self._held.let_go([batch[0].claim])  # its lease will run out
        else:
            claim, decision = batch[0]
            if decision.report.box_error != _UNSTORABLE:
                self._record([(claim, _unstorable(decision))])
            else:
                self._held.let_go([claim])

    def _record_together(self, batch: Sequence[Ended]) -> None:
        decided = [each for each in batch if not isinstance(each, Returned)]
        returned = [each for each in batch if isinstance(each, Returned)]
        if decided:
            self._finish(decided)
        if returned:
            held = self._insist(lambda: self._store.give_back(returned))
            self._settle([each.claim for each in returned], held)
            self._waiting()

    def _finish(self, decided: Sequence[tuple[Claim, Decision]]) -> None:
        recorded = self._insist(lambda: self._store.record(decided))
        self._settle([claim for claim, _ in decided], recorded.check_ids)
        if recorded.anew:
            self._waiting()
        if recorded.won:
            self._insist(lambda: self._store.stop_rivals(recorded.won))

    def _insist(self, step: Callable[[], _T]) -> _T:
        return insist(step, unless=lambda: self._held.is_recalled)

    def _settle(self, claims: Sequence[Claim], recorded: frozenset[int]) -> None:
        self._held.let_go(claims)
        for claim in claims:
            if claim.check_id not in recorded:
                _log.warning(
                    "What became of check %d came too late and was refused: attempt %d was no longer held",
                    claim.check_id,
                    claim.attempt,
                )
