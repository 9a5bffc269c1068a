"""The worker's requests from Redis, besides checks: a loop that takes one after the other."""

from __future__ import annotations

import threading
from collections.abc import Callable

from redis.exceptions import RedisError

from farm.log import logger
from farm_workers.loop.context import Context

_RETRY_SECONDS = 1.0

_log = logger(__name__)


def take_all(take_one: Callable[[], None], context: Context, stopping: threading.Event, what: str) -> None:
    """Call `take_one` until the worker stops, whatever it raises; `what` names the requests in the log."""
    while not (stopping.is_set() or context.threads.stopping):
        try:
            take_one()
        except (RedisError, OSError) as error:
            _log.debug("Requests of %s cannot be taken: %s", what, error)
            stopping.wait(_RETRY_SECONDS)
        except Exception:  # noqa: BLE001 # the thread's edge: else none would be served again
            _log.exception("A request of %s could not be taken", what)
