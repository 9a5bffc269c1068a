"""Bench step: audit and replay of a small module, in a cell of their own."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator

from farm_workers.bench.measure import BenchProgram, program
from farm_workers.box.copy import as_file
from farm_workers.box.once import never
from farm_workers.images.forking import watched
from farm_workers.images.image import Image
from farm_workers.images.recipe import Recipe
from farm_workers.lean.compile import LeanRunner
from farm_workers.lean.way import Question

from farm.errors import FarmError
from farm.limits import Limits
from tests.bench.checks.figures import Figure
from tests.bench.checks.processes import tree_cpu_seconds
from tests.bench.checks.ring import Ring

_MOST_MS = 12.0
#: How often a module is sealed for each round of the others.
_TIMES = 10


def cost(ring: Ring) -> Iterator[Figure]:
    """Yield the wall time and the processor time of sealing a small module, one after the other."""
    given = program(ring.header, 0)
    assert given.challenge is not None
    with ring.leans() as leans:
        ring.say("seals")
        module = _module(ring, leans, given)
        challenge = _module(ring, leans, BenchProgram(text=given.challenge.program, worth=given.worth))
        with leans.images.lease(ring.environment, Recipe(header=ring.header), never) as image:
            _sealed(ring, image, module, challenge)
            before = tree_cpu_seconds()
            took = [_sealed(ring, image, module, challenge) for _ in range(_TIMES * ring.rounds)]
            around = tree_cpu_seconds() - before
    name = "audit and replay of a small module, cells included"
    wall, inside = zip(*took, strict=True)
    cpu = (around + sum(inside)) / len(inside) * 1000
    yield Figure(key="seal", name=name, unit="ms", samples=wall, at_most=_MOST_MS)
    yield Figure(key="seal_cpu", name=f"{name}, processor time", unit="ms", samples=(cpu,))


def _module(ring: Ring, leans: LeanRunner, given: BenchProgram) -> bytes:
    with leans.compiled(Question.of(given.text, ring.environment, Limits(), never)) as reply:
        if reply.module is None:
            raise FarmError("the bench's program left no module")
        return reply.module.read()


def _sealed(ring: Ring, image: Image, module: bytes, challenge: bytes) -> tuple[float, float]:
    """Seal a module; return the milliseconds that it takes, and the seconds of a processor in its cell."""
    request = {"with_challenge": True, "request": {"replay": True}}
    begun = time.perf_counter()
    with (
        as_file(module) as one,
        as_file(challenge) as other,
        contextlib.closing(image.seal(request, Limits(), [one, other])) as fork,
    ):
        run = watched(fork, Limits(), ring.isolation)
    wall = time.perf_counter() - begun
    if run.limit or not json.loads(run.stdout)["accepted"]:
        raise FarmError(f"the bench's module was not sealed: {run.stdout[:500]!r}")
    return wall * 1000, run.cpu_seconds
