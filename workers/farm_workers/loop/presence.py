"""Presence step: publishes that a worker lives and how busy it is, for dashboards and `farm status`.

No decision about a check depends on it: the lease alone decides whether a check is still this worker's. Only
the pauses of periodic work follow from the number of workers.
"""

from __future__ import annotations

import os
import socket
import time
from contextlib import suppress

from farm.errors import ServerDown
from farm.store.workers import SignOfLife, State, Workers
from farm.version import farm_version
from farm_workers.loop.context import Context

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
