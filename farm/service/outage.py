"""Outages of PostgreSQL: the log gets the reason, once; clients only learn that it does not answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from farm.errors import ServerDown
from farm.log import logger

_log = logger(__name__)


class Outage:
    """Whether PostgreSQL answers one part of the service; for one event loop."""

    def __init__(self) -> None:
        self._is_on = False

    @contextmanager
    def noticed(self) -> Iterator[None]:
        """Log a `ServerDown` of the block once per outage, and raise one without users, hosts and paths."""
        try:
            yield
        except ServerDown as error:
            if not self._is_on:
                self._is_on = True
                _log.error("%s", error)
            raise ServerDown(
                "PostgreSQL does not answer; the log of the service says why; ask again"
            ) from None
        if self._is_on:
            self._is_on = False
            _log.warning("PostgreSQL answers again")
