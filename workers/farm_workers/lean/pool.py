"""Prepared way, all waiting processes of a worker: begins them while cores are idle, and ends unused ones."""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from farm import allotment
from farm.log import logger
from farm_workers import cache
from farm_workers.box.isolation import Isolation
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.lean.waiting import NoImport, WaitingLean
from farm_workers.lean.way import Doubtful

_log = logger(__name__)

#: The most headers that are remembered: those of checks, and those that Lean cannot import.
_MOST_HEADERS = 1000

Key = tuple[LeanEnvironment, str]


@dataclass(kw_only=True, slots=True)
class _Kept:
    """The processes of a header, being made or waiting, and the memory that one takes, 0 if unknown."""

    leans: list[WaitingLean] = field(default_factory=list)
    kib: int = 0


class Pool:
    """Keeps at most `most` stock Leans that wait for a program; thread-safe.

    The headers of the latest checks share them. `others` returns how many images the worker has, and
    their private memory in bytes: these come first, and together all take at most `most_mib`. An import is
    begun only while a core is idle: on busy cores it would cost the checks as much as it saves.
    """

    def __init__(
        self, isolation: Isolation, *, most: int, most_mib: int, others: Callable[[], tuple[int, int]]
    ) -> None:
        self._isolation, self._others = isolation, others
        self._most, self._most_kib = most, most_mib << 10
        self._lock = threading.Lock()
        self._kept: OrderedDict[Key, _Kept] = OrderedDict()
        self._seen: cache.Cache[bytes, bool] = cache.Cache(most=_MOST_HEADERS)
        self._refused: cache.Cache[bytes, bool] = cache.Cache(most=_MOST_HEADERS)
        self._working, self._cores = 0, allotment.cores()
        self._ending: set[WaitingLean] = set()
        self._closed = False

    @contextlib.contextmanager
    def taken(self, environment: LeanEnvironment, header: str) -> Iterator[WaitingLean]:
        """Give a process that waits with a header, which ends with the block; another one is begun.

        Raises Doubtful if there is none. A header is prepared from its second check on: many have one check.
        """
        key = _short((environment, header))
        if self._seen.get(key):
            self.prepare(environment, header)
        self._seen.put(key, True)
        with self._lock:
            kept = self._kept.get((environment, header), _Kept())
            lean = next((each for each in kept.leans if each.lives), None)
            if lean is not None:
                kept.leans.remove(lean)
        if lean is None:
            raise Doubtful("no prepared Lean is ready")
        self._fill()
        try:
            yield lean
        finally:
            lean.close()

    def prepare(self, environment: LeanEnvironment, header: str) -> None:
        """Have processes prepared for a header from now on. Raises Doubtful if Lean cannot import it."""
        if self._refused.get(_short((environment, header))):
            raise Doubtful("no prepared Lean can import this header")
        with self._lock:
            self._kept.setdefault((environment, header), _Kept())
            self._kept.move_to_end((environment, header))
        self._fill()

    @contextlib.contextmanager
    def working(self) -> Iterator[None]:
        """Count a core as used by a check."""
        with self._lock:
            self._working += 1
        try:
            yield
        finally:
            with self._lock:
                self._working -= 1
            self._fill()

    def __len__(self) -> int:
        """Return the number of processes, ready or not."""
        with self._lock:
            return sum(len(kept.leans) for kept in self._kept.values())

    def waiting(self) -> list[WaitingLean]:
        """Return the processes that are ready."""
        with self._lock:
            return [each for kept in self._kept.values() for each in kept.leans if each.lives]

    def close(self) -> None:
        """End all processes; the object cannot be used afterwards."""
        with self._lock:
            self._closed = True
            ending = [*self._ending, *(each for kept in self._kept.values() for each in kept.leans)]
            self._kept.clear()
        for lean in ending:
            lean.end()
        for lean in ending:
            lean.close()

    def _fill(self) -> None:
        """End the processes for which there is no room, and begin others while a core is idle."""
        if not self._kept:
            return
        images, image_bytes = self._others()
        with self._lock:
            self._remove_ended()
            most, most_kib = self._most - images, self._most_kib - (image_bytes >> 10)
            self._make_room(most, most_kib)
            while not self._closed and self._has_idle_core() and (key := self._next(most, most_kib)):
                lean = WaitingLean(*key, self._isolation, self._told)
                self._kept[key].leans.append(lean)

    def _remove_ended(self) -> None:
        for kept in self._kept.values():
            dead = [each for each in kept.leans if each.error or (each.is_ready and not each.lives)]
            self._leave(kept, dead)

    def _leave(self, kept: _Kept, leans: list[WaitingLean]) -> None:
        """Begin to end processes of a header."""
        self._ending = {each for each in self._ending if not each.has_ended} | set(leans)
        for lean in leans:
            kept.leans.remove(lean)
            lean.end()

    def _has_idle_core(self) -> bool:
        making = sum(not each.is_ready for kept in self._kept.values() for each in kept.leans)
        return self._working + making < self._cores

    def _next(self, most: int, most_kib: int) -> Key | None:
        """Return the header of the next process: the newest of the headers with the fewest processes."""
        if not self._kept or not self._fits(most - 1, most_kib):
            return None
        key = min(reversed(self._kept), key=lambda each: len(self._kept[each].leans))
        return key if self._fits(most - 1, most_kib - self._kept[key].kib) else None

    def _fits(self, most: int, most_kib: int) -> bool:
        number = sum(len(kept.leans) for kept in self._kept.values())
        return number <= most and sum(len(kept.leans) * kept.kib for kept in self._kept.values()) <= most_kib

    def _make_room(self, most: int, most_kib: int) -> None:
        """Forget the least recently used headers, and keep a place free for a header without a process."""
        while len(self._kept) > max(most, 1):
            self._leave(kept := next(iter(self._kept.values())), list(kept.leans))
            self._kept.popitem(last=False)
        newest = next(reversed(self._kept.values()), None)
        spare = 1 if newest is not None and not newest.leans else 0
        while not self._fits(most - spare, most_kib - spare * (newest.kib if newest else 0)):
            richest = max(self._kept.values(), key=lambda each: len(each.leans))
            if not richest.leans:
                return
            self._leave(richest, richest.leans[:1])

    def _told(self, lean: WaitingLean) -> None:
        """Note that a process is ready, or has failed."""
        key = lean.environment, lean.header
        if isinstance(lean.error, NoImport):
            self._refused.put(_short(key), True)
        if lean.error is not None and not lean.is_closing:
            _log.info("Could not prepare a Lean for %s: %s", lean.environment.name, lean.error)
        with self._lock:
            if key in self._kept and lean.error is not None:
                self._forget(key, lean)
            elif key in self._kept:
                self._kept[key].kib = lean.memory_kib
        if lean.error is None:
            self._fill()

    def _forget(self, key: Key, lean: WaitingLean) -> None:
        """Forget the header of a process that failed, until a check asks for it again."""
        self._leave(self._kept[key], [each for each in self._kept[key].leans if each is lean])
        if not self._kept[key].leans:
            del self._kept[key]


def _short(key: Key) -> bytes:
    environment, header = key
    return cache.key(environment.digest, header)
