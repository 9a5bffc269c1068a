"""The worker step: claim a check, check it with no transaction open, judge it, record the verdict."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from farm import __version__
from farm.errors import ServerDown
from farm.log import logger
from farm.store import MAX_ATTEMPTS, Claim, Decision, Served, Store
from farm.verdict import Outcome, Reason, Report, judge
from workers.checker import Checker
from workers.environments import LeanEnvironment

_T = TypeVar("_T")

_log = logger(__name__)

#: How long to wait before asking a server again that did not answer.
RETRY_SECONDS = 1.0


class Held:
    """The checks this worker holds, shared between the threads that run them and the heartbeat."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._attempts: dict[int, int] = {}
        self._lost: set[int] = set()

    @contextmanager
    def holding(self, claim: Claim) -> Iterator[Callable[[], bool]]:
        """Hold a claim inside the block; yields a function that says whether it was lost meanwhile."""
        with self._lock:
            self._attempts[claim.check_id] = claim.attempt
        try:
            yield lambda: claim.check_id in self._lost
        finally:
            with self._lock:
                del self._attempts[claim.check_id]
                self._lost.discard(claim.check_id)

    def attempts(self) -> dict[int, int]:
        """Return the attempt held of each check."""
        with self._lock:
            return dict(self._attempts)

    def lose(self, check_ids: frozenset[int]) -> None:
        """Say which checks this worker no longer holds, so that their boxes end."""
        with self._lock:
            self._lost |= check_ids & self._attempts.keys()


@dataclass(frozen=True, kw_only=True, slots=True)
class Desk:
    """All that a worker works with."""

    store: Store
    environments: Mapping[str, LeanEnvironment]
    checker: Checker
    name: str
    lease_seconds: float
    held: Held = field(default_factory=Held)

    def served(self) -> list[Served]:
        """Return the environments this worker serves, as the store knows them."""
        return [
            Served(
                name=e.name,
                digest=e.digest,
                toolchain=e.toolchain,
                checker=e.checker.name if e.checker else None,
                audited=e.audited,
            )
            for e in self.environments.values()
        ]


def verify(desk: Desk, check_id: int) -> None:
    """Carry out one check; nothing happens when it is not there to be taken."""
    claim = insist(lambda: _claim(desk, check_id))
    if claim is None:
        return
    with desk.held.holding(claim) as lost:
        environment = desk.environments[claim.environment]
        report = desk.checker.check(claim.check, environment, cancelled=lost)
        if not lost():
            insist(lambda: _record(desk, claim, report))


def insist(step: Callable[[], _T]) -> _T:
    """Do a step again until PostgreSQL answers: a server that is down holds a worker up, it loses nothing."""
    while True:
        try:
            return step()
        except ServerDown as error:
            _log.warning("%s; waiting", error)
            time.sleep(RETRY_SECONDS)


def _claim(desk: Desk, check_id: int) -> Claim | None:
    return desk.store.claim(
        check_id, worker=desk.name, served=list(desk.environments), lease_seconds=desk.lease_seconds
    )


def _record(desk: Desk, claim: Claim, report: Report) -> None:
    verdict = judge(report)
    log = logger(__name__, {"run_id": claim.run_id, "check_id": claim.check_id, "attempt": claim.attempt})
    again = verdict.outcome is Outcome.JUDGE_ERROR and verdict.reason is not Reason.BAD_CHALLENGE
    if again and claim.attempt < MAX_ATTEMPTS:
        log.warning("The farm failed and will try again: %s", verdict.detail)
        desk.store.give_back(claim, outcome=verdict.outcome, detail=verdict.detail)
        return
    environment = desk.environments[claim.environment]
    decision = Decision(
        report=report,
        verdict=verdict,
        digest=environment.digest,
        toolchain=environment.toolchain,
        checker_version=__version__,
    )
    if desk.store.finish(claim, decision):
        log.debug("Judged %s (%s) in %.2f s", verdict.outcome, verdict.reason, report.wall_seconds)
    else:
        log.warning("A verdict came too late and was refused: the lease had run out")
