"""Resident way, its stock: which resident Leans there are, who has one, and who makes the next one.

A process that cannot go on is replaced in the background, and a header that is asked for often has one
process more than is needed: so the next check rarely pays for the header.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from farm.log import logger
from workers.box.isolation import Isolation
from workers.environments import LeanEnvironment
from workers.ways.resident import ResidentLean
from workers.ways.way import Doubtful, Question, Reply

_log = logger(__name__)

#: A header asked for so often is worth a process in reserve.
_OFTEN = 3
#: Seconds after which a header that Lean did not take is tried again: a broken environment may be mended.
_TRY_AGAIN = 60.0


@dataclass(slots=True)
class _Shelf:
    """The processes with one header that nobody uses: those that are ready, and those in the making."""

    environment: LeanEnvironment
    header: str
    stock: list[Future[ResidentLean]] = field(default_factory=list)
    lent: int = 0
    uses: int = 0
    refused_at: float = -_TRY_AGAIN

    @property
    def is_popular(self) -> bool:
        return self.uses >= _OFTEN

    def take(self) -> Future[ResidentLean] | None:
        """Take a process that is ready, or else the one that will be soonest."""
        ready = [future for future in self.stock if future.done()]
        chosen = ready[-1] if ready else self.stock[0] if self.stock else None
        if chosen:
            self.stock.remove(chosen)
        return chosen


class Resident:
    """Asks a resident Lean, one for each header and each check at the same time; for many threads.

    At most `most` processes are kept, more only while so many are in use: of the header that was longest not
    asked for they go first.
    """

    def __init__(self, isolation: Isolation, *, concurrency: int, most: int) -> None:
        self._isolation = isolation
        self._most = most
        self._lock = threading.Lock()
        self._closed = False
        self._shelves: OrderedDict[tuple[LeanEnvironment, str], _Shelf] = (
            OrderedDict()
        )  # the last one asked for is last
        # A resident Lean dies with the thread that made it; these threads live as long as this object.
        self._makers = ThreadPoolExecutor(2 * concurrency + 2, thread_name_prefix="resident-lean")

    def ask(self, question: Question) -> Reply:
        """Give the program to a Lean that has its header; raises Doubtful when there is none to be had."""
        shelf, future = self._borrow(question)
        try:
            return future.result().ask(question)
        finally:
            self._give_back(shelf, future)

    def prewarm(self, environment: LeanEnvironment, header: str) -> None:
        """Make a Lean with this header in the background."""
        with self._lock:
            self._add_one(self._shelf(environment, header))

    def close(self) -> None:
        """End all processes; nothing may be asked any more."""
        with self._lock:
            self._closed = True
            stock = [future for shelf in self._shelves.values() for future in shelf.stock]
            self._shelves.clear()
        self._makers.shutdown(wait=True)  # none is called off: each has a process to end
        for future in stock:
            _close(future)

    def _borrow(self, question: Question) -> tuple[_Shelf, Future[ResidentLean]]:
        """Take a process off its shelf and return it when it is ready."""
        with self._lock:
            shelf = self._shelf(question.environment, question.header)
            if time.monotonic() < shelf.refused_at + _TRY_AGAIN:
                raise Doubtful("Lean did not take this header a moment ago")
            if not shelf.stock:
                self._add_one(shelf)
            future = shelf.take()
            assert future is not None  # noqa: S101 - one was added
            shelf.uses += 1
            shelf.lent += 1
            if shelf.is_popular and not shelf.stock:
                self._add_one(shelf)
        try:
            future.result()
        except BaseException as error:
            with self._lock:
                shelf.lent -= 1
                if isinstance(error, Doubtful):
                    shelf.refused_at = time.monotonic()
            raise
        return shelf, future

    def _give_back(self, shelf: _Shelf, future: Future[ResidentLean]) -> None:
        """Put a process back when it is fit; else let somebody calm it down or replace it, at once."""
        lean = future.result()
        ready = lean.fit
        with self._lock:
            shelf.lent -= 1
            if self._closed:
                lean.close()
                return
            shelf.stock.append(future if ready else self._makers.submit(self._renew, shelf, lean))

    def _renew(self, shelf: _Shelf, lean: ResidentLean) -> ResidentLean:
        if not self._closed and lean.calm_down():
            return lean
        lean.close()
        return self._make(shelf)

    def _make(self, shelf: _Shelf) -> ResidentLean:
        if self._closed:
            raise Doubtful("no process is made any more")
        started = time.monotonic()
        lean = ResidentLean(shelf.environment, shelf.header, self._isolation)
        _log.debug("A resident Lean got its header ready in %.2f s", time.monotonic() - started)
        return lean

    # With the lock held.

    def _shelf(self, environment: LeanEnvironment, header: str) -> _Shelf:
        key = environment, header
        shelf = self._shelves.setdefault(key, _Shelf(environment, header))
        self._shelves.move_to_end(key)
        return shelf

    def _add_one(self, shelf: _Shelf) -> None:
        """Have a process made, and the one that is least missed ended when there are too many."""
        shelf.stock.append(self._makers.submit(self._make, shelf))
        alive = sum(len(each.stock) + each.lent for each in self._shelves.values())
        if alive > self._most:
            self._end_one(shelf)

    def _end_one(self, spared: _Shelf) -> None:
        for key, shelf in self._shelves.items():
            if shelf is not spared and shelf.stock:
                self._makers.submit(_close, shelf.stock.pop(0))
                if not shelf.stock and not shelf.lent:
                    del self._shelves[key]
                return


def _close(future: Future[ResidentLean]) -> None:
    if future.exception() is None:
        future.result().close()
