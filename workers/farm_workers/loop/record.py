"""Record step: stores the outcomes of checks, several in one transaction.

A transaction waits for the disk, so outcomes that arrive within `TOGETHER_SECONDS` share one. Nothing is
delayed when no other check runs, or when a check of the class `interactive` has ended.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import TypeVar

from farm import tracing
from farm.errors import ServerDown
from farm.judging.report import Answer
from farm.judging.states import Priority
from farm.judging.verdict import Reason, box_failed
from farm.log import logger
from farm.store.attempt import Claim, Decision, Released
from farm.store.contradictions import Settled
from farm.store.transitions import Store
from farm_workers.loop.backoff import retrying
from farm_workers.loop.leases import Leases
from farm_workers.metrics import events

#: Outcomes that arrive within this many seconds share a transaction.
TOGETHER_SECONDS = 0.04
#: At most this many outcomes share one.
MOST = 64

_log = logger(__name__)

Ended = tuple[Claim, Decision] | Released

#: Called with the ids of checks that have ended.
Completed = Callable[[Collection[int]], None]

_T = TypeVar("_T")


def nobody(_check_ids: Collection[int]) -> None:
    """Ignore the ids of checks that have ended."""


_CONTESTED = (
    "Another key proved the contrary of this statement, in the same environment and by compatible axioms; "
    "both verdicts stay and are marked as contested"
)
_UNSTORABLE = "its verdict could not be stored; read the worker's log"


def _unstorable(decision: Decision) -> Decision:
    """Return the outcome recorded instead of a verdict that the database rejects."""
    run = replace(decision.report.run, box_error=_UNSTORABLE)
    report = replace(decision.report, run=run, answer=Answer(), hits=(), audit=None, refused=None, goals=None)
    return replace(decision, report=report, verdict=box_failed(_UNSTORABLE))


def _claim(ended: Ended) -> Claim:
    return ended.claim if isinstance(ended, Released) else ended[0]


class Recorder(threading.Thread):
    """Records outcomes of checks in the background; each lease is held until its outcome is committed.

    `waiting` is called when checks were requeued and idle workers must be woken, `completed` with the ids of
    checks whose verdicts are committed; neither may block.
    """

    def __init__(
        self,
        store: Store,
        leases: Leases,
        *,
        waiting: Callable[[], None] = lambda: None,
        completed: Completed = nobody,
    ) -> None:
        super().__init__(name="recorder", daemon=True)
        self._store, self._leases, self._waiting, self._completed = store, leases, waiting, completed
        self._changed = threading.Condition()
        self._ended: deque[Ended] = deque()
        self._since = 0.0  # when the first of them ended
        self._stopping = False

    def put(self, ended: Ended, *, waits: bool = True) -> None:
        """Have this recorded soon; waits while too much does already, for a database may be down.

        The heartbeat never waits: PostgreSQL may be back for it before it is for the recorder.
        """
        with self._changed:
            self._changed.wait_for(lambda: not waits or len(self._ended) < 4 * MOST)
            if not self._ended:
                self._since = time.monotonic()
            self._ended.append(ended)
            # To wake the other thread for each one would cost more than the rest of this.
            if len(self._ended) == 1 or self._is_due():
                self._changed.notify_all()

    def stop(self) -> None:
        """Record the remaining outcomes and end."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        self.join()

    def run(self) -> None:
        """Record until stopped."""
        while batch := self._gather():
            self._record(batch)

    def _gather(self) -> list[Ended]:
        """Wait for the next outcomes and return them; nothing once the recorder has stopped."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended or self._stopping)
            self._changed.wait_for(self._is_due, timeout=self._since + TOGETHER_SECONDS - time.monotonic())
            batch = [self._ended.popleft() for _ in range(min(MOST, len(self._ended)))]
            self._changed.notify_all()
            return batch

    def _is_due(self) -> bool:
        """Whether there is nothing to wait for: enough has ended, or nothing else is under way."""
        if self._stopping or len(self._ended) >= min(MOST, len(self._leases)):
            return True
        return any(_claim(each).priority == Priority.INTERACTIVE for each in self._ended)

    def _record(self, batch: Sequence[Ended]) -> None:
        try:
            self._record_together(batch)
        except ServerDown as error:
            _log.error(
                "%s; %d results were not recorded: their checks are requeued when the leases expire",
                error,
                len(batch),
            )
        except Exception:  # noqa: BLE001 # the thread's edge: one bad outcome must not lose others
            _log.exception("The results of %d checks could not be recorded", len(batch))
            self._record_apart(batch)

    def _record_apart(self, batch: Sequence[Ended]) -> None:
        """Record each outcome by itself; one that still cannot be stored becomes a failure of the farm."""
        if len(batch) > 1:
            for each in batch:
                self._record([each])
        elif isinstance(batch[0], Released):
            self._leases.release([batch[0].claim])  # its lease will run out
        else:
            claim, decision = batch[0]
            if decision.report.run.box_error != _UNSTORABLE:
                self._record([(claim, _unstorable(decision))])
            else:
                self._leases.release([claim])

    def _record_together(self, batch: Sequence[Ended]) -> None:
        decided = [each for each in batch if not isinstance(each, Released)]
        returned = [each for each in batch if isinstance(each, Released)]
        if decided:
            self._finish(decided)
        if returned:
            held = self._retrying(lambda: self._store.give_back(returned))
            self._settle([each.claim for each in returned], held)
            for each in returned:
                if each.claim.check_id in held:
                    events.returned(each.outcome)
            self._waiting()

    def _finish(self, decided: Sequence[tuple[Claim, Decision]]) -> None:
        began_ns = time.time_ns()
        recorded = self._retrying(lambda: self._store.record(decided))
        decided = _undisputed(decided, recorded.settled)
        self._completed(recorded.check_ids)
        self._settle([claim for claim, _ in decided], recorded.check_ids)
        for claim, decision in decided:
            if claim.check_id in recorded.check_ids:
                events.recorded(claim, decision)
            if _is_contrary(claim, decision, recorded.settled):
                events.contradicted(claim, alarms=claim.check_id in recorded.settled.alarming)
        if recorded.anew:
            self._waiting()
        parents = [each.traceparent for claim, each in decided if claim.check_id in recorded.check_ids]
        tracing.ended("farm.record", parents, began_ns=began_ns)
        if recorded.proved:
            self._retrying(lambda: self._store.stop_rivals(recorded.proved))

    def _retrying(self, step: Callable[[], _T]) -> _T:
        return retrying(step, unless=lambda: self._leases.is_recalled)

    def _settle(self, claims: Sequence[Claim], recorded: frozenset[int]) -> None:
        self._leases.release(claims)
        for claim in claims:
            if claim.check_id not in recorded:
                events.result_refused()
                fields = {"check_id": claim.check_id, "attempt": claim.attempt}
                logger(__name__, fields).warning("A late result was refused: it no longer held the lease")


def _is_contrary(claim: Claim, decision: Decision, settled: Settled) -> bool:
    return decision.verdict.reason is Reason.CONTRADICTION or claim.check_id in settled.contested


def _undisputed(
    decided: Sequence[tuple[Claim, Decision]], settled: Settled
) -> Sequence[tuple[Claim, Decision]]:
    """Return the decisions, those replaced that are taken back; log each that is proved and disproved."""
    found = [
        (claim, replace(decision, verdict=settled.disputed.get(claim.check_id, decision.verdict)))
        for claim, decision in decided
    ]
    for claim, decision in found:
        if _is_contrary(claim, decision, settled):
            log = logger(__name__, {"check_id": claim.check_id, "attempt": claim.attempt})
            level = logging.ERROR if claim.check_id in settled.alarming else logging.WARNING
            is_contested = claim.check_id in settled.contested
            log.log(level, "%s", _CONTESTED if is_contested else decision.verdict.detail)
    return found
