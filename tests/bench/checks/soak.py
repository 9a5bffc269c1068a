"""Bench step: whether the worker's own process grows, in a process of its own.

``python -m tests.bench.checks.soak ENVIRONMENT CHECKS`` loads what a worker loads, checks so many programs on
the tier kernel, those of the first fifth again and again, and prints now and then, as a line of JSON, how
many checks it has behind it and its own private memory in KiB. Lean's memory is not part of that.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from statistics import median

from farm_workers.bench.measure import asked, programs
from farm_workers.machine.opening import opened

from farm.errors import FarmError
from farm.judging.tiers import Tier
from farm.settings import Settings
from tests.bench.checks.figures import Figure
from tests.bench.checks.processes import private_kib
from tests.bench.checks.turns import crew

_MOST_MIB = 120.0
#: What still counts as flat: this much between the second fifth of the checks and the last one.
_MOST_GROWTH_MIB = 2.0
#: How often a process looks at its memory.
_LOOKS = 50


@dataclass(frozen=True, kw_only=True, slots=True)
class Look:
    """What a process took after so many checks."""

    checks: int
    private_kib: int


def soak(environment: str, checks: int, say: Callable[[str], None]) -> Iterator[Figure]:
    """Yield what the worker's own process takes at the start and at most, and by how much it grows.

    Raises FarmError when the process fails.
    """
    looks: list[Look] = []
    command = [sys.executable, "-P", "-m", "tests.bench.checks.soak", environment, str(checks)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                looks.append(Look(**json.loads(line)))
                say(f"worker's own memory: {looks[-1].checks} of {checks} checks")
        except BaseException:
            process.terminate()
            raise
    if process.returncode != 0 or not looks:
        raise FarmError(f"the worker under measurement exited with status {process.returncode}")
    yield from _figures(looks)


def _figures(looks: Sequence[Look]) -> Iterator[Figure]:
    mib = [look.private_kib / 1024 for look in looks]
    checks = looks[-1].checks
    yield _figure("worker_memory_start", "at start", mib[0])
    yield _figure("worker_memory", f"at most, over {checks} checks", max(mib), _MOST_MIB)
    fifth = max(1, len(mib) // 5)
    growth = median(mib[-fifth:]) - median(mib[fifth : 2 * fifth] or mib[-1:])
    name = f"growth from the second fifth of {checks} checks to the last"
    yield _figure("worker_memory_growth", name, growth, _MOST_GROWTH_MIB)


def _figure(key: str, name: str, mib: float, at_most: float | None = None) -> Figure:
    name = f"private memory of the worker's own process, {name}"
    return Figure(key=key, name=name, unit="MiB", samples=(mib,), at_most=at_most)


def main(name: str, checks: int) -> None:
    """Be the process that is watched."""
    # A worker has these loaded while it checks.
    import farm_workers.loop.process  # noqa: F401

    import farm.broker
    import farm.store.transitions  # noqa: F401

    settings = Settings.load()
    with opened(settings, concurrency=settings.concurrency) as machine:
        environment = machine.installed.lean(name)
        check = asked(machine.checker, environment, Tier.KERNEL)
        with crew(settings.concurrency) as hired:
            _look(0)
            different = programs(environment.header, 0, max(1, checks // 5))
            for number in range(_LOOKS):
                first, last = (checks * place // _LOOKS for place in (number, number + 1))
                given = [different[each % len(different)] for each in range(first, last)]
                hired.turn([check] * settings.concurrency, given)
                _look(last)


def _look(checks: int) -> None:
    sys.stdout.write(json.dumps(asdict(Look(checks=checks, private_kib=private_kib()))) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
