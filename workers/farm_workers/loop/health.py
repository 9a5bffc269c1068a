"""Health step: when the farm failed at a check, or Lean crashed, did the check do it or this machine.

A full disk, a folder that is gone or a broken library fails whatever it is asked to check. So after a failure
a program is checked whose worth is known. Comes that out wrong, the machine is unwell: its checks go back
unharmed, and it takes no others until the same program comes out right again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from farm.log import logger
from farm_workers.environments.environment import Environment

_log = logger(__name__)


class Health:
    """Whether this machine is fit to check, as known programs tell."""

    def __init__(self, trial: Callable[[Environment], Sequence[str]]) -> None:
        """Ask `trial`, which checks what is known in an environment and says what came out wrong."""
        self._trial = trial
        self._lock = threading.Lock()
        self._unwell: Environment | None = None
        self._begun: dict[Environment, float] = {}  # when the newest trial was

    @property
    def is_well(self) -> bool:
        """Whether checks may be taken."""
        return self._unwell is None

    def examine(self, environment: Environment) -> bool:
        """Check what is known in an environment and return whether it comes out right; nothing is raised.

        Threads that fail together share an answer: one that was begun after they had failed.
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
        except Exception as error:  # noqa: BLE001 # the thread's edge: a machine that cannot be asked is unwell
            _log.exception("A known program could not be checked")
            return (f"{type(error).__name__}: {error}",)

    def look_again(self) -> None:
        """Find out whether a machine that was unwell has become well."""
        if (environment := self._unwell) is not None:
            self.examine(environment)
