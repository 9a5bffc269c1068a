"""Bench step: makes small, distinct programs of known result. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from farm.assembly.challenge import Challenge, challenge_to


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
