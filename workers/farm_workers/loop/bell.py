"""Watches a worker's connection to Redis: logs each kind of failure once, and when it works again.

A Redis that answers but refuses writes counts as down: it is full, a replica, or needs a password.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from celery import Celery
from celery.worker import state
from celery.worker.consumer import Consumer, consumer

from farm.broker import code_of, refusal, require_broker
from farm.errors import ServerDown
from farm.log import logger

#: A consumer retries after this many seconds when Redis refuses its commands.
_RETRY_SECONDS = 1.0

_log = logger(__name__)


class Bell:
    """Whether Redis, which calls the threads of this worker, can be reached; thread-safe."""

    def __init__(self, app: Celery, *, connecting: Callable[[], None] = lambda: None) -> None:
        """Call `connecting` each time before Celery connects to Redis."""
        self._connecting = connecting
        self._app, self._where = app, app.connection().as_uri()
        self._lock = threading.Lock()
        self._is_lost = False
        self._logged: set[str] = set()  # the codes of the refusals since Redis was lost

    def lost(self, error: BaseException) -> None:
        """Log why Redis cannot be used, unless that is logged already.

        A Redis that begins to refuse may first close its connections, or end the commands that wait: its own
        words about writes are logged later.
        """
        with self._lock:
            words = refusal(self._app, error)
            code = code_of(words) if words else ""
            if self._is_lost and (not code or code in self._logged):
                return
            refuses = words and f"refuses what the farm writes at {self._where}: {words}"
            if self._is_lost:
                _log.warning("Redis %s", refuses)
            else:
                self._logged.clear()
                _log.warning(
                    "Redis %s. Busy threads go on with what waits in PostgreSQL; idle ones look there every "
                    "few seconds.",
                    refuses or self._unreachable(error),
                )
            self._is_lost = True
            self._logged.add(code)

    def _unreachable(self, error: BaseException) -> str:
        words = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        return f"cannot be reached at {self._where}: {words}; start it, or correct FARM_BROKER_URL"

    def look(self) -> bool:
        """Return whether Redis accepts writes now, and log a change."""
        try:
            require_broker(self._app)
        except ServerDown as error:
            self.lost(error.__cause__ or error)
            return False
        self.found()
        return True

    def found(self) -> None:
        """Log that Redis answers again, if it did not before."""
        with self._lock:
            if self._is_lost:
                _log.warning("Redis answers again at %s", self._where)
            self._is_lost = False

    @property
    def is_lost(self) -> bool:
        """Whether the last attempt to reach Redis failed."""
        return self._is_lost

    def hung(self) -> type[Consumer]:
        """Return Celery's consumer of calls, which logs the connection's state in the farm's words."""
        bell = self

        class Listener(Consumer):  # type: ignore[misc] # Celery ships no types
            def connect(self) -> object:
                bell._connecting()
                connection = super().connect()
                while not bell.look():
                    time.sleep(_RETRY_SECONDS)
                    state.maybe_shutdown()
                return connection

            def on_ready(self) -> None:
                # Environments that were served while the connection was made, which had read the list before.
                for name in list(self.app.amqp.queues.consume_from):
                    self.add_task_queue(name)
                super().on_ready()

        logging.getLogger(consumer.__name__).addFilter(self._is_of_something_else)
        logging.getLogger("py.warnings").addFilter(_is_no_advice)
        return Listener

    def _is_of_something_else(self, record: logging.LogRecord) -> bool:
        """Return whether a log record of Celery is not about its connection."""
        arguments = record.args if isinstance(record.args, tuple) else ()
        is_lost = record.msg == consumer.CONNECTION_ERROR or consumer.CONNECTION_RETRY in arguments
        if is_lost and isinstance(arguments[1], BaseException):
            self.lost(arguments[1])
        return not is_lost


def _is_no_advice(record: logging.LogRecord) -> bool:
    """Whether this is not Celery's advice to end checks when Redis goes away: the farm lets them finish."""
    return "worker_cancel_long_running_tasks_on_connection_loss" not in record.getMessage()
