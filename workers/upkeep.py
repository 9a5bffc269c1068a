"""The upkeep step: while checks run, extend their leases; now and then take back and send what got lost."""

from __future__ import annotations

import threading

from celery import Celery

from farm import __version__
from farm.broker import publish, resend_when_empty
from farm.errors import ServerDown
from farm.log import logger
from workers.tasks import Desk

_log = logger(__name__)


class Upkeep(threading.Thread):
    """The one thread beside a worker's checks; several beats fit into one lease."""

    def __init__(self, desk: Desk, app: Celery) -> None:
        super().__init__(name="upkeep", daemon=True)
        self._desk, self._app = desk, app
        self._stop_asked = threading.Event()

    def run(self) -> None:
        """Beat until stopped."""
        while not self._stop_asked.wait(self._desk.lease_seconds / 5):
            try:
                self.beat()
            except ServerDown as error:
                _log.warning("%s; upkeep waits", error)
            except Exception:  # noqa: BLE001 # the thread's edge: without it no lease would be extended again
                _log.exception("Upkeep failed and goes on")

    def beat(self) -> None:
        """Do the whole upkeep once."""
        desk = self._desk
        desk.held.lose(desk.store.extend(desk.held.attempts(), lease_seconds=desk.lease_seconds))
        desk.store.register(desk.served())
        if taken := desk.store.take_back(checker_version=__version__):
            _log.warning("Took back %d checks whose worker stopped answering", taken)
        resend_when_empty(self._app, desk.store, list(desk.environments))
        # A run of a million lines must not hold up the next beat.
        publish(self._app, desk.store, seconds=desk.lease_seconds / 10)

    def stop(self) -> None:
        """End the thread after the beat it is in."""
        self._stop_asked.set()
        self.join()
