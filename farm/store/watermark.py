"""Cursors into the queues: which tenant's turn it is, and where one worker found each tenant's first check.

A claimed check leaves the queue's index, but PostgreSQL keeps the dead entry until the oldest transaction has
ended, and every claim visits it: while a million lines are loaded, or a backup is made, a hundred thousand
dead entries stand before the first queued check. So a worker starts at the turn of a tenant's last first
check. A check that returned to the queue may stand before the cursor; so the whole queue is scanned when a
claim finds nothing, and else as often as a scan costs little.

A worker also remembers the checks that it could not read, and does not claim them again.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from farm.judging.states import Priority
from farm.pauses import pause_after
from farm.store.rounds import Round, Span, Taken

#: The queue of one class in one environment.
Place = tuple[str, Priority]

#: A claim faster than this visits no dead entries, in seconds.
_CHEAP_SECONDS = 0.01
#: Pause between two scans of a whole queue, as a multiple of a scan's time.
_PAUSES = 20.0

#: Pause between two scans of the more urgent classes, as a multiple of a scan's time.
_LOOK_PAUSES = 4.0

#: Number of tenants of a queue whose first checks a worker remembers.
_MOST_TENANTS = 64

#: Number of unreadable checks that a worker remembers.
_MOST_UNREADABLE = 10_000

#: Turns are bigint.
_BEGINNING, _END = 0, 2**63 - 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Head:
    """The first check that was found of a tenant in a queue, and the number of the part where it was."""

    place: Place
    tenant: int
    turn: int
    part: int = 0


class Front:
    """The cursors of one worker, whose claims are sequential."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, rounds: dict[Place, Round] | None = None
    ) -> None:
        """Begin to read the queues; `rounds` has the turns of tenants, where another front goes on."""
        self._clock = clock
        self._rounds = defaultdict(Round) if rounds is None else rounds
        self._heads: dict[Place, dict[int, int]] = defaultdict(dict)
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

    def spans(self, places: Sequence[Place]) -> list[tuple[Place, Span]]:
        """Return the parts of these queues in which to look now, in this order."""
        self._asked_at = self._clock()
        self._is_whole = self._asked_at >= self._whole_at
        return [(place, span) for place in places for span in self._spans(place)]

    def _spans(self, place: Place) -> list[Span]:
        spans, heads = self._rounds[place].spans(), self._heads[place]
        return spans if self._is_whole else [part for span in spans for part in span.parts(heads)]

    def spans_alike(self, place: Place, tenant: int, turn: int) -> list[tuple[Place, Span]]:
        """Return the parts of a queue; the checks of `tenant` before `turn` are known not to be wanted."""
        return [
            (place, Span(span.first, turn, span.last) if span.first == span.last == tenant else span)
            for span in self._rounds[place].spans()
        ]

    def saw(self, spans: Sequence[tuple[Place, Span]], heads: Sequence[Head], *, is_all: bool) -> None:
        """Remember the checks that a claim found first in these parts of queues.

        Unless they are all that is there, the parts from the last one on were not looked through. After a
        scan of whole queues these are scanned next.
        """
        if self._is_whole:
            ended = self._clock()
            seconds = ended - self._asked_at
            is_cheap = seconds <= _CHEAP_SECONDS
            self._whole_at = ended + (0.0 if is_cheap else pause_after(seconds, times=_PAUSES))
            self._soonest_at = ended + seconds
        through = len(spans) if is_all or self._is_whole else max((each.part for each in heads), default=0)
        for place, span in spans[:through]:
            self._forget(place, span)
        self._remember(heads)

    def _remember(self, heads: Iterable[Head]) -> None:
        for each in heads:
            known = self._heads[each.place]
            known[each.tenant] = each.turn
            if len(known) > _MOST_TENANTS:
                del known[next(iter(known))]

    def _forget(self, place: Place, span: Span) -> None:
        heads = self._heads[place]
        for tenant in [each for each in heads if span.first <= each <= span.last]:
            del heads[tenant]

    def took(self, place: Place, taken: Sequence[Taken], most: int) -> None:
        """Note the checks that a claim of at most `most` took from a queue."""
        self._rounds[place].took(taken, most)

    def known(self, places: Sequence[Place]) -> list[int]:
        """Return the turn at which each of these queues was last seen to begin, by a look."""
        return [self._turns.get(place, _BEGINNING) for place in places]

    def look(self, places: Sequence[Place]) -> list[int]:
        """Return the turns from which to scan the queues of more urgent classes.

        A check that is added to an empty queue stands before the cursor. So these queues are scanned from
        their beginning, unless the last such scan was a moment ago.
        """
        self._looked_at = self._clock()
        return [_BEGINNING] * len(places) if self._looked_at >= self._look_at else self.known(places)

    def looked(self, places: Sequence[Place], heads: Sequence[Head]) -> None:
        """Remember the first check in each of these queues that a look found not to be empty."""
        ended = self._clock()
        if self._looked_at >= self._look_at:
            self._look_at = ended + pause_after(ended - self._looked_at, times=_LOOK_PAUSES)
            self._turns |= dict.fromkeys(places, _END)
        self._turns |= {each.place: each.turn for each in heads}
        self._remember(heads)

    def gives_up(self) -> bool:
        """Whether a worker that found nothing stops here; if not, its next claim scans the whole queues.

        Such scans take at most half of the time.
        """
        if self._is_whole or self._clock() < self._soonest_at:
            return True
        self._whole_at = 0.0
        return False
