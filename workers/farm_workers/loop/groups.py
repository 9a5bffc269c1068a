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
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

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
    """What one worker asks for before it asks for what is next by turn; its claims come one after another.

    Each class has groups of its own: a class before interrupts, and neither ends the groups of this class nor
    postpones the moment at which the head of its queue is due.
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, chance: Callable[[int], int] = random.randrange
    ) -> None:
        self._clock, self._chance = clock, chance
        self._groups: dict[int, deque[Alike]] = defaultdict(lambda: deque(maxlen=_MOST))
        self._fair_at: dict[int, float] = {}
        self._asked_at = self._from = self._mean_seconds = 0.0

    def wishes(self) -> Iterator[Alike]:
        """Yield what to ask for, by class, until something is found; give each answer to `found`."""
        for priority in sorted(self._groups):
            groups = self._groups[priority]
            if not groups:
                continue
            if self._clock() - self._fair_at.get(priority, 0.0) >= UNFAIR_SECONDS:
                return
            some = replace(groups[0], image=1 + self._chance(_NUMBERS), turn=0, exact=False)
            for group in [*groups, some]:
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
        if wish in self._groups[wish.priority]:
            self._groups[wish.priority].remove(wish)
        self._go_on_with(claims)

    def took_by_turn(self, claims: Sequence[Claim]) -> None:
        """Say what was claimed by turn: what is like it comes next.

        Then nothing waits in the classes before, and another environment of the same class keeps its turn.
        """
        if not claims:
            return
        last = claims[-1]
        self._fair_at[last.priority] = self._clock()
        for priority, groups in self._groups.items():
            for group in list(groups):
                is_over = priority < last.priority
                if is_over or (priority == last.priority and group.environment != last.environment):
                    groups.remove(group)
        self._go_on_with(claims)

    def _go_on_with(self, claims: Sequence[Claim]) -> None:
        if not claims or not claims[-1].image:
            return
        last = claims[-1]
        groups = self._groups[last.priority]
        for group in list(groups):
            if group.image == last.image:
                groups.remove(group)
        groups.appendleft(
            Alike(environment=last.environment, priority=last.priority, image=last.image, turn=last.turn)
        )
