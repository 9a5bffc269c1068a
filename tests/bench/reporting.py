"""Bench step, `farm report`: seconds and memory on many lines, with its page and all its parts."""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from farm.errors import FarmError
from farm.runs.submit import submit
from tests.bench.around.site import FarmAtWork, farm_at_work, options
from tests.bench.checks.figures import Figure
from tests.bench.checks.processes import peak_mib
from tests.evaluations import PROVED, REJECTED, TIMEOUT, give

#: Bars for 100 000 lines.
_SECONDS, _MIB = 5.0, 200.0
_ROUNDS = 3
#: Seconds between two looks at a report's memory.
_LOOK_SECONDS = 0.02
_GENERATION = "We note that the left side is linear in both unknowns. " * 18


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """So many problems with so many samples each."""

    problems: int
    samples: int

    @property
    def key(self) -> str:
        """By what the figures are named."""
        return f"{self.problems}x{self.samples}"


SHAPES = (Shape(problems=50_000, samples=2), Shape(problems=1_000, samples=100))


def reports() -> Iterator[Figure]:
    """Yield what a report takes, alone and with a field, a page and another run."""
    for shape in SHAPES:
        with farm_at_work() as farm:
            _say(f"{shape.key}: submitting two runs")
            first, second = (_loaded(farm, shape, seed) for seed in (1, 2))
            page = str(farm.folder / "report.html")
            split = ("--by", "difficulty", "--html", page)
            ways: dict[str, tuple[str, ...]] = {"alone": (), "split": split}
            ways["against"] = (*split, "--against", first)
            for way, words in ways.items():
                _say(f"{shape.key}: report, {way}")
                taken = [_measured(farm, second, words) for _ in range(_ROUNDS)]
                yield from _figures(shape, way, taken)


def _say(words: str) -> None:
    sys.stderr.write(f"{words}\n")


def _loaded(farm: FarmAtWork, shape: Shape, seed: int) -> str:
    """Submit lines of 1.1 KB that are all judged, and return their run."""
    chance = random.Random(seed)
    path = farm.folder / f"lines-{seed}.jsonl"
    verdicts = []
    with path.open("w") as file:
        for problem in range(shape.problems):
            ease = chance.random()
            for sample in range(shape.samples):
                proof = f"-- {seed} {problem} {sample}\ntheorem t : True := trivial\n"
                line = {"name": f"problem_{problem}", "predicted_proof": proof, "generation": _GENERATION}
                file.write(json.dumps({**line, "difficulty": problem % 7}) + "\n")
                verdicts.append(PROVED if chance.random() < ease else chance.choice((REJECTED, TIMEOUT)))
    run_id = submit(farm.store, [path], options(), known=farm.queries.served()).run_id
    give(farm.engine, run_id, verdicts)
    farm.settle()
    return run_id


@dataclass(frozen=True, kw_only=True, slots=True)
class Taken:
    """What a report took: seconds, those of its own processor time, and its peak resident memory."""

    seconds: float
    cpu_seconds: float
    mib: float


def _measured(farm: FarmAtWork, run: str, words: Sequence[str]) -> Taken:
    """Return what a `farm report` takes in a process of its own."""
    command = [sys.executable, "-P", "-m", "farm", "report", run, *words]
    begun, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    peak = 0.0
    with subprocess.Popen(
        command, env={**os.environ, **farm.settings}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        # Not what the kernel tells at the end: that begins with what this process had when it forked.
        while process.poll() is None:
            peak = max(peak, peak_mib(process.pid))
            with suppress(subprocess.TimeoutExpired):
                process.wait(_LOOK_SECONDS)
    seconds, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode != 0:
        raise FarmError(f"the measured report ended with status {process.returncode}")
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Taken(seconds=seconds, cpu_seconds=used, mib=peak)


def _figures(shape: Shape, way: str, taken: Sequence[Taken]) -> Iterator[Figure]:
    name = f"report on {shape.problems * shape.samples} lines, {shape.key}, {way}"
    key, bar = f"{shape.key}_{way}", None if way == "against" else _SECONDS
    yield Figure(
        key=f"report_{key}", name=name, unit="s", samples=tuple(each.seconds for each in taken), at_most=bar
    )
    yield Figure(
        key=f"report_cpu_{key}",
        name=f"{name}, processor time without PostgreSQL's",
        unit="s",
        samples=tuple(each.cpu_seconds for each in taken),
    )
    yield Figure(
        key=f"report_memory_{key}",
        name=f"{name}, peak memory",
        unit="MiB",
        samples=tuple(each.mib for each in taken),
        at_most=_MIB,
    )
