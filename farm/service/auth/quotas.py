"""How much each key uses: admits proofs within its limits. In this process's memory, so per replica."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from farm.errors import OverLimit
from farm.store.keys import Key

# A float that is a little too small after so many additions does not cost another second.
_ROUNDING = 1e-6
_LONGEST_WAIT = 86_400.0


@dataclass(frozen=True, kw_only=True, slots=True)
class _Use:
    """A key's use at one time: unfinished proofs, and how many its token bucket lets in.

    `level` is below 0 after a batch that is larger than the bucket.
    """

    in_flight: int
    level: float
    at: float


class Quotas:
    """What every key uses now; many threads may use it at once.

    `per_second` is a token bucket of one second's proofs. A larger batch is admitted when the bucket is full,
    and the next one waits until its debt is paid: on average no more proofs are admitted than the limit says.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._uses: dict[str, _Use] = {}

    def admit(self, key: Key, proofs: int = 1) -> None:
        """Count so many proofs as submitted and unfinished; raises `OverLimit`, and counts nothing then."""
        with self._lock:
            use, level = self._room(key, proofs)
            self._uses[key.id] = replace(use, in_flight=use.in_flight + proofs, level=level)

    def require_room(self, key: Key, proofs: int = 1) -> None:
        """Raise `OverLimit` where so many proofs would not be admitted now; counts nothing."""
        with self._lock:
            self._room(key, proofs)

    def release(self, key: Key, proofs: int = 1) -> None:
        """Count so many proofs that were admitted as finished."""
        _require_some(proofs)
        with self._lock:
            use = self._now(key)
            if use.in_flight < proofs:
                raise ValueError(
                    f"{proofs} proofs of key {key.id} are released, {use.in_flight} are admitted"
                )
            self._uses[key.id] = replace(use, in_flight=use.in_flight - proofs)

    @contextmanager
    def admitted(self, key: Key, proofs: int = 1) -> Iterator[None]:
        """Admit so many proofs, and release them at the end of the block; raises `OverLimit`."""
        self.admit(key, proofs)
        try:
            yield
        finally:
            self.release(key, proofs)

    def in_flight(self, key: Key) -> int:
        """Return how many proofs of a key are unfinished."""
        with self._lock:
            return self._now(key).in_flight

    def _room(self, key: Key, proofs: int) -> tuple[_Use, float]:
        """Return a key's use, and its bucket's level once so many proofs are taken; raises `OverLimit`."""
        _require_some(proofs)
        use = self._now(key)
        _require_room(key, use, proofs)
        return use, _after(key, use, proofs)

    def _now(self, key: Key) -> _Use:
        """Return a key's use, its bucket filled for the time that has passed."""
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
    """Return the bucket's level once so many proofs are taken; raises `OverLimit`."""
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
