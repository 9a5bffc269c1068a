"""Health step: decides whether a check or this machine caused a failure of the farm or a crash of Lean.

A full disk, a missing folder or a broken library fails every check. So after a failure the worker checks a
program whose verdict is known. If that verdict is wrong, the machine is unhealthy: its checks go back without
a counted attempt, and it claims no others until the same program gets the right verdict again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from farm.log import logger
from farm_workers.environments.environment import Environment

_log = logger(__name__)


class Health:
    """The health of this machine, as measured by checking known programs."""

    def __init__(self, trial: Callable[[Environment], Sequence[str]]) -> None:
        """Keep `trial`, which checks an environment's known programs and names the wrong verdicts."""
        self._trial = trial
        self._lock = threading.Lock()
        self._unwell: Environment | None = None
        self._begun: dict[Environment, float] = {}  # when the newest trial was

    @property
    def is_well(self) -> bool:
        """Whether checks may be claimed."""
        return self._unwell is None

    def examine(self, environment: Environment) -> bool:
        """Check an environment's known programs and return whether all verdicts are right; nothing is raised.

        Threads that fail together share the result of a trial that began after they had failed.
        """
        failed_at = time.monotonic()
        with self._lock:
            if self._begun.get(environment, 0.0) > failed_at:
                return self._unwell != environment
            self._begun[environment] = time.monotonic()
            wrong = self._wrong(environment)
            if wrong and self.is_well:
                _log.error("This worker is unhealthy and takes no checks: %s", "; ".join(wrong))
            if not wrong and not self.is_well:
                _log.warning("This worker is healthy again and takes checks")
            self._unwell = environment if wrong else None
            return not wrong

    def _wrong(self, environment: Environment) -> Sequence[str]:
        try:
            return self._trial(environment)
        except Exception as error:  # noqa: BLE001 # the thread's edge: if the trial fails, so does the machine
            _log.exception("A known program could not be checked")
            return (f"{type(error).__name__}: {error}",)

    def look_again(self) -> None:
        """Examine an unhealthy machine again."""
        if (environment := self._unwell) is not None:
            self.examine(environment)
