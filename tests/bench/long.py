"""Bench step: programs that take long, or never end. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from farm_workers.bench.measure import BenchProgram, ExpectedWorth, programs, stated_as


def stepwise(header: str, number: int, steps: int) -> BenchProgram:
    """Return a program whose one proof has so many steps, each of which takes as long as the others."""
    step = "  have h{0} : a + b + {0} = b + a + {0} := by rw [Nat.add_comm a b]\n"
    return _in_steps(header, number, map(step.format, range(steps)))


#: So many steps a computation has: some milliseconds, and not so deep that the kernel gives up.
_COMPUTED = 2000


def computed(header: str, number: int, steps: int) -> BenchProgram:
    """Return a program whose one proof has so many steps, each of them a computation by the kernel."""
    step = "  have h{0} : @Nat.rec (fun _ => Nat) {0} (fun _ b => b) {1} = {0} := by decide +kernel\n"
    return _in_steps(header, number, (step.format(each, _COMPUTED) for each in range(steps)))


def _in_steps(header: str, number: int, steps: Iterable[str]) -> BenchProgram:
    """Return a program with these steps in its proof; each number has a statement of its own."""
    stated = "theorem steps_{n} (a b : Nat) : a + b = b + a := by\n"
    return stated_as(
        header, stated, "".join(steps) + "  exact Nat.add_comm a b\n", ExpectedWorth.PROVED, number
    )


#: Lean looks at nothing while it searches here: its process must be killed.
_ENDLESS = "theorem endless_{n} (a b c : Nat) : a + b + c = c + b + a := by\n"


def with_endless(
    header: str, first: int, how_many: int, *, every: int, wall_seconds: float
) -> list[BenchProgram]:
    """Return programs as `programs` does, but one of `every` never ends and is to be killed."""
    found = programs(header, first, how_many)
    for place in range(every // 2, how_many, every):
        made = stated_as(
            header, _ENDLESS, "  repeat rw [Nat.add_comm]\n", ExpectedWorth.TIMEOUT, first + place
        )
        found[place] = replace(made, wall_seconds=wall_seconds)
    return found
