"""Where queues begin, as far as one worker has seen: what was claimed before need not be looked through.

A check that is claimed leaves its place in the queue's index, but PostgreSQL keeps the entry until the oldest
transaction has ended, and finds out about each one again at every claim: while a million lines are loaded, or
a backup is made, a hundred thousand of them stand before the first that waits. So a worker remembers at which
turn that one stood. What came back to the queue meanwhile may stand before it; the whole queue is looked
through when nothing else is found, and else as often as that costs little.

A worker also remembers which checks it could not read, and claims them no more.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from farm.judging.states import Priority

#: The queue of one class in one environment.
Place = tuple[str, Priority]

#: A claim that takes less than so many seconds has nothing to look past.
_CHEAP_SECONDS = 0.01
#: Otherwise the whole queue is looked through again after so many times what it took.
_PAUSES = 20.0

#: Between two looks at the classes before, a worker pauses so many times as long as a look takes.
_LOOK_PAUSES = 4.0

#: So many checks that cannot be read are remembered.
_MOST_UNREADABLE = 10_000

#: Turns are bigint.
_BEGINNING, _END = 0, 2**63 - 1


class Front:
    """The turns from which one worker looks for what waits; its claims come one after the other."""

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
        """Say at which turn the first stood that was found in each of these queues; nothing if none was."""
        if self._is_whole:
            ended = self._clock()
            seconds = ended - self._asked_at
            self._whole_at = ended + (_PAUSES * seconds if seconds > _CHEAP_SECONDS else 0.0)
            self._soonest_at = ended + seconds
            self._turns = dict.fromkeys(places, _END)
        self._turns |= first

    def look(self, places: Sequence[Place]) -> list[int]:
        """Return the turn from which to look in queues of the classes before that of the last claim.

        A check that comes to an empty queue stands before what was last seen there. So these queues are
        looked through from their beginning, unless that was done a moment ago.
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
        """Whether who found nothing need not look again; when not, all is looked through next time.

        Of the time at most half is spent on that.
        """
        if self._is_whole or self._clock() < self._soonest_at:
            return True
        self._whole_at = 0.0
        return False
