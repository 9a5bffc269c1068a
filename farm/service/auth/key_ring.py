"""Who asks: finds the key of a presented token, as PostgreSQL knew it a few seconds ago at most."""

from __future__ import annotations

import math
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from farm.errors import ServerDown
from farm.service.auth.tokens import Token, is_same
from farm.store.keys import Key, StoredKey

#: So old a reading of the keys is used; a revoked key stops within five seconds, the reading's time included.
_FRESH_SECONDS = 3.0
#: A refused token is looked for again unless the reading is newer than this: its key may be a new one.
_REFUSED_SECONDS = 0.2
#: So long a call waits for another's reading.
_WAIT_SECONDS = 5.0


@dataclass(frozen=True, kw_only=True, slots=True)
class _Reading:
    """The valid keys by id, each with the digest of its secret, and when they began to be read."""

    begun: float
    keys: Mapping[str, tuple[Key, bytes]] = field(repr=False)


class KeyRing:
    """The valid keys, read from the store every few seconds; many threads may use it at once.

    All keys are read together, so who presents unknown ids cannot make it ask, or remember, more.
    """

    def __init__(
        self, read: Callable[[], Sequence[StoredKey]], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._read, self._clock = read, clock
        self._lock = threading.Lock()
        self._reading = _Reading(begun=-math.inf, keys={})
        # What an unknown id is compared with: it takes as long as a known one.
        self._nobody: tuple[None, bytes] = (None, secrets.token_bytes(32))

    def verify(self, presented: str) -> Key | None:
        """Return the key whose token this is; None for any other text.

        This asks PostgreSQL at times: do not call it in an event loop's thread. Raises `ServerDown` when
        PostgreSQL cannot be reached.
        """
        token = Token.parse(presented)
        if token is None:
            return None
        now = self._clock()
        found = self._find(token, self._keys(begun_after=now - _FRESH_SECONDS))
        # Not only for an unknown id: that would take longer then, and tell which ids there are.
        return found or self._find(token, self._keys(begun_after=now - _REFUSED_SECONDS))

    def _find(self, token: Token, keys: Mapping[str, tuple[Key, bytes]]) -> Key | None:
        key, sha256 = keys.get(token.id, self._nobody)
        return key if is_same(token.sha256, sha256) else None

    def _keys(self, *, begun_after: float) -> Mapping[str, tuple[Key, bytes]]:
        """Return the keys by a reading that began later than so; one thread reads while others wait."""
        if self._reading.begun > begun_after:
            return self._reading.keys
        if not self._lock.acquire(timeout=_WAIT_SECONDS):
            raise ServerDown(
                f"PostgreSQL did not return the keys within {_WAIT_SECONDS:g} s; "
                "look at its load and its log, and try again"
            )
        try:
            if self._reading.begun <= begun_after:
                begun = self._clock()
                keys = {each.key.id: (each.key, each.secret_sha256) for each in self._read()}
                self._reading = _Reading(begun=begun, keys=keys)
            return self._reading.keys
        finally:
            self._lock.release()
