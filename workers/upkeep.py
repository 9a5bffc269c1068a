"""The upkeep step: while checks run, extend their leases; now and then take back and send what got lost."""

from __future__ import annotations

import threading
from collections.abc import Callable

from celery import Celery

from farm import __version__
from farm.broker import publish, resend_when_empty
from farm.errors import ServerDown
from farm.log import logger
from workers.tasks import Desk

_log = logger(__name__)


class Upkeep:
    """What a worker does beside its checks, in two threads: a Redis that hangs must not cost a lease.

    Several beats fit into one lease.
    """

    def __init__(self, desk: Desk, app: Celery) -> None:
        self._desk, self._app = desk, app
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._repeat, args=(step,), name=step.__name__, daemon=True)
            for step in (self.heartbeat, self.sweep)
        ]

    def heartbeat(self) -> None:
        """Extend the leases of what runs here, and say which environments are served."""
        desk = self._desk
        desk.held.lose(desk.store.extend(desk.held.attempts(), lease_seconds=desk.lease_seconds))
        desk.store.register(desk.served())

    def sweep(self) -> None:
        """Take back what dead workers held, and send what was never sent or got lost on its way."""
        desk = self._desk
        if taken := desk.store.take_back(checker_version=__version__):
            _log.warning("Took back %d checks whose worker stopped answering", taken)
        resend_when_empty(self._app, desk.store, list(desk.environments), seconds=desk.lease_seconds / 2)
        # A run of a million lines is sent by and by: other workers send it too.
        publish(self._app, desk.store, seconds=desk.lease_seconds / 10)

    def start(self) -> None:
        """Beat once, so that submitters see this worker, and go on in the background."""
        self.heartbeat()
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End each thread after the beat it is in."""
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def _repeat(self, step: Callable[[], None]) -> None:
        while not self._stopping.wait(self._desk.lease_seconds / 5):
            try:
                step()
            except ServerDown as error:
                _log.warning("%s; upkeep waits", error)
            except Exception:  # noqa: BLE001 # the thread's edge: without it no lease would be extended again
                _log.exception("Upkeep failed and goes on")
