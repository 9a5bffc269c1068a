"""Bench step, `farm report`: seconds and memory on many lines, with its page and all its parts."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from farm.errors import FarmError
from farm.runs.submit import submit
from tests.bench.around.site import FarmAtWork, farm_at_work, options
from tests.bench.checks.figures import Figure
from tests.evaluations import PROVED, REJECTED, TIMEOUT, give

#: Bars for 100 000 lines.
_SECONDS, _MIB = 5.0, 200.0
_ROUNDS = 3
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


def _measured(farm: FarmAtWork, run: str, words: Sequence[str]) -> tuple[float, float]:
    """Return the seconds and the peak resident MiB of a `farm report` in a process of its own."""
    command = [sys.executable, "-P", "-m", "farm", "report", run, *words]
    begun = time.perf_counter()
    with subprocess.Popen(
        command, env={**os.environ, **farm.settings}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise FarmError(f"the measured report ended with status {process.returncode}")
    return seconds, used.ru_maxrss / 1024


def _figures(shape: Shape, way: str, taken: Sequence[tuple[float, float]]) -> Iterator[Figure]:
    lines = shape.problems * shape.samples
    name = f"report on {lines} lines, {shape.key}, {way}"
    bar = None if way == "against" else _SECONDS
    seconds, mib = zip(*taken, strict=True)
    yield Figure(key=f"report_{shape.key}_{way}", name=name, unit="s", samples=seconds, at_most=bar)
    memory = f"report_memory_{shape.key}_{way}"
    yield Figure(key=memory, name=f"{name}, peak memory", unit="MiB", samples=mib, at_most=_MIB)
