"""Measures what a context costs each of its proofs: ``python -m tests.bench.contexts``.

A context of 300 lines has 64 answers, in one lane and in two. What they take above the same answers without a
context, making the images included, is told as a share of compiling and sealing the context once.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from farm_workers.box import isolation as isolations
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.machine.environments import installed

from farm.assembly.challenge import challenge_to
from farm.judging.assurance import Assurance
from farm.judging.job import Check
from farm.judging.tiers import Tier
from farm.judging.verdict import Reason, judge
from farm.limits import Limits

ANSWERS, LINES, ROUNDS = 64, 300, 3
HEADER = "prelude\nimport Core\n\n"
STATEMENT = "theorem goal (n : Nat) : n = n"
_PART = """\
/-- Counts, number {0}. -/
def f{0} : Nat → Nat
  | .zero => .zero
  | .succ n => .succ (f{0} n)

theorem f{0}_same (n : Nat) : f{0} n = n := by
  induction n with
  | zero => rfl
  | succ n ih =>
    show Nat.succ (f{0} n) = Nat.succ n
    rw [ih]

structure Pair{0} where
  left : Nat
  right : Nat

instance : Inhabited Pair{0} := ⟨⟨0, 1⟩⟩

theorem add{0} (a b : Nat) (h : a = b) : f{0} a = f{0} b := by
  rw [h]

"""


def context(name: str) -> str:
    """Return a context of this many lines, or a few more."""
    text, number = f"{HEADER}namespace {name}\n\n", 0
    while text.count("\n") < LINES:
        number += 1
        text += _PART.format(number)
    return text


def check_of(above: str, number: int) -> Check:
    """Return the check of an answer below a context, of which the farm screens what is the answer's own."""
    program = f"{above}{STATEMENT} := by\n  -- {number}\n  rfl\n"
    return Check.of(
        program=program,
        submitted=((len(above) + len(STATEMENT), len(program)),),
        challenge=challenge_to("", STATEMENT, above),
        assurance=Assurance(tier=Tier.KERNEL),
        limits=Limits(),
        context_end=len(above),
    )


def seconds(checker: Checker, core: LeanEnvironment, above: str, lanes: int) -> float:
    """Return how long all answers below a context take, so many at once."""

    def reason(number: int) -> Reason:
        return judge(checker.check(check_of(above, number), core)).reason

    begun = time.perf_counter()
    with ThreadPoolExecutor(lanes) as pool:
        assert set(pool.map(reason, range(ANSWERS))) == {Reason.OK}
    return time.perf_counter() - begun


def main() -> None:
    """Measure, and print a line for each round."""
    with tempfile.TemporaryDirectory() as folder, isolations.prepared(Path(folder, "boxes")) as isolation:
        core = installed(Path(folder, "environments"), None, isolation).lean("core")
        for lanes in (1, 2):
            for each in range(ROUNDS):
                above = context(f"Big{each}")
                with Checker(isolation, home=Path(folder), concurrency=2) as checker:
                    seconds(checker, core, HEADER, lanes)
                    plain = seconds(checker, core, HEADER, lanes)
                    shared = seconds(checker, core, above, lanes)
                alone = _alone(isolation, core, Path(folder), above)
                share = (shared - plain) / ANSWERS / alone
                print(
                    f"{lanes} at once: {ANSWERS} answers take {plain:.2f} s without a context, "
                    f"{shared:.2f} s with one; that is compiled and sealed in {alone:.2f} s, "
                    f"an answer pays {share:.1%} of it"
                )


def _alone(isolation: isolations.Isolation, core: LeanEnvironment, home: Path, above: str) -> float:
    """Return what compiling and sealing a context takes more than not doing so."""
    took: dict[str, list[float]] = {above: [], HEADER: []}
    with Checker(isolation, home=home, concurrency=2, share_contexts=False) as checker:
        for number in range(6):
            for text, samples in took.items():
                begun = time.perf_counter()
                checker.check(check_of(text, number), core)
                samples.append(time.perf_counter() - begun)
    return statistics.median(took[above][1:]) - statistics.median(took[HEADER][1:])


if __name__ == "__main__":
    main()
