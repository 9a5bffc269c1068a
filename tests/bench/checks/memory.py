"""Bench step: the private memory of an image, and of each of the checks that are made of it at once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from statistics import mean

from farm_workers.box.once import never
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.images.recipe import Recipe
from farm_workers.lean.compile import LeanRunner
from farm_workers.lean.way import FORKED, Question

from farm.errors import FarmError
from farm.limits import Limits
from tests.bench.checks.figures import Figure
from tests.bench.checks.ring import Ring
from tests.bench.long import stepwise

_AT_ONCE = 8
_MOST_MIB = 40.0
_STEPS = 20


def private(ring: Ring) -> Iterator[Figure]:
    """Yield what an image of the largest header takes, and each of eight checks at once, at its peak."""
    environment = ring.larger or ring.environment
    with ring.leans() as leans, ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="memory") as pool:
        ring.say("memory")
        together = threading.Barrier(_AT_ONCE)

        def peak_mib(number: int) -> float:
            together.wait()
            return _peak_mib(leans, environment, number)

        rounds = range(0, ring.rounds * _AT_ONCE, _AT_ONCE)
        each = tuple(mean(pool.map(peak_mib, range(first, first + _AT_ONCE))) for first in rounds)
        with leans.images.lease(environment, Recipe(header=environment.header), never) as image:
            own = image.memory_kib / 1024
    yield Figure(key="memory_image", name="private memory of an image", unit="MiB", samples=(own,))
    yield Figure(
        key="memory_check",
        name=f"private memory of a check besides, {_AT_ONCE} at once",
        unit="MiB",
        samples=each,
        at_most=_MOST_MIB,
    )


def _peak_mib(leans: LeanRunner, environment: LeanEnvironment, number: int) -> float:
    program = stepwise(environment.header, number, _STEPS)
    with leans.compiled(Question.of(program.text, environment, Limits(), never)) as reply:
        if reply.module is None or reply.report.way != FORKED:
            raise FarmError(f"the bench's program was checked {reply.report.way}, and left no module")
        return reply.report.run.peak_memory_kib / 1024
