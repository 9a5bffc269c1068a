"""Claim step, groups: prefers checks that need a loaded image over the next checks by turn.

To make an image costs more than many checks. If workers took the shuffled lines of a run by turn, each would
make every image, and make it again after evicting it. So a worker continues with checks that need the image
of its last claim, wherever they stand in the queue, then picks an image at random: two workers then rarely
pick the same one. That is unfair to the head of the queue, so every few seconds a worker claims the head and
continues with checks like it.
"""

from __future__ import annotations

import random
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from farm.pauses import pause_after
from farm.store.attempt import Claim
from farm.store.wish import Alike

#: The head of the queue is passed over for at most this many seconds.
UNFAIR_SECONDS = 5.0
#: A worker returns to at most this many groups after it has claimed the head of the queue.
_MOST = 4
#: Images have numbers below this one (`farm.assembly.images`).
_NUMBERS = 1 << 56
#: If a look for similar checks takes longer than `_CHEAP_SECONDS` on average, the next look waits `_PAUSES`
#: times the duration of the last one: the queue is full of dead tuples that PostgreSQL cannot remove yet.
#: `_NEWEST` is the weight of the newest duration in the average.
_CHEAP_SECONDS, _PAUSES, _NEWEST = 0.02, 20.0, 0.2


class ImageAffinity:
    """The groups that one worker asks for before the head of the queue; claims come one by one.

    Each class has its own groups: a higher class interrupts, but does not end the groups of this class and
    does not postpone the moment at which the head of its queue is due.
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, chance: Callable[[int], int] = random.randrange
    ) -> None:
        self._clock, self._chance = clock, chance
        self._groups: dict[int, deque[Alike]] = defaultdict(lambda: deque(maxlen=_MOST))
        self._fair_at: dict[int, float] = {}
        self._asked_at = self._from = self._mean_seconds = 0.0

    def wishes(self) -> Iterator[Alike]:
        """Yield the groups to look for, by class, until one yields checks; report each result to `found`."""
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
        """Note the checks that were claimed for a wish."""
        seconds = self._clock() - self._asked_at
        self._mean_seconds += _NEWEST * (seconds - self._mean_seconds)
        if self._mean_seconds > _CHEAP_SECONDS:
            self._from = self._asked_at + seconds + pause_after(seconds, times=_PAUSES)
        if wish in self._groups[wish.priority]:
            self._groups[wish.priority].remove(wish)
        self._go_on_with(claims)

    def took_by_turn(self, claims: Sequence[Claim]) -> None:
        """Note the checks that were claimed by turn: similar ones come next.

        By then nothing waits in the higher classes, and another environment of the same class keeps its turn.
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
            Alike(
                environment=last.environment,
                priority=last.priority,
                image=last.image,
                tenant=last.tenant,
                turn=last.turn,
            )
        )
