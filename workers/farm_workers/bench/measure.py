"""Bench step: checks of small programs through the farm's engine, as fast as it can on this machine."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import StrEnum

from farm.assembly.challenge import Challenge, challenge_to
from farm.errors import FarmError
from farm.judging.assurance import Assurance
from farm.judging.job import Check
from farm.judging.tiers import Tier
from farm.judging.verdict import Outcome, Reason, judge
from farm.limits import Limits
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import LeanEnvironment


class ExpectedWorth(StrEnum):
    """The expected result of a program."""

    PROVED = "proved"
    ERROR = "error"
    TIMEOUT = "timeout"


@dataclass(frozen=True, kw_only=True, slots=True)
class BenchProgram:
    """A program, its header and statement, and its expected result.

    An endless one is stopped after `wall_seconds`, which the measurement subtracts; all others have None.
    """

    text: str
    worth: ExpectedWorth
    challenge: Challenge | None = None
    header: str = ""
    statement: str = ""
    wall_seconds: float | None = None


#: Small examples of a model's output: a statement, a proof of it, and an attempt that fails. Every Lean with
#: natural numbers and these tactics accepts them, the embedded one as well as Mathlib's.
_STATEMENTS: tuple[tuple[str, str, str], ...] = (
    (
        "theorem swap_{n} (p q : Prop) (h : p ∧ q) : q ∧ p ∧ {n} = {n} := by\n",
        "  constructor\n  · exact h.right\n  · exact ⟨h.left, rfl⟩\n",
        "  constructor\n  · exact h.left\n  · exact ⟨h.left, rfl⟩\n",
    ),
    (
        "theorem either_{n} (p q : Prop) (h : p ∨ q) : q ∨ p ∨ {n} = 0 := by\n",
        "  cases h with\n  | inl hp => exact Or.inr (Or.inl hp)\n  | inr hq => exact Or.inl hq\n",
        "  cases h with\n  | inl hp => exact Or.inl hp\n  | inr hq => exact Or.inl hq\n",
    ),
    (
        "theorem zero_add_{n} (m : Nat) : 0 + m = m := by\n",
        "  induction m with\n  | zero => rfl\n  | succ m ih => rw [Nat.add_succ, ih]\n",
        "  induction m with\n  | zero => rfl\n  | succ m ih => rw [Nat.add_succ]\n",
    ),
    (
        "theorem some_{n} : ∃ m : Nat, m + 0 = {n} := by\n",
        "  exact ⟨{n}, rfl⟩\n",
        "  exact ⟨{n} + 1, rfl⟩\n",
    ),
    (
        "theorem chain_{n} (a b c : Nat) (h : a = b) (k : b = c) : c = a + 0 := by\n",
        "  rw [Nat.add_zero, h, k]\n",
        "  rw [h, no_such_lemma_{n}]\n",
    ),
)
#: Statements of which one after the other is tried, so that no two neighbours have anything in common.
_ROW = 10
#: Of each row, those whose first attempt holds: one of the two of each kind, in no order.
_HOLDS = (0, 1, 3, 7, 9)


def programs(header: str, first: int, how_many: int, *, attempts: int = 1) -> list[BenchProgram]:
    """Return the programs number `first` and on, each beginning with `header`; see `program`."""
    return [program(header, number, attempts=attempts) for number in range(first, first + how_many)]


def program(header: str, number: int, *, attempts: int = 1) -> BenchProgram:
    """Return one program; different numbers make different programs, every other one of them holds.

    Each statement has `attempts` programs, one in each row of ten.
    """
    rows, place = divmod(number, _ROW)
    statement = rows // attempts * _ROW + place
    stated, right, wrong = _STATEMENTS[statement % len(_STATEMENTS)]
    holds = (place in _HOLDS) != (rows % attempts % 2 == 1)
    body = f"{right if holds else wrong}-- {number}\n"
    return stated_as(header, stated, body, ExpectedWorth.PROVED if holds else ExpectedWorth.ERROR, statement)


def stated_as(header: str, stated: str, body: str, worth: ExpectedWorth, number: int) -> BenchProgram:
    """Return a program of a statement and its proof, in which ``{n}`` stands for the number."""
    statement = stated.format(n=number)
    return BenchProgram(
        text=header + statement + body.format(n=number),
        worth=worth,
        challenge=challenge_to(header, statement),
        header=header,
        statement=statement,
    )


#: Checks one program and returns its result.
Ask = Callable[[BenchProgram], ExpectedWorth]

_WORTH = {
    Reason.OK: ExpectedWorth.PROVED,
    Reason.ERROR: ExpectedWorth.ERROR,
    Reason.WALL_LIMIT: ExpectedWorth.TIMEOUT,
}
#: Attempts at one statement, as reinforcement learning makes them.
ATTEMPTS = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Rate:
    """How fast one tier is: checks a second over all threads, and the seconds of each check, sorted."""

    tier: Tier
    per_second: float
    latencies: tuple[float, ...]

    def quantile(self, share: float) -> float:
        """Return the latency, in seconds, that this share of the checks does not exceed."""
        return self.latencies[min(len(self.latencies) - 1, int(share * len(self.latencies)))]


def measured(
    checker: Checker, environment: LeanEnvironment, tier: Tier, *, at_once: int, seconds: float
) -> Rate:
    """Check programs on a tier for `seconds`, `at_once` at a time, and return the rate.

    Preparations, such as making the image of the header, are not measured. Raises FarmError when a program
    has a wrong result.
    """
    ask, numbers = asked(checker, environment, tier), itertools.count()
    for _ in range(2 * at_once):
        checked(ask, program(environment.header, next(numbers), attempts=ATTEMPTS))

    def lane(deadline: float) -> Iterator[float]:
        while time.perf_counter() < deadline:
            yield checked(ask, program(environment.header, next(numbers), attempts=ATTEMPTS))

    begun = time.perf_counter()
    with ThreadPoolExecutor(at_once, thread_name_prefix="lane") as pool:
        lanes = list(pool.map(lambda end: list(lane(end)), [begun + seconds] * at_once))
    took = time.perf_counter() - begun
    latencies = sorted(itertools.chain.from_iterable(lanes))
    return Rate(tier=tier, per_second=len(latencies) / took, latencies=tuple(latencies))


def checked(ask: Ask, program: BenchProgram) -> float:
    """Return the seconds that a check takes; raises FarmError when the program comes out as it must not."""
    begun = time.perf_counter()
    worth = ask(program)
    seconds = time.perf_counter() - begun
    if worth is not program.worth:
        raise FarmError(f"the bench's program came out as {worth}, not {program.worth}:\n{program.text}")
    return seconds


def asked(checker: Checker, environment: LeanEnvironment, tier: Tier) -> Ask:
    """Return a function that checks and judges one program on a tier, as a worker does.

    It raises FarmError when Lean was run in another way than the checker's, or the program could not be
    judged: then the figures would measure something else.
    """
    assurance = Assurance(tier=tier)

    def check(program: BenchProgram) -> ExpectedWorth:
        limits = Limits()
        if program.wall_seconds is not None:
            limits = replace(limits, wall_seconds=program.wall_seconds)
        work = Check.of(program=program.text, limits=limits, challenge=program.challenge, assurance=assurance)
        report = checker.check(work, environment)
        verdict = judge(report)
        if (
            report.way != checker.way
            or verdict.outcome is Outcome.JUDGE_ERROR
            or verdict.reason not in _WORTH
        ):
            raise FarmError(
                f"the bench's program was checked {report.way}, not {checker.way}, and judged "
                f"{verdict.reason}: {verdict.detail}\n{program.text}"
            )
        return _WORTH[verdict.reason]

    return check
