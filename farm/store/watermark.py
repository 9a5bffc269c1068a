"""Cursors into the queues: the turn at which one worker found the first queued check of each.

A claimed check leaves the queue's index, but PostgreSQL keeps the dead entry until the oldest transaction has
ended, and every claim visits it: while a million lines are loaded, or a backup is made, a hundred thousand
dead entries stand before the first queued check. So a worker starts at the turn of the last first check.
A check that returned to the queue may stand before the cursor; so the whole queue is scanned when a claim
finds nothing, and else as often as a scan costs little.

A worker also remembers the checks that it could not read, and does not claim them again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from farm.judging.states import Priority

#: The queue of one class in one environment.
Place = tuple[str, Priority]

#: A claim faster than this visits no dead entries, in seconds.
_CHEAP_SECONDS = 0.01
#: Pause between two scans of a whole queue, as a multiple of a scan's time.
_PAUSES = 20.0

#: Pause between two scans of the more urgent classes, as a multiple of a scan's time.
_LOOK_PAUSES = 4.0

#: Number of unreadable checks that a worker remembers.
_MOST_UNREADABLE = 10_000

#: Turns are bigint.
_BEGINNING, _END = 0, 2**63 - 1


class Front:
    """The cursors of one worker, whose claims are sequential."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._turns: dict[Place, int] = {}
        self._asked_at = self._whole_at = self._soonest_at = 0.0
        self._is_whole = True
        self._looked_at = self._look_at = 0.0
        self._unreadable: dict[int, str] = {}

    @property
    def unreadable(self) -> list[int]:
        """The ids of the checks that this worker cannot read."""
        return list(self._unreadable)

    @property
    def has_room(self) -> bool:
        """Whether every check that cannot be read is remembered so far."""
        return len(self._unreadable) < _MOST_UNREADABLE

    def cannot_read(self, check_id: int, why: str) -> bool:
        """Remember a check that this worker cannot read; returns whether it is the first for this reason."""
        is_first = why not in self._unreadable.values()
        self._unreadable[check_id] = why
        if len(self._unreadable) > _MOST_UNREADABLE:
            del self._unreadable[next(iter(self._unreadable))]
        return is_first

    def turns(self, places: Sequence[Place]) -> list[int]:
        """Return the turn from which to look in each of these queues, now."""
        self._asked_at = self._clock()
        self._is_whole = self._asked_at >= self._whole_at
        if self._is_whole:
            self._turns = {}
        return self.known(places)

    def known(self, places: Sequence[Place]) -> list[int]:
        """Return the turn at which each of these queues was last seen to begin."""
        return [self._turns.get(place, _BEGINNING) for place in places]

    def saw(self, places: Sequence[Place], first: Mapping[Place, int]) -> None:
        """Remember the turn of the first check that a claim found in each queue, none for an empty one."""
        if self._is_whole:
            ended = self._clock()
            seconds = ended - self._asked_at
            self._whole_at = ended + (_PAUSES * seconds if seconds > _CHEAP_SECONDS else 0.0)
            self._soonest_at = ended + seconds
            self._turns = dict.fromkeys(places, _END)
        self._turns |= first

    def look(self, places: Sequence[Place]) -> list[int]:
        """Return the turns from which to scan the queues of more urgent classes.

        A check that is added to an empty queue stands before the cursor. So these queues are scanned from
        their beginning, unless the last such scan was a moment ago.
        """
        self._looked_at = self._clock()
        return [_BEGINNING] * len(places) if self._looked_at >= self._look_at else self.known(places)

    def looked(self, first: Mapping[Place, int]) -> None:
        """Remember the turn of the first check in each queue that a look found not to be empty."""
        ended = self._clock()
        if self._looked_at >= self._look_at:
            self._look_at = ended + _LOOK_PAUSES * (ended - self._looked_at)
        self._turns |= first

    def gives_up(self) -> bool:
        """Whether a worker that found nothing stops here; if not, its next claim scans the whole queues.

        Such scans take at most half of the time.
        """
        if self._is_whole or self._clock() < self._soonest_at:
            return True
        self._whole_at = 0.0
        return False
