"""Backoff: retries a step while a server is down, so that an outage delays a worker and loses nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from farm.errors import ServerDown
from farm.log import logger
from farm_workers.metrics import events

_T = TypeVar("_T")

_log = logger(__name__)

#: The pause before a retry of a server that did not answer.
RETRY_SECONDS = 1.0
#: How long a starting worker retries its servers: long enough for a restart, short enough to report a wrong
#: address.
START_SECONDS = 30.0


def _never() -> bool:
    return False


def retrying(step: Callable[[], _T], *, unless: Callable[[], bool] = _never) -> _T:
    """Retry a step until PostgreSQL answers; raises `ServerDown` when it does not and `unless` is true."""
    while True:
        try:
            return step()
        except ServerDown as error:
            if unless():
                raise
            _log.warning("%s; waiting to retry", error)
            events.database_was_away()
            time.sleep(RETRY_SECONDS)


def retrying_at_start(step: Callable[[], _T]) -> _T:
    """Retry a step until PostgreSQL answers, for `START_SECONDS` at most; raises `ServerDown`."""
    until = time.monotonic() + START_SECONDS
    return retrying(step, unless=lambda: time.monotonic() > until)
