"""Heartbeat step: extends the leases of running checks, notices cancelled ones, and sweeps now and then."""

from __future__ import annotations

import os
import random
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from celery import Celery

from farm.broker import call
from farm.errors import ServerDown
from farm.log import logger
from farm.pauses import pause_after
from farm.store.attempt import Released
from farm.store.lease_grace import LeaseGrace
from farm.store.workers import SignOfLife, State, Workers
from farm.version import farm_version
from farm_workers.loop.backoff import retrying_at_start
from farm_workers.loop.bell import Bell
from farm_workers.loop.context import Context
from farm_workers.loop.memory import Memory
from farm_workers.metrics import events

#: Seconds between two looks for lost leases, and for work that an idle thread could claim.
LOOK_SECONDS = 1.0
#: After a look for waiting work, the worker pauses for at least this many times the duration of the look.
_PAUSES = 20.0
#: Up to `_SWEEPERS` workers sweep at every beat, and up to `_LOOKERS` look for waiting work each second. In
#: larger fleets each worker does so less often: it still sweeps twice in a lease and looks every
#: `_LOOKS_AFTER` seconds.
_SWEEPERS, _LOOKERS, _LOOKS_AFTER = 8, 32, 4.0
#: Without Redis, idle threads poll after a random time between these bounds (seconds), so that workers
#: spread.
POLL_SECONDS = (1.0, 3.0)
#: A call that takes longer than this means that Redis hangs.
_HANGING_SECONDS = 3.0

_log = logger(__name__)


def of_many(seconds: float, many: int, enough: int, *, at_most: float) -> float:
    """Return each worker's pause such that `many` act as often as `enough` with this pause would."""
    return min(seconds * max(1.0, many / enough), at_most)


class Heartbeat:
    """The background work of a worker, in two threads: a Redis that hangs must not cost a lease."""

    def __init__(
        self, context: Context, app: Celery, work: Callable[[Context], None], bell: Bell | None = None
    ) -> None:
        """Keep the context; `work` is what a polling thread runs when Redis cannot call it."""
        self._context, self._app, self._work, self._bell = context, app, work, bell or Bell(app)
        self._stopping = threading.Event()
        # Several beats fit into one lease.
        self._beat_seconds = context.lease_seconds / 5
        self._look_seconds = min(LOOK_SECONDS, self._beat_seconds)
        self._idle_seconds, self._sweep_seconds = self._look_seconds, self._beat_seconds
        self._beaten_at = self._swept_at = self._poll_at = 0.0
        self._called_at: float | None = None
        self._presence, self._memory = Presence(context), Memory()
        self._grace = LeaseGrace(gap_seconds=context.lease_seconds / 2)
        self._is_refused = False
        self._threads = [
            threading.Thread(target=self._repeat, args=(step, pause), name=step.__name__, daemon=True)
            for step, pause in ((self.keep, self._pause), (self.wake, self._wait_for_call))
        ]

    def keep(self) -> None:
        """Drop lost leases, note which checks began, and give back checks prefetched too early."""
        context = self._context
        if held := context.leases.all():
            context.leases.lose(context.store.lost(held))
            # Checks that end within a second are not noted: the write would slow small checks down.
            if begun := context.leases.begun(seconds=LOOK_SECONDS):
                context.store.begun(begun)
            self._answered()
        self._give_back_unbegun()
        if time.monotonic() - self._beaten_at >= self._beat_seconds:
            self.heartbeat()
        if self._is_cut_off and time.monotonic() >= self._poll_at:
            self._poll_at = time.monotonic() + random.uniform(*POLL_SECONDS)  # noqa: S311 # no secret
            self.poll()

    @property
    def is_database_up(self) -> bool:
        """Whether PostgreSQL answered the last request, and within half a lease."""
        return self._grace.is_answering and not self._is_refused

    def _answered(self) -> None:
        self._grace.answered()
        self._is_refused = False

    def _give_back_unbegun(self) -> None:
        context = self._context
        for claim in context.claims.unbegun():
            if context.leases.is_lost(claim):
                context.leases.give_up(claim)
            else:
                context.recorder.put(Released.unharmed(claim, "it was claimed too early"), waits=False)

    @property
    def _is_cut_off(self) -> bool:
        """Whether no call reaches the idle threads, because Redis is away or hangs."""
        called_at = self._called_at
        is_hanging = called_at is not None and time.monotonic() - called_at > _HANGING_SECONDS
        return is_hanging or self._bell.is_lost

    def poll(self) -> None:
        """Have idle threads claim waiting work from PostgreSQL without being called."""
        context = self._context
        if not (context.threads.has_idle and context.is_well):
            return
        if context.waiting() or context.claims.prefetched():
            context.threads.begin(lambda: self._work(context))

    def heartbeat(self) -> None:
        """Extend this worker's leases, and publish its environments and its presence."""
        context = self._context
        self._beaten_at = time.monotonic()
        if held := context.leases.all():
            context.store.extend(held, lease_seconds=context.lease_seconds)
        context.store.register(context.served())
        self._presence.say()
        self._memory.look()
        self._answered()

    def wake(self) -> None:
        """Call idle workers if checks wait that they do not know of; sweep when it is due."""
        context = self._context
        is_due = time.monotonic() - self._swept_at >= self._sweep_seconds
        if is_due and self._grace.seconds >= context.lease_seconds:
            self._swept_at = time.monotonic()
            at_most = context.lease_seconds / 2
            pause = of_many(self._beat_seconds, self._presence.many, _SWEEPERS, at_most=at_most)
            self._sweep_seconds = pause * random.uniform(0.5, 1)  # noqa: S311 # not all at once
            self.sweep()
        context.health.look_again()
        if self._bell.is_lost and not self._look_for_redis():
            return
        if context.calling.is_set() or (context.threads.has_idle and context.is_well):
            context.calling.clear()
            self._call_who_is_waited_for()

    def _call_who_is_waited_for(self) -> None:
        asked = time.monotonic()
        names = set(self._context.waiting())
        self._answered()
        pause = pause_after(time.monotonic() - asked, times=_PAUSES, most=self._beat_seconds)
        at_most = min(self._beat_seconds, _LOOKS_AFTER)
        look = of_many(self._look_seconds, self._presence.many, _LOOKERS, at_most=at_most)
        self._idle_seconds = max(look, pause)
        # Checks that a busy thread prefetched are offered to idle threads too.
        if self._context.threads.has_idle:
            names |= self._context.claims.prefetched()
        if names:
            self._call(sorted(names))

    def _look_for_redis(self) -> bool:
        """Return whether Redis can be used again; until then no worker is called."""
        self._context.calling.clear()
        return self._bell.look()

    def _call(self, names: list[str]) -> None:
        self._called_at = time.monotonic()
        try:
            call(self._app, names)
        except ServerDown as error:
            self._bell.lost(error.__cause__ or error)
        else:
            self._bell.found()
        finally:
            self._called_at = None

    def sweep(self) -> None:
        """Requeue the checks of dead workers, and cancel lines whose deadline has passed."""
        swept = self._context.store.sweep(
            checker_version=farm_version(), answer_seconds=self._context.lease_seconds / 2
        )
        events.swept(swept)
        if swept.taken_back:
            _log.warning("Requeued %d checks whose worker stopped responding", swept.taken_back)
        if swept.past_deadline:
            _log.info("Cancelled %d lines that had not started by their deadline", swept.past_deadline)

    def start(self) -> None:
        """Beat once, for submitters; continue in the background; raises `ServerDown`."""
        retrying_at_start(self.heartbeat)
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End each thread after its present beat, and withdraw this worker's presence."""
        self._stopping.set()
        self._context.calling.set()
        for thread in self._threads:
            thread.join()
        self._presence.leave()

    def _pause(self) -> None:
        self._stopping.wait(self._look_seconds)

    def _wait_for_call(self) -> None:
        self._context.calling.wait(self._idle_seconds)

    def _repeat(self, step: Callable[[], None], pause: Callable[[], None]) -> None:
        while not self._stopping.is_set():
            try:
                step()
            except ServerDown as error:
                _log.warning("%s; heartbeat will be retried", error)
                events.database_was_away()
                self._is_refused = True
                self._stopping.wait(self._look_seconds)
            except Exception:  # noqa: BLE001 # the thread's edge: without it no lease would be extended again
                _log.exception("Heartbeat failed and will be retried")
                self._stopping.wait(self._look_seconds)
            pause()


# No decision about a check depends on it: the lease alone decides whether a check is still this worker's.
# Only the pauses of periodic work follow from the number of workers.


#: Seconds between two looks for workers that are to be forgotten.
_FORGET_SECONDS = 60.0


class Presence:
    """Publishes one worker's presence in the store, and knows how `many` workers are present."""

    def __init__(self, context: Context) -> None:
        self._context, self._workers = context, Workers(context.store.engine)
        self._forgot_at = float("-inf")
        self.many = 1

    def say(self) -> None:
        """Publish that this worker lives; now and then, forget workers that have been silent for long.

        Raises `ServerDown`.
        """
        self._workers.say(self._sign())
        if time.monotonic() - self._forgot_at >= _FORGET_SECONDS:
            self.many = max(1, self._workers.forget())
            self._forgot_at = time.monotonic()

    def leave(self) -> None:
        """Withdraw this worker's presence."""
        with suppress(ServerDown):  # then it falls silent, and is forgotten later
            self._workers.leave(self._sign())

    def _sign(self) -> SignOfLife:
        context = self._context
        return SignOfLife(
            name=context.name,
            since=context.since,
            node=socket.gethostname(),
            pid=os.getpid(),
            environments=context.served(),
            isolation=context.judges.isolation,
            farm_version=farm_version(),
            threads=context.threads.size,
            busy=context.threads.at_work,
            state=self._state(),
            lease_seconds=context.lease_seconds,
            pending=context.pending(),
        )

    def _state(self) -> State:
        if self._context.threads.stopping:
            return State.STOPPING
        return State.SERVING if self._context.is_well else State.UNWELL
