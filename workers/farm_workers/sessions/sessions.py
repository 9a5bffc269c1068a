"""Session step, all sessions of a worker: opens each at its first request, and ends idle ones."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.images.images import Images
from farm_workers.sessions.session import Refusal, Session, unexplained

#: Seconds after which an idle session's processes end.
IDLE_SECONDS = 60.0
#: The most sessions of a worker.
MOST_SESSIONS = 64
#: Processor seconds since its last step after which a session is ended: holders of states only wait, so
#: whatever works was left behind by a tactic. On a busy machine that takes many sweeps to come together.
IDLE_CPU_SECONDS = 0.5


@dataclass(slots=True, eq=False)
class _Kept:
    """A session, or the place of one that is being opened; `users` are the steps in it."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    session: Session | None = None
    users: int = 0
    used_at: float = field(default_factory=time.monotonic)
    rested_cpu: float | None = None


class Sessions:
    """The sessions of one worker; thread-safe. `most_mib` is the memory that all may take together.

    `refusal` returns why Lean cannot import the header of a program in an environment, "" if it can.
    """

    def __init__(
        self,
        images: Images[LeanEnvironment],
        *,
        most_mib: int,
        most: int = MOST_SESSIONS,
        refusal: Refusal = unexplained,
    ) -> None:
        self._images, self._refusal = images, refusal
        self._most, self._most_kib = most, most_mib << 10
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, _Kept] = OrderedDict()

    @contextlib.contextmanager
    def using(
        self,
        name: str,
        environment: LeanEnvironment,
        program: Callable[[], str],
        cancelled: Callable[[], bool],
    ) -> Iterator[Session]:
        """Give the session of a name, which is opened on its program if it is not there.

        Raises NoSession and BoxFailed.
        """
        kept = self._taken(name)
        try:
            with kept.lock:
                if kept.session is not None and kept.session.is_over:
                    kept.session.close()
                    kept.session = None
                if kept.session is None:
                    self._make_room()
                    kept.session = Session(
                        program(), environment, self._images, cancelled, refusal=self._refusal
                    )
            yield kept.session
        finally:
            with self._lock:
                kept.users -= 1
                kept.used_at, kept.rested_cpu = time.monotonic(), None
                if kept.session is None and not kept.users:
                    self._kept.pop(name, None)

    def _taken(self, name: str) -> _Kept:
        with self._lock:
            kept = self._kept.setdefault(name, _Kept())
            self._kept.move_to_end(name)
            kept.users += 1
        return kept

    def end(self, name: str) -> None:
        """End a session that no step uses; the others end when they are idle."""
        with self._lock:
            kept = self._kept.get(name)
            if kept is None or kept.users:
                return
            del self._kept[name]
        if kept.session is not None:
            kept.session.close()

    def sweep(self) -> None:
        """End the sessions that were idle for a minute, and those whose processes do not rest."""
        now = time.monotonic()
        with self._lock:
            unused = [(name, each) for name, each in self._kept.items() if not each.users]
        for name, each in unused:
            if now - each.used_at > IDLE_SECONDS or _works(each):
                self.end(name)

    def _make_room(self) -> None:
        """End unused sessions, the least recently used first, while there are too many or they are large."""
        with self._lock:
            opened = [(name, each) for name, each in self._kept.items() if each.session is not None]
        sizes = {name: each.session.usage_kib() for name, each in opened if each.session is not None}
        number, kib = len(sizes), sum(sizes.values())
        for name, each in opened:
            if number < self._most and kib < self._most_kib:
                return
            if not each.users:
                self.end(name)
                number, kib = number - 1, kib - sizes[name]

    def __len__(self) -> int:
        """Return the number of sessions."""
        with self._lock:
            return len(self._kept)

    def close(self) -> None:
        """End all sessions."""
        with self._lock:
            ending = list(self._kept.values())
            self._kept.clear()
        for each in ending:
            if each.session is not None:
                each.session.close()


def _works(kept: _Kept) -> bool:
    """Whether the processes of an unused session exceed its limits, or worked since its last step."""
    if kept.session is None:
        return False
    spent = kept.session.cpu_seconds()
    if kept.rested_cpu is None:
        kept.rested_cpu = spent
    return spent - kept.rested_cpu > IDLE_CPU_SECONDS or kept.session.is_too_large()
