"""The valid API keys, for each request's token: read from PostgreSQL and cached for a few seconds."""

from __future__ import annotations

import math
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from farm.errors import ServerDown
from farm.service.auth.tokens import ApiToken, is_same
from farm.store.keys import Key, StoredKey

#: The keys are cached for so long; a revoked key stops working within five seconds, their query included.
_FRESH_SECONDS = 3.0
#: For an unknown token the keys are read again unless they are newer than this: its key may be a new one.
_REFUSED_SECONDS = 0.2
#: A call waits so long for another thread's query.
_WAIT_SECONDS = 5.0


@dataclass(frozen=True, kw_only=True, slots=True)
class _Snapshot:
    """The valid keys by id, each with the digest of its secret; `begun` is the time before their query."""

    begun: float
    keys: Mapping[str, tuple[Key, bytes]] = field(repr=False)


class KeyRing:
    """The valid keys, read from the store every few seconds; many threads may use it at once.

    All keys are read together, so a client with unknown ids causes no more queries and uses no memory.
    """

    def __init__(
        self, read: Callable[[], Sequence[StoredKey]], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._read, self._clock = read, clock
        self._lock = threading.Lock()
        self._snapshot = _Snapshot(begun=-math.inf, keys={})
        # An unknown id is compared with this secret, so that it takes as long as a known one.
        self._no_key: tuple[None, bytes] = (None, secrets.token_bytes(32))

    def verify(self, presented: str) -> Key | None:
        """Return the key whose token this is; None for any other text.

        This may query PostgreSQL: do not call it in an event loop's thread. Raises `ServerDown` when
        PostgreSQL cannot be reached.
        """
        token = ApiToken.parse(presented)
        if token is None:
            return None
        now = self._clock()
        found = self._find(token, self._keys(begun_after=now - _FRESH_SECONDS))
        # A wrong secret takes this path too: otherwise the time would show which ids exist.
        return found or self._find(token, self._keys(begun_after=now - _REFUSED_SECONDS))

    def _find(self, token: ApiToken, keys: Mapping[str, tuple[Key, bytes]]) -> Key | None:
        key, sha256 = keys.get(token.id, self._no_key)
        return key if is_same(token.sha256, sha256) else None

    def _keys(self, *, begun_after: float) -> Mapping[str, tuple[Key, bytes]]:
        """Return keys whose query began after this time; one thread queries while the others wait."""
        if self._snapshot.begun > begun_after:
            return self._snapshot.keys
        if not self._lock.acquire(timeout=_WAIT_SECONDS):
            raise ServerDown(
                f"PostgreSQL did not return the keys within {_WAIT_SECONDS:g} s; "
                "look at its load and its log, and try again"
            )
        try:
            if self._snapshot.begun <= begun_after:
                begun = self._clock()
                keys = {each.key.id: (each.key, each.secret_sha256) for each in self._read()}
                self._snapshot = _Snapshot(begun=begun, keys=keys)
            return self._snapshot.keys
        finally:
            self._lock.release()
