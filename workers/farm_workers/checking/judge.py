"""Checking step: declares `Judge`, the interface through which workers check proofs of any proof system."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Protocol

from farm.judging.job import Check
from farm.judging.report import Report
from farm_workers.box import once as box


class Judge(Protocol):
    """Judges checks in environments of one kind; thread-safe."""

    def check(
        self, check: Check, environment: Any, *, cancelled: Callable[[], bool] = box.never
    ) -> Report | Future[Report]:
        """Return the report of a check; no behaviour of a submission raises an exception.

        A judge that checks many submissions in one batch returns a Future, so that the calling thread need
        not wait for the batch.
        """

    def prewarm(self, environment: Any) -> None:
        """Begin to load the images or libraries that checks in this environment need."""

    def require_sound(self, environment: Any) -> None:
        """Judge the environment's canaries; raises FarmError if a verdict is wrong."""

    def trial(self, environment: Any) -> tuple[str, ...]:
        """Judge one canary, and return its wrong verdict as a sentence, () if the verdict is right."""

    def images(self) -> list[tuple[str, int]]:
        """Return the images that can fork: the environment and the memory in bytes of each."""

    def close(self) -> None:
        """End every process; no program may be checked after that."""
