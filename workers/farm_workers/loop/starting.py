"""Starting step: examines each environment by itself, and serves it as soon as it is found fit.

This module is the authority for the state of an environment on a worker: starting, serving, or unfit with a
reason and the time of the next examination. The heartbeat stores that state; metrics and readiness read it.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from farm.errors import FarmError, SettingsError
from farm.log import logger
from farm.store.environments import STARTING, UNFIT, Pending
from farm_workers.environments.environment import Environment
from farm_workers.machine.environments import Configured

#: At most `_AT_ONCE` examinations run at once. One that takes longer than `_LONG_SECONDS` is not counted: a
#: library that takes minutes, or a checker that never ends, must not delay the others.
_AT_ONCE, _LONG_SECONDS = 2, 15.0
#: How often it looks for an examination that is due.
_LOOK_SECONDS = 0.5
#: Pauses between two examinations of an unfit environment: the first one, and the longest.
FIRST_RETRY_SECONDS, MOST_RETRY_SECONDS = 15.0, 300.0

_log = logger(__name__)


def _ignore(_environment: Environment | None) -> None:
    """Do nothing."""


def _unchanged(environment: Environment) -> Environment:
    return environment


@dataclass(slots=True)
class _Known:
    """The state of one environment that is not served; times are of the monotonic clock."""

    find: Callable[[], Environment]
    kind: str
    since: float
    state: str = STARTING
    reason: str = ""
    begun_at: float | None = None
    retry_at: float = -math.inf
    failures: int = 0
    is_table_wrong: bool = False


class Starting:
    """Examines the environments of a worker side by side, and those that are unfit again and again.

    `prepare` returns an environment as it is to be served, `examine` raises FarmError for one that is not
    fit, and `afterwards` is called when it is served.
    """

    def __init__(
        self,
        configured: Mapping[str, Configured],
        *,
        examine: Callable[[Environment], None],
        prepare: Callable[[Environment], Environment] = _unchanged,
        afterwards: Callable[[Environment], None] = _ignore,
    ) -> None:
        self._examine, self._prepare, self._afterwards = examine, prepare, afterwards
        self._found: Callable[[Environment], None] = _ignore
        self._serve: Callable[[Environment], None] = _ignore
        self._changed_to: Callable[[Environment | None], None] = _ignore
        now = time.monotonic()
        self._changed = threading.Condition()
        self._pending = {
            name: _Known(find=each.find, kind=each.kind, since=now) for name, each in configured.items()
        }
        self._has_found, self._is_ending = False, False
        self._thread = threading.Thread(target=self._run, name="starting", daemon=True)

    def start(
        self,
        *,
        found: Callable[[Environment], None],
        serve: Callable[[Environment], None],
        changed: Callable[[Environment | None], None],
    ) -> None:
        """Begin, in threads of its own.

        `found` is called when the table of an environment was read, `serve` when the environment is fit, and
        `changed` after each change of a state, with the environment that is served since.
        """
        self._found, self._serve, self._changed_to = found, serve, changed
        self._thread.start()

    def stop(self) -> None:
        """Begin no further examination; those that run end with their processes."""
        with self._changed:
            self._is_ending = True
            self._changed.notify_all()

    def wait_for_one(self) -> None:
        """Return when the table of one environment was read; raises SettingsError where all are wrong."""
        with self._changed:
            self._changed.wait_for(lambda: self._has_found or self._is_hopeless())
            if not self._has_found:
                reasons = "; ".join(each.reason for each in self._pending.values())
                raise SettingsError(f"no environment is usable: {reasons}")

    def _is_hopeless(self) -> bool:
        return all(each.is_table_wrong for each in self._pending.values())

    def pending(self) -> list[Pending]:
        """Return the environments that are not served, and their states."""
        now = time.monotonic()
        with self._changed:
            return [
                Pending(
                    name=name,
                    kind=each.kind,
                    state=each.state,
                    seconds=round(now - each.since, 1),
                    reason=each.reason,
                    retry_seconds=_until(each, now),
                )
                for name, each in self._pending.items()
            ]

    def _run(self) -> None:
        with self._changed:
            while self._pending and not self._is_ending:
                now = time.monotonic()
                for name in self._due(now):
                    self._pending[name].begun_at = now
                    threading.Thread(
                        target=self._try, args=(name,), name=f"examine {name}", daemon=True
                    ).start()
                self._changed.wait(_LOOK_SECONDS)

    def _due(self, now: float) -> list[str]:
        """Return the environments whose examination begins now."""
        running = [now - each.begun_at for each in self._pending.values() if each.begun_at is not None]
        room = _AT_ONCE - sum(seconds < _LONG_SECONDS for seconds in running)
        waiting = [n for n, each in self._pending.items() if each.begun_at is None and each.retry_at <= now]
        return waiting[: max(0, room)]

    def _try(self, name: str) -> None:
        known, began = self._pending[name], time.monotonic()
        environment = None
        try:
            environment = known.find()
            self._was_found(environment)
            environment = self._prepare(environment)
            self._examine(environment)
            self._serve(environment)
        except Exception as error:  # noqa: BLE001 # the thread's edge: the environment is tried again
            if not isinstance(error, FarmError | OSError):
                _log.exception("An environment could not be examined")
            self._failed(name, str(error) or type(error).__name__, is_table_wrong=environment is None)
            return
        with self._changed:
            del self._pending[name]
            self._changed.notify_all()
        tiers = ", ".join(environment.tiers)
        seconds = time.monotonic() - began
        _log.info("%s (%s, tiers %s) is fit after %.1f s", name, environment.toolchain, tiers, seconds)
        self._changed_to(environment)
        self._afterwards(environment)

    def _was_found(self, environment: Environment) -> None:
        self._found(environment)
        with self._changed:
            self._has_found = True
            self._changed.notify_all()

    def _failed(self, name: str, reason: str, *, is_table_wrong: bool) -> None:
        with self._changed:
            known, now = self._pending[name], time.monotonic()
            pause = min(FIRST_RETRY_SECONDS * 2**known.failures, MOST_RETRY_SECONDS)
            known.failures += 1
            if known.state != UNFIT:
                known.state, known.since = UNFIT, now
            known.reason, known.begun_at, known.retry_at = reason, None, now + pause
            known.is_table_wrong = is_table_wrong
            self._changed.notify_all()
        _log.error("Not serving: %s; it is examined again in %.0f s", reason, pause)
        self._changed_to(None)


def _until(known: _Known, now: float) -> float | None:
    """Return the seconds until the next examination of an unfit environment."""
    if known.state != UNFIT or known.begun_at is not None:
        return None
    return round(max(0.0, known.retry_at - now), 1)
