"""Bench step: what a header costs in each way to run Lean, without the farm."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from workers.bench import bare
from workers.bench.figures import Figure
from workers.bench.programs import Program, Worth
from workers.bench.turns import timed
from workers.environments import LeanEnvironment

#: A program that imports nothing at all.
_NOTHING = "prelude\n"


def costs(environment: LeanEnvironment, header: str, folder: Path, *, times: int) -> Iterator[Figure]:
    """Yield what a header costs a check in each way.

    For a process per check it is the time of a program that is the header alone, less that of a program which
    imports nothing. A resident Lean pays once, from its start until it has the header, likewise compared.
    """
    cold = partial(_alone, bare.Processes(environment))
    yield _cost("header_cold", "header, cold: each check", cold, cold, header, times)
    snapshot, seconds = _saved(environment, header, folder)
    if snapshot is not None:
        load = partial(_alone, bare.Processes(environment, snapshot))
        yield _cost("header_snapshot", "header, snapshot: each check", load, cold, header, times)
        yield _figure("header_snapshot_save", "header, snapshot: saving it, once", "s", (seconds,))
        mib = snapshot.stat().st_size / (1 << 20)
        yield _figure("header_snapshot_file", "header, snapshot: its file", "MiB", (mib,))
    start = partial(_until_ready, environment)
    yield _cost("header_resident", "header, resident: once per process", start, start, header, times)


def _cost(
    key: str,
    name: str,
    with_header: Callable[[str], float],
    without: Callable[[str], float],
    header: str,
    times: int,
) -> Figure:
    samples = tuple(with_header(header) - without(_NOTHING) for _ in range(times))
    return _figure(key, name, "s", samples)


def _figure(key: str, name: str, unit: str, samples: tuple[float, ...]) -> Figure:
    return Figure(key=key, name=name, unit=unit, samples=samples)


def _alone(processes: bare.Processes, header: str) -> float:
    return timed(processes.check, Program(text=header, worth=Worth.PROVED))


def _saved(environment: LeanEnvironment, header: str, folder: Path) -> tuple[Path | None, float]:
    begun = time.perf_counter()
    snapshot = bare.save_snapshot(environment, header, folder)
    return snapshot, time.perf_counter() - begun


def _until_ready(environment: LeanEnvironment, header: str) -> float:
    begun = time.perf_counter()
    with bare.resident(environment, header) as lean:
        timed(lean.check, Program(text=header, worth=Worth.PROVED))
        return time.perf_counter() - begun
