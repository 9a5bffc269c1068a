"""Benchmarks, neighbours: right proofs that need most of their time limit, beside busy processes."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from statistics import median

from farm_workers.box.isolation import prepared
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import EMBEDDED
from farm_workers.machine.environments import installed

from farm.judging.assurance import Assurance
from farm.judging.job import Check
from farm.judging.verdict import Outcome, judge
from farm.limits import Limits
from farm.settings import Settings
from tests.bench.checks.figures import Figure
from tests.busy import NEIGHBOURS, busy

_LIMIT, _SHARE = 2.0, 0.7
_MOST_STEPS = 400
_AT_ONCE = 2
_TRIED = 5


def _program(header: str, steps: int) -> str:
    slow = "Nat.rec (motive := fun _ => Nat) 0 (fun _ x => Nat.add x 1) (400 + {n}) = 400 + {n} := by decide"
    lines = "".join(f"  have k{n} : {slow.format(n=n % 40)}\n" for n in range(steps))
    return f"{header}theorem t : True := by\n{lines}  trivial\n"


def neighbours(proofs: int = 200) -> Iterator[Figure]:
    """Judge proofs of about 1.4 s of processor time with a limit of 2 s, beside eight busy processes."""
    settings = Settings.load()
    with (
        prepared(settings.home / "work") as isolation,
        Checker(isolation, home=settings.home / "bench", concurrency=_AT_ONCE) as checker,
        ThreadPoolExecutor(_AT_ONCE) as threads,
    ):
        environment = installed(settings.home, None, isolation).lean(EMBEDDED)

        def check(steps: int, limits: Limits) -> tuple[Outcome, float]:
            asked = Check.of(
                program=_program(environment.header, steps), assurance=Assurance(), limits=limits
            )
            report = checker.check(asked, environment)
            return judge(report).outcome, report.run.cpu_seconds

        check(1, Limits())
        limits = Limits(wall_seconds=_LIMIT, cpu_seconds=2 * _LIMIT)
        with busy():
            # Beside them, because a core whose twin is busy needs more time for the same work.
            usual = median(check(40, Limits())[1] for _ in range(_TRIED))
            steps = min(_MOST_STEPS, round(40 * _SHARE * _LIMIT / usual))
            found = list(threads.map(lambda _: check(steps, limits), range(proofs)))
        proved = sum(outcome is Outcome.PROVED for outcome, _ in found) / proofs
        words = (
            f"share proved of {proofs} right proofs with a limit of 2 s beside {NEIGHBOURS} busy processes"
        )
        yield Figure(key="beside_neighbours", name=words, unit="", samples=(proved,), at_least=1.0)
        seconds = tuple(cpu for _, cpu in found)
        yield Figure(key="neighbours_cpu", name="processor time of each", unit="s", samples=seconds)
