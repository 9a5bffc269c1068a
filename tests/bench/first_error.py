"""Benchmarks, the first error: checks that end there beside checks that go on, in turns, on one thread."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from farm_workers.box.isolation import prepared
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import EMBEDDED
from farm_workers.machine.environments import installed

from farm.judging.assurance import Assurance
from farm.judging.job import Check
from farm.judging.report import Execution
from farm.judging.verdict import Outcome, judge
from farm.settings import Settings
from tests.bench.checks.figures import Figure

_SLOW = "Nat.rec (motive := fun _ => Nat) 0 (fun _ x => Nat.add x 1) (400 + {n}) = 400 + {n} := by decide"
_TAIL = "".join(f"  have k{n} : {_SLOW.format(n=n)}\n" for n in range(40))
#: Programs whose error comes early, and one that is a proof.
_FAILING = {
    "have": f"theorem t : True := by\n  have w : (0 : Nat) = 1 := by exact rfl\n{_TAIL}  trivial\n",
    "bullet": "theorem t : (0 : Nat) = 1 ∧ True := by\n  constructor\n  · exact rfl\n  ·\n"
    + _TAIL.replace("  have", "    have")
    + "    trivial\n",
}
_PROOF = f"theorem t : True := by\n{_TAIL}  trivial\n"
_TURNS = 15


def first_error() -> Iterator[Figure]:
    """Measure what is saved where an answer fails early, and what it costs where it is a proof."""
    settings = Settings.load()
    with (
        prepared(settings.home / "work") as isolation,
        Checker(isolation, home=settings.home / "bench", concurrency=1) as checker,
    ):
        environment = installed(settings.home, None, isolation).lean(EMBEDDED)

        def runs(body: str, outcome: Outcome) -> Iterator[tuple[Execution, Execution]]:
            check = Check.of(program=f"{environment.header}{body}", assurance=Assurance())
            for _ in range(_TURNS):
                found = [
                    checker.check(each, environment) for each in (check, replace(check, stop_at_error=True))
                ]
                assert all(judge(each).outcome is outcome for each in found), found
                yield found[0].run, found[1].run

        for name, body in _FAILING.items():
            pairs = list(runs(body, Outcome.REJECTED))
            saved = tuple(1 - stopped.cpu_seconds / whole.cpu_seconds for whole, stopped in pairs)
            words = f"processor time saved by ending at an early wrong {name} ({isolation.name})"
            yield Figure(key=f"saved_{name}", name=words, unit="", samples=saved, at_least=0.5)
            for each, at in (("whole", 0), ("stopped", 1)):
                milliseconds = tuple(1000 * pair[at].cpu_seconds for pair in pairs)
                yield Figure(key=f"ms_{name}_{each}", name=f"{name}, {each}", unit="ms", samples=milliseconds)
        pairs = list(runs(_PROOF, Outcome.PROVED))
        for key, name, samples in (
            ("proof_time", "time", [stopped.cpu_seconds / whole.cpu_seconds for whole, stopped in pairs]),
            (
                "proof_memory",
                "peak memory",
                [stopped.peak_memory_kib / whole.peak_memory_kib for whole, stopped in pairs],
            ),
        ):
            words = f"{name} of a proof of 40 steps with the option, over without"
            yield Figure(key=key, name=words, unit="", samples=tuple(samples))
