"""All that a worker works with, and who of its threads is at work."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from farm.store.environments import Pending, Served
from farm.store.transitions import Store
from farm.version import VERSION
from farm_workers.checking.systems import Judges
from farm_workers.environments.environment import Environment
from farm_workers.loop.claim import Claims
from farm_workers.loop.health import Health
from farm_workers.loop.later import Later
from farm_workers.loop.leases import Leases
from farm_workers.loop.record import Recorder

#: What a worker asks the store at once: claims, verdicts, heartbeat and sweep.
CONNECTIONS = 4


class Threads:
    """The threads of a worker that carry out checks: how many are at work, and whether they may go on."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.busy = 0
        self.stopping = False
        self._lock = threading.Lock()
        self._own: list[threading.Thread] = []

    @contextmanager
    def at_work(self) -> Iterator[bool]:
        """Count this thread as being at work inside the block, if there is a place for it; yields whether.

        There is none when Redis is back, and calls threads while those that began without it still work.
        """
        with self._lock:
            has_place = self.busy < self.size
            self.busy += has_place
        try:
            yield has_place
        finally:
            with self._lock:
                self.busy -= has_place

    def begin(self, work: Callable[[], None]) -> None:
        """Have a thread for each free place do this, without a call."""
        begun = [threading.Thread(target=work, name="uncalled") for _ in range(self.size - self.busy)]
        self._own = [thread for thread in self._own if thread.is_alive()] + begun
        for thread in begun:
            thread.start()

    def wait(self) -> None:
        """Wait until the threads that were not called are done."""
        for thread in self._own:
            thread.join()

    @property
    def has_idle(self) -> bool:
        """Whether a thread could begin a check now."""
        return self.busy < self.size and not self.stopping


@dataclass(frozen=True, kw_only=True, slots=True)
class Context:
    """All that a worker works with; `calling` is set when a thread, here or elsewhere, should be called."""

    store: Store
    environments: dict[str, Environment]
    judges: Judges
    name: str
    lease_seconds: float
    threads: Threads
    leases: Leases
    claims: Claims
    recorder: Recorder
    health: Health
    later: Later
    calling: threading.Event = field(default_factory=threading.Event)
    #: When this worker began, in seconds since 1970.
    since: float = field(default_factory=time.time)
    #: Returns the environments that this worker is configured with and does not serve.
    pending: Callable[[], Sequence[Pending]] = tuple

    def serve(self, environment: Environment) -> None:
        """Take checks of this environment, too, from now on."""
        self.environments[environment.name] = environment
        self.claims.serve(environment.name, environment.tiers)

    @property
    def fit(self) -> dict[str, Environment]:
        """The environments of which checks may be taken."""
        return {name: each for name, each in list(self.environments.items()) if self.health.is_fit(name)}

    @property
    def is_well(self) -> bool:
        """Whether checks may be taken of any environment."""
        return bool(self.fit) or not self.environments

    def waiting(self) -> list[str]:
        """Return the environments that have checks in their queue which this worker can do."""
        served = tiers(self.fit)
        return self.store.waiting(list(served), served)

    def served(self) -> list[Served]:
        """Return the environments this worker serves and is fit for, as the store knows them."""
        return [
            Served(
                name=e.name,
                digest=e.digest,
                toolchain=e.toolchain,
                checker=e.second,
                tiers=e.tiers,
                checker_version=VERSION,
                kind=e.kind,
            )
            for e in self.fit.values()
        ]


def tiers(environments: Mapping[str, Environment]) -> dict[str, Sequence[str]]:
    """Return the tiers that can be had in each environment."""
    return {name: environment.tiers for name, environment in list(environments.items())}
