"""Bench step: what the box adds to one check, at each level of isolation that this machine has."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from farm.errors import FarmError
from farm.job import Limits
from workers.bench import bare
from workers.bench.figures import Figure
from workers.bench.processes import private_kib, tree_cpu_seconds
from workers.bench.programs import Program, Worth, program
from workers.bench.turns import Ask, timed
from workers.box import once as box
from workers.box.cell import Cell
from workers.box.isolation import Isolation, prepared
from workers.box.launch import descendants
from workers.environments import LeanEnvironment
from workers.lean import cold_command, environment_variables, resident_command

#: Milliseconds that the box may add to a check.
_MOST_RESIDENT_MS, _MOST_COLD_MS = 1.0, 15.0
#: What is asked of `prepared`, from the weakest level on.
_LEVELS = ("rlimit", "bwrap", "cgroup", "cgroup+bwrap")
#: The resident Lean's limits: what passes is only measured.
_LIMITS = Limits(wall_seconds=math.inf, cpu_seconds=math.inf, memory_mib=1 << 20)
#: Checks before the ones that are measured.
_WARM_UP = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Boxed:
    """What is put into boxes: how many checks of each sort, with which environment and header.

    `folder` is where isolations make their folders, `cgroup` as for `prepared`.
    """

    environment: LeanEnvironment
    header: str
    folder: Path
    cgroup: Path | None
    resident_checks: int
    cold_checks: int
    say: Callable[[str], None]


def levels(folder: Path, cgroup: Path | None) -> dict[str, str]:
    """Return the levels of isolation of this machine, the strongest one last.

    It is what `prepared` calls each, and what must be asked of it to get that. Only one at a time can be
    prepared in a process.
    """
    found: dict[str, str] = {}
    for most in _LEVELS:
        with prepared(folder, cgroup=cgroup, most=most) as isolation:
            found.setdefault(isolation.name, most)
    return found


def added(boxed: Boxed) -> Iterator[Figure]:
    """Yield what a box adds to a resident and to a cold check; the bars are for the strongest level."""
    found = levels(boxed.folder, boxed.cgroup)
    for name, most in found.items():
        boxed.say(f"the box, {name}")
        strongest = name == list(found)[-1]
        with prepared(boxed.folder, cgroup=boxed.cgroup, most=most) as isolation:
            yield from _around_resident(boxed, isolation, strongest=strongest)
            yield from _around_cold(boxed, isolation, strongest=strongest)


def _around_resident(boxed: Boxed, isolation: Isolation, *, strongest: bool) -> Iterator[Figure]:
    with (
        bare.resident(boxed.environment, boxed.header) as outside,
        _resident_in(boxed, isolation) as (inside, memory_kib),
    ):
        differences = _differences(boxed.header, inside, outside.check, boxed.resident_checks)
        yield Figure(
            key=f"box_resident_{isolation.name}",
            name=f"box around a resident check, {isolation.name}",
            unit="ms",
            samples=tuple(each.wall_ms for each in differences),
            at_most=_MOST_RESIDENT_MS if strongest else None,
        )
        yield Figure(
            key=f"box_memory_{isolation.name}",
            name=f"private memory of the box around a resident Lean, {isolation.name}",
            unit="MiB",
            samples=(memory_kib() / 1024,),
        )


@contextlib.contextmanager
def _resident_in(boxed: Boxed, isolation: Isolation) -> Iterator[tuple[Ask, Callable[[], int]]]:
    """Keep a resident Lean in a cell; give its check and what the box's own processes take in KiB.

    The client is that of bare Lean; before and after a check it asks the cell what a worker has to know.
    """
    others = set(descendants(os.getpid()))
    stdin, write = os.pipe()
    with contextlib.ExitStack() as held:
        held.callback(os.close, write)
        try:
            cell = Cell(
                resident_command(boxed.environment),
                isolation=isolation,
                limits=_LIMITS,
                stdin=stdin,
                environment=environment_variables(boxed.environment),
                visible=boxed.environment.folders,
            )
        finally:
            os.close(stdin)
        held.callback(cell.close)
        lean = bare.Resident(boxed.header, write, cell.stdout, pid=0)

        def check(program: Program) -> Worth:
            cell.reset_peak()
            cell.usage()
            worth = lean.check(program)
            cell.usage()
            if cell.breach():
                raise FarmError("the bench's program passed a limit of the box")
            return worth

        def memory_kib() -> int:
            sizes = sorted(map(private_kib, set(descendants(os.getpid())) - others))
            return sum(sizes[:-1])  # the largest is Lean

        yield check, memory_kib


def _around_cold(boxed: Boxed, isolation: Isolation, *, strongest: bool) -> Iterator[Figure]:
    outside = bare.Processes(boxed.environment).check
    inside = _cold_in(boxed.environment, isolation)
    differences = _differences(boxed.header, inside, outside, boxed.cold_checks)
    yield Figure(
        key=f"box_cold_{isolation.name}",
        name=f"box around a cold check, {isolation.name}",
        unit="ms",
        samples=tuple(each.wall_ms for each in differences),
        at_most=_MOST_COLD_MS if strongest else None,
    )
    yield Figure(
        key=f"box_cold_cpu_{isolation.name}",
        name=f"processor time of the box around a cold check, {isolation.name}",
        unit="ms",
        samples=tuple(each.cpu_ms for each in differences),
    )


def _cold_in(environment: LeanEnvironment, isolation: Isolation) -> Ask:
    def check(program: Program) -> Worth:
        run = box.run(
            cold_command(environment),
            isolation=isolation,
            stdin=program.text.encode(),
            limits=Limits(),
            environment=environment_variables(environment),
            visible=environment.folders,
        )
        if run.box_error or run.limit:
            raise FarmError(f"the bench's box failed: {run.box_error or run.limit}")
        return bare.worth_of_process(run.stdout)

    return check


@dataclass(frozen=True, kw_only=True, slots=True)
class _Difference:
    """By how many milliseconds one program took longer inside than outside."""

    wall_ms: float
    cpu_ms: float


def _differences(header: str, inside: Ask, outside: Ask, times: int) -> list[_Difference]:
    """Compare two ways to check on the same programs; who begins alternates."""
    found = []
    for number in range(times + _WARM_UP):
        given = program(header, number)
        checks = (inside, outside) if number % 2 else (outside, inside)
        took = {check: _cost(check, given) for check in checks}
        wall, cpu = (mine - its for mine, its in zip(took[inside], took[outside], strict=True))
        found.append(_Difference(wall_ms=wall * 1000, cpu_ms=cpu * 1000))
    return found[_WARM_UP:]


def _cost(check: Ask, given: Program) -> tuple[float, float]:
    before = tree_cpu_seconds()
    seconds = timed(check, given)
    return seconds, tree_cpu_seconds() - before
