"""Bench step: the time of a check at each level of isolation that this machine has, in turns."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from farm_workers.box.isolation import prepared
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.machine.environments import installed

from farm.assembly.challenge import Challenge
from farm.judging.assurance import Assurance
from farm.judging.job import Check
from farm.judging.tiers import Tier
from farm.judging.verdict import judge
from farm.limits import Limits
from tests.bench.checks.figures import Figure

_LEVELS = ("rlimit", "landlock", "bwrap", "cgroup", "cgroup+landlock", "cgroup+bwrap")
_TURNS = {"forked": 150, "cold": 30}
#: Landlock with limits of the process costs at most what bubblewrap costs.
_MOST = 1.0


def levels() -> Iterator[Figure]:
    """Check the same proofs at each level, in turns."""
    with ExitStack() as stack, tempfile.TemporaryDirectory() as folder:
        checkers: dict[str, Checker] = {}
        for level in _LEVELS:
            isolation = stack.enter_context(prepared(Path(folder, level), most=level))
            if isolation.missing:
                sys.stderr.write(f"Left out: {level}. {' '.join(isolation.missing)}\n")
                continue
            environment = installed(Path(folder), None, isolation).lean("core")
            checkers[level] = stack.enter_context(Checker(isolation, home=Path(folder, f"{level}-home")))
        for way, turns in _TURNS.items():
            took: dict[str, list[float]] = {level: [] for level in checkers}
            for turn in range(turns):
                for level, checker in checkers.items():
                    took[level].append(_checked(checker, environment, way, turn))
            yield from _figures(way, took)


def _figures(way: str, took: dict[str, list[float]]) -> Iterator[Figure]:
    for level, samples in took.items():
        name, key = f"{way} check, {level}", f"{way}_{level}_ms"
        yield Figure(key=key, name=name, unit="ms", samples=(1000.0 * median(samples[1:]),))
    if {"landlock", "bwrap"} <= took.keys():
        ratio = median(x / y for x, y in zip(took["landlock"][1:], took["bwrap"][1:], strict=True))
        name = f"{way} check, landlock / bwrap"
        yield Figure(key=f"{way}_landlock_over_bwrap", name=name, unit="", samples=(ratio,), at_most=_MOST)


def _checked(checker: Checker, environment: LeanEnvironment, way: str, turn: int) -> float:
    """Return the seconds of one check; each turn has a proof of its own."""
    stated = f"{environment.header}theorem t : {turn} + 1 = {turn + 1} := "
    check = Check.of(
        program=f"{stated}rfl\n",
        challenge=Challenge(program=f"{stated}sorry\n", name="t"),
        limits=Limits(wall_seconds=60.0),
        assurance=Assurance(tier=Tier.LEAN),
    )
    begun = time.perf_counter()
    verdict = judge(checker.check(check, environment, way=way))
    took = time.perf_counter() - begun
    assert verdict.outcome == "proved", verdict
    return took
