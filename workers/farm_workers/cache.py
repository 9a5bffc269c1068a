"""Worker, caches: bounds caches in number and bytes, because submissions choose the keys."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class Cache(Generic[_Key, _Value]):
    """Keeps the values that were used most recently; for many threads.

    There are at most `most`, and at most `most_bytes` of them together, as `size` counts where it is given.
    The newest stays, however large it is. Keys should be short: `key` makes one of texts.
    """

    def __init__(
        self, *, most: int, most_bytes: int = 0, size: Callable[[_Value], int] = lambda _: 0
    ) -> None:
        self._most, self._most_bytes, self._size = most, most_bytes, size
        self._lock = threading.Lock()
        self._kept: OrderedDict[_Key, _Value] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: _Key) -> _Value | None:
        """Return the value of a key, None if it has none."""
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
            return found

    def put(self, key: _Key, value: _Value) -> None:
        """Keep a value under a key, in place of an earlier value."""
        with self._lock:
            before = self._kept.pop(key, None)
            self._bytes += self._size(value) - (0 if before is None else self._size(before))
            self._kept[key] = value
            while len(self._kept) > 1 and (len(self._kept) > self._most or self._bytes > self._most_bytes):
                self._bytes -= self._size(self._kept.popitem(last=False)[1])


def key(*words: str) -> bytes:
    """Return 32 bytes that stand for some texts, which can have megabytes, and for no other ones."""
    return hashlib.sha256(json.dumps(words).encode()).digest()
