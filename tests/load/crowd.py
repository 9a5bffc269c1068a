"""The clients of a load, in a thread with an event loop of its own: batches begin at a fixed pace."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Iterator

from tests.load.clients import WAYS, Asked, Clients
from tests.load.items import Items

BATCH = 8
#: So many batches are under way at most: what is more than that is held back, and counted.
_MOST_UNDER_WAY = 600


class Crowd(threading.Thread):
    """Asks for batches until it is told to stop, and then waits for those that are under way.

    They begin `rate` times a minute, whatever became of the earlier ones; nothing begins at a rate of 0.
    """

    def __init__(self, url: str, token: str, *, seed: int, repeats: float) -> None:
        super().__init__(name="crowd", daemon=True)
        self._url, self._token = url, token
        self._chance = random.Random(seed)
        self._items = Items(self._chance, repeats=repeats)
        self._stopping = threading.Event()
        self._ways = self._drawn()
        self.asked: list[Asked] = []
        self.held_back = 0
        self.rate = 0.0
        self.trouble: BaseException | None = None

    def stop(self) -> None:
        """Begin nothing more, and return when everything is over."""
        self._stopping.set()
        self.join()

    def run(self) -> None:
        try:
            asyncio.run(self._ask_all())
        except BaseException as error:  # the thread's edge: the run tells it
            self.trouble = error
            raise

    def capacity(self, batches: int) -> float:
        """Return how many batches a minute the farm judges when so many are asked for at once.

        For before the thread is started. As many again warm it up.
        """

        async def judged() -> float:
            clients = Clients(self._url, self._token, self._chance)
            for _ in range(2):
                begun = time.monotonic()
                await asyncio.gather(*(clients.ask(self._new("raw")) for _ in range(batches)))
                seconds = time.monotonic() - begun
            await clients.close()
            return 60 * batches / seconds

        return asyncio.run(judged())

    def _new(self, way: str) -> Asked:
        asked = WAYS[way].asked(way, self._items, BATCH)
        self.asked.append(asked)
        return asked

    def _drawn(self) -> Iterator[str]:
        yield from (name for name, way in WAYS.items() if not way.weight)
        names, weights = list(WAYS), [way.weight for way in WAYS.values()]
        while True:
            yield from self._chance.choices(names, weights)

    async def _ask_all(self) -> None:
        clients = Clients(self._url, self._token, self._chance)
        under_way = set[asyncio.Task[None]]()
        due = time.monotonic()
        while not self._stopping.is_set():
            await asyncio.sleep(min(0.5, max(0.0, due - time.monotonic())))
            if time.monotonic() < due:
                continue
            due += 60 / self.rate
            if len(under_way) >= _MOST_UNDER_WAY:
                self.held_back += 1
                continue
            task = asyncio.create_task(clients.ask(self._new(next(self._ways))))
            under_way.add(task)
            task.add_done_callback(under_way.discard)
        await asyncio.gather(*under_way)
        await clients.close()
