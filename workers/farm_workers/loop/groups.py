"""Claim step, groups: what needs the image that this worker has is claimed before what is next by turn.

To make an image costs more than many checks. Where the lines of a run are shuffled, each worker that took
them by turn would make every image, and make it again when it had no room to keep it. So a worker goes on
with what needs the image of its last claim, wherever that stands in the queue, then picks an image at random:
others that do the same are hardly ever at the same one. That is unfair to what waits at the head of the
queue, so every few seconds a worker takes that, and goes on with what is like it.
"""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from farm.judging.states import Priority
from farm.store.attempt import Alike, Claim

#: For so many seconds at most what is next by turn may be passed over.
UNFAIR_SECONDS = 5.0
#: So many groups are gone on with: what was passed over for what is next by turn is taken up again.
_MOST = 4
#: Images have numbers below this one (`farm.assembly.images`).
_NUMBERS = 1 << 56
#: Where looks for what is alike take longer than this in the mean, none is made for so many times what the
#: last one took: the queue is full of entries that PostgreSQL must still keep. How much the newest counts.
_CHEAP_SECONDS, _PAUSES, _NEWEST = 0.02, 20.0, 0.2


class Groups:
    """What one worker asks for before it asks for what is next by turn; its claims come one after another."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, chance: Callable[[int], int] = random.randrange
    ) -> None:
        self._clock, self._chance = clock, chance
        self._groups: deque[Alike] = deque(maxlen=_MOST)
        self._fair_at = self._asked_at = self._from = self._mean_seconds = 0.0
        #: The class that the worker goes on with, the first one before it has claimed anything.
        self.priority: int = Priority.INTERACTIVE

    def wishes(self) -> Iterator[Alike]:
        """Yield what to ask for, until something is found; `found` is to be told of each answer."""
        now = self._clock()
        if not self._groups or now - self._fair_at >= UNFAIR_SECONDS:
            return
        last = self._groups[0]
        for group in [*self._groups, replace(last, image=1 + self._chance(_NUMBERS), turn=0, exact=False)]:
            self._asked_at = self._clock()
            if self._asked_at < self._from:
                return
            yield group

    def found(self, wish: Alike, claims: Sequence[Claim]) -> None:
        """Say what was claimed of a wish."""
        seconds = self._clock() - self._asked_at
        self._mean_seconds += _NEWEST * (seconds - self._mean_seconds)
        if self._mean_seconds > _CHEAP_SECONDS:
            self._from = self._asked_at + seconds * (1 + _PAUSES)
        if wish in self._groups:
            self._groups.remove(wish)
        self._go_on_with(claims)

    def took_by_turn(self, claims: Sequence[Claim]) -> None:
        """Say what was claimed by turn: what is like it comes next, and what is of another queue does not.

        A class before only interrupts: the groups of this class stay, and so does the moment at which the
        head of its queue is due.
        """
        if claims and self._groups and claims[-1].priority < self.priority:
            return
        self._fair_at = self._clock()
        if claims:
            self.priority = claims[-1].priority
        for group in list(self._groups):
            if claims and (group.environment, group.priority) != (
                claims[-1].environment,
                claims[-1].priority,
            ):
                self._groups.remove(group)
        self._go_on_with(claims)

    def _go_on_with(self, claims: Sequence[Claim]) -> None:
        if not claims or not claims[-1].image:
            return
        last = claims[-1]
        for group in list(self._groups):
            if group.image == last.image:
                self._groups.remove(group)
        self._groups.appendleft(
            Alike(environment=last.environment, priority=last.priority, image=last.image, turn=last.turn)
        )
