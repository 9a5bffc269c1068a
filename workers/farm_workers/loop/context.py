"""The context of a worker: its store, leases and checker, and the count of its occupied worker slots."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from farm.store.environments import Pending, Served
from farm.store.transitions import Store
from farm.version import farm_version
from farm_workers.environments.environment import Environment
from farm_workers.loop.claim import Claims
from farm_workers.loop.health import EnvironmentHealth
from farm_workers.loop.leases import Leases
from farm_workers.loop.pending_reports import PendingReports
from farm_workers.loop.record import Recorder
from farm_workers.machine.judges import Judges

#: Connections of a worker's pool, one for each concurrent use: claims, verdicts, heartbeat, sweep.
CONNECTIONS = 4


class Threads:
    """The worker slots: how many are occupied, and whether their threads may continue.

    Checks take a slot for as long as checks wait, steps of sessions one at a time. A step that finds none
    free gets the slot of the next check that ends, and gives it back: so the two take turns.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.busy = 0
        self.stopping = False
        self._asking = 0
        self._lock = threading.Lock()
        self._queue: deque[threading.Event] = deque()
        self._own: list[threading.Thread] = []

    @contextmanager
    def occupy_slot(self) -> Iterator[bool]:
        """Occupy a worker slot inside the block; yields False if none is free.

        None is free when Redis is back and calls threads while those that began without it still work.
        """
        with self._lock:
            has_place = self.busy < self.size and not self._queue
            self.busy += has_place
        try:
            yield has_place
        finally:
            if has_place:
                self._release()

    @contextmanager
    def ask(self) -> Iterator[None]:
        """Count the slot of this thread as idle inside the block, in which it asks PostgreSQL for a check."""
        with self._lock:
            self._asking += 1
        try:
            yield
        finally:
            with self._lock:
                self._asking -= 1

    @property
    def at_work(self) -> int:
        """The number of occupied slots whose threads do not wait for PostgreSQL."""
        return max(0, self.busy - self._asking)

    @contextmanager
    def take_turn(self) -> Iterator[None]:
        """Occupy a slot inside the block, after waiting for one."""
        self._acquire()
        try:
            yield
        finally:
            self._release()

    def give_way(self) -> None:
        """Let those who wait for this thread's slot have it first; returns at once if none does."""
        if self._queue:
            self._release()
            self._acquire()

    def _acquire(self) -> None:
        with self._lock:
            if self.busy < self.size and not self._queue:
                self.busy += 1
                return
            turn = threading.Event()
            self._queue.append(turn)
        turn.wait()

    def _release(self) -> None:
        """Hand the slot to the one who waits longest, or free it."""
        with self._lock:
            if self._queue:
                self._queue.popleft().set()
            else:
                self.busy -= 1

    def begin(self, work: Callable[[], None]) -> None:
        """Start `work` in a thread for each free slot, without a call."""
        begun = [threading.Thread(target=work, name="uncalled") for _ in range(self.size - self.busy)]
        self._own = [thread for thread in self._own if thread.is_alive()] + begun
        for thread in begun:
            thread.start()

    def wait(self) -> None:
        """Wait until these threads are done."""
        for thread in self._own:
            thread.join()

    @property
    def has_idle(self) -> bool:
        """Whether a slot is free."""
        return self.busy < self.size and not self.stopping


@dataclass(frozen=True, kw_only=True, slots=True)
class Context:
    """Everything that a worker uses; `calling` is set when an idle thread should be called."""

    store: Store
    environments: dict[str, Environment]
    judges: Judges
    name: str
    lease_seconds: float
    threads: Threads
    leases: Leases
    claims: Claims
    recorder: Recorder
    health: EnvironmentHealth
    pending_reports: PendingReports
    calling: threading.Event = field(default_factory=threading.Event)
    #: When this worker began, in seconds since 1970.
    since: float = field(default_factory=time.time)
    #: Returns the environments that this worker is configured with and does not serve.
    pending: Callable[[], Sequence[Pending]] = tuple

    def serve(self, environment: Environment) -> None:
        """Take checks of this environment as well from now on."""
        self.environments[environment.name] = environment
        self.claims.serve(environment.name, environment.tiers, environment.kind)

    @property
    def fit(self) -> dict[str, Environment]:
        """The environments of which checks may be taken."""
        return {name: each for name, each in list(self.environments.items()) if self.health.is_fit(name)}

    @property
    def is_well(self) -> bool:
        """Whether checks may be taken of any environment."""
        return bool(self.fit) or not self.environments

    def waiting(self) -> list[str]:
        """Return the served environments with waiting checks that this worker can do."""
        served = tiers(self.fit)
        return self.store.waiting(list(served), served, kinds(self.fit))

    def served(self) -> list[Served]:
        """Return the environments that this worker serves and is fit for, in the form of the store."""
        return [
            Served(
                name=e.name,
                digest=e.digest,
                toolchain=e.toolchain,
                checker=e.second,
                tiers=e.tiers,
                checker_version=farm_version(),
                kind=e.kind,
            )
            for e in self.fit.values()
        ]


def kinds(environments: Mapping[str, Environment]) -> dict[str, str]:
    """Return the proof system of each environment."""
    return {name: each.kind for name, each in environments.items()}


def tiers(environments: Mapping[str, Environment]) -> dict[str, Sequence[str]]:
    """Return the available tiers of each environment."""
    return {name: environment.tiers for name, environment in list(environments.items())}
