"""The limits of each API key on its submissions, a second and unfinished; in memory, so per replica."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from farm.errors import OverLimit
from farm.store.keys import Key

# Rounding errors of many additions must not cost the client another second.
_ROUNDING = 1e-6
_LONGEST_WAIT = 86_400.0


@dataclass(frozen=True, kw_only=True, slots=True)
class _Use:
    """A key's unfinished proofs and the level of its token bucket, at one time.

    `level` is negative after a batch that is larger than the bucket.
    """

    in_flight: int
    level: float
    at: float


class Quotas:
    """Counts the use of every key; for many threads.

    `per_second` is a token bucket that holds one second's proofs. A larger batch is admitted when the bucket
    is full and takes the level below 0; the next one waits until it has risen again, so the average rate
    keeps the limit.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._uses: dict[str, _Use] = {}

    def admit(self, key: Key, proofs: int = 1) -> None:
        """Count proofs as submitted and unfinished; raises `OverLimit` and then counts nothing."""
        with self._lock:
            use, level = self._room(key, proofs)
            self._uses[key.id] = replace(use, in_flight=use.in_flight + proofs, level=level)

    def require_room(self, key: Key, proofs: int = 1) -> None:
        """Raise `OverLimit` if `admit` would raise it; counts nothing."""
        with self._lock:
            self._room(key, proofs)

    def release(self, key: Key, proofs: int = 1) -> None:
        """Count admitted proofs as finished."""
        _require_some(proofs)
        with self._lock:
            use = self._now(key)
            if use.in_flight < proofs:
                raise ValueError(
                    f"{proofs} proofs of key {key.id} are released, {use.in_flight} are admitted"
                )
            self._uses[key.id] = replace(use, in_flight=use.in_flight - proofs)

    def in_flight(self, key: Key) -> int:
        """Return how many proofs of a key are unfinished."""
        with self._lock:
            return self._now(key).in_flight

    def _room(self, key: Key, proofs: int) -> tuple[_Use, float]:
        """Return a key's use, and its bucket's level after these proofs; raises `OverLimit`."""
        _require_some(proofs)
        use = self._now(key)
        _require_room(key, use, proofs)
        return use, _after(key, use, proofs)

    def _now(self, key: Key) -> _Use:
        """Return a key's use now, its bucket refilled for the elapsed time."""
        now, size = self._clock(), _bucket(key)
        use = self._uses.get(key.id)
        if use is None:
            return _Use(in_flight=0, level=size, at=now)
        level = min(size, use.level + (now - use.at) * (key.per_second or 0.0))
        return replace(use, level=level, at=now)


def _bucket(key: Key) -> float:
    return max(1.0, key.per_second or 0.0)


def _require_some(proofs: int) -> None:
    if proofs < 1:
        raise ValueError(f"{proofs} proofs cannot be counted; count at least 1")


def _require_room(key: Key, use: _Use, proofs: int) -> None:
    if key.in_flight is None or use.in_flight + proofs <= key.in_flight:
        return
    if proofs > key.in_flight:
        raise OverLimit(
            f"{proofs} proofs at once are more than the {key.in_flight} that key {key.name} may have "
            "unfinished; submit fewer at once",
            retry_after=None,
            most=key.in_flight,
        )
    raise OverLimit(
        f"key {key.name} has {use.in_flight} unfinished proofs and may have {key.in_flight}; "
        "wait for verdicts, and submit again",
        retry_after=1,
    )


def _after(key: Key, use: _Use, proofs: int) -> float:
    """Return the bucket's level after these proofs; raises `OverLimit`."""
    if key.per_second is None:
        return use.level
    wait = (min(proofs, _bucket(key)) - use.level) / key.per_second
    if wait > _ROUNDING:
        seconds = max(1, math.ceil(min(wait, _LONGEST_WAIT) - _ROUNDING))
        raise OverLimit(
            f"key {key.name} may submit {key.per_second:g} proofs a second and has submitted more; "
            f"submit again in {seconds} s",
            retry_after=seconds,
        )
    return use.level - proofs
