"""Health step: decides whether a check or this machine caused a failure of the farm or a crash of Lean.

A full disk, a missing folder or a broken library fails every check. So after a failure the worker checks a
program whose verdict is known. If that verdict is wrong, the environment is unfit on this machine: its checks
go back without a counted attempt, and the worker claims no others of it until the same program gets the right
verdict again. Checks of its other environments go on.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from farm.log import logger
from farm.store.environments import UNFIT, Pending
from farm_workers.environments.environment import Environment

#: Pauses between two trials of an unfit environment: the first one, and the longest.
FIRST_PAUSE_SECONDS, MOST_PAUSE_SECONDS = 1.0, 60.0

_log = logger(__name__)


@dataclass(slots=True)
class _Unfit:
    """An environment whose known program came out wrong; times are of the monotonic clock."""

    environment: Environment
    reason: str
    since: float
    pause: float
    retry_at: float
    is_on_trial: bool = False


class EnvironmentHealth:
    """The environments that this machine is fit to check, as known programs show; thread-safe."""

    def __init__(self, trial: Callable[[Environment], Sequence[str]]) -> None:
        """Keep `trial`, which checks an environment's known programs and names the wrong verdicts."""
        self._trial = trial
        self._lock = threading.Lock()
        self._trials: dict[str, threading.Lock] = defaultdict(threading.Lock)
        self._unfit: dict[str, _Unfit] = {}
        self._begun: dict[Environment, float] = {}  # when the newest trial was

    def is_fit(self, environment: str) -> bool:
        """Return whether checks of the environment with this name may be taken."""
        return environment not in self._unfit

    def unfit(self) -> list[Pending]:
        """Return the environments that are unfit, with reasons."""
        now = time.monotonic()
        with self._lock:
            return [
                Pending(
                    name=name,
                    kind=each.environment.kind,
                    state=UNFIT,
                    seconds=round(now - each.since, 1),
                    reason=each.reason,
                    retry_seconds=None if each.is_on_trial else round(max(0.0, each.retry_at - now), 1),
                )
                for name, each in self._unfit.items()
            ]

    def examine(self, environment: Environment) -> bool:
        """Check an environment's known programs and return whether all verdicts are right; nothing is raised.

        Threads that fail together share the result of a trial that began after they had failed.
        """
        failed_at = time.monotonic()
        with self._lock:
            trial = self._trials[environment.name]
        with trial:
            if self._begun.get(environment, 0.0) <= failed_at:
                self._begun[environment] = time.monotonic()
                self._note(environment, self._wrong(environment))
            return self.is_fit(environment.name)

    def _wrong(self, environment: Environment) -> Sequence[str]:
        try:
            return self._trial(environment)
        except Exception as error:  # noqa: BLE001 # the thread's edge: a failing trial makes it unfit
            _log.exception("A known program could not be checked")
            return (f"{type(error).__name__}: {error}",)

    def _note(self, environment: Environment, wrong: Sequence[str]) -> None:
        """Remember what a trial showed, and log a change."""
        name, now = environment.name, time.monotonic()
        with self._lock:
            known = self._unfit.get(name)
            if not wrong:
                self._unfit.pop(name, None)
            elif known is None:
                self._unfit[name] = _Unfit(
                    environment=environment,
                    reason="; ".join(wrong),
                    since=now,
                    pause=FIRST_PAUSE_SECONDS,
                    retry_at=now + FIRST_PAUSE_SECONDS,
                )
            else:
                known.reason, known.is_on_trial = "; ".join(wrong), False
                known.pause = min(2 * known.pause, MOST_PAUSE_SECONDS)
                known.retry_at = now + known.pause
        if wrong and known is None:
            _log.error("%s is unfit, and none of its checks is taken: %s", name, "; ".join(wrong))
        if not wrong and known is not None:
            _log.warning("%s is fit again, and its checks are taken", name)

    def look_again(self) -> None:
        """Begin to examine again, each in a thread of its own, the unfit environments that are due."""
        now = time.monotonic()
        with self._lock:
            due = [each for each in self._unfit.values() if not each.is_on_trial and each.retry_at <= now]
            for each in due:
                each.is_on_trial = True
        for each in due:
            name = f"examine {each.environment.name}"
            threading.Thread(target=self.examine, args=(each.environment,), name=name, daemon=True).start()
