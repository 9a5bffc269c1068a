"""Checking step: what judges the checks of one proof system."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Protocol

from farm.judging.job import Check
from farm.judging.report import Report
from farm_workers.box import once as box


class Judge(Protocol):
    """Judges checks in environments of one kind, its own; for many threads."""

    def check(
        self, check: Check, environment: Any, *, cancelled: Callable[[], bool] = box.never
    ) -> Report | Future[Report]:
        """Report what happened; nothing is raised for what a submission does.

        A Future is for a report that comes when others have been asked together: the thread that asked does
        not wait for it.
        """

    def prewarm(self, environment: Any) -> None:
        """Begin to make ready what checks in this environment will need."""

    def require_sound(self, environment: Any) -> None:
        """Judge the environment's canaries; raises FarmError when one comes out wrong."""

    def trial(self, environment: Any) -> tuple[str, ...]:
        """Judge one canary, and say what is wrong with what came out."""

    def images(self) -> list[tuple[str, int]]:
        """Return the processes that are ready to fork, as an environment and bytes each."""

    def close(self) -> None:
        """End every process; nothing may be checked any more."""
