"""Bench step: small programs, no two alike, whose worth is known. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Worth(StrEnum):
    """What Lean makes of a program."""

    PROVED = "proved"
    ERROR = "error"
    SORRY = "sorry"
    TIMEOUT = "timeout"


@dataclass(frozen=True, kw_only=True, slots=True)
class Program:
    """A program and what must come of it.

    One that never ends is stopped after `wall_seconds`, which are taken out of the time of whoever checks it;
    all others have None.
    """

    text: str
    worth: Worth
    wall_seconds: float | None = None


#: What models write, in small: half of it holds. Every Lean with natural numbers and these tactics takes
#: them, the embedded one as well as Mathlib's.
_BODIES: tuple[tuple[Worth, str], ...] = (
    (
        Worth.PROVED,
        "theorem swap_{n} (p q : Prop) (h : p ∧ q) : q ∧ p ∧ {n} = {n} := by\n"
        "  constructor\n  · exact h.right\n  · exact ⟨h.left, rfl⟩\n",
    ),
    (
        Worth.ERROR,
        "theorem swap_{n} (p q : Prop) (h : p ∧ q) : q ∧ p ∧ {n} = {n} := by\n"
        "  constructor\n  · exact h.left\n  · exact ⟨h.left, rfl⟩\n",
    ),
    (
        Worth.PROVED,
        "theorem either_{n} (p q : Prop) (h : p ∨ q) : q ∨ p ∨ {n} = 0 := by\n"
        "  cases h with\n  | inl hp => exact Or.inr (Or.inl hp)\n  | inr hq => exact Or.inl hq\n",
    ),
    (Worth.ERROR, "theorem sum_{n} : {n} + 1 = {n} := by\n  rfl\n"),
    (
        Worth.PROVED,
        "theorem zero_add_{n} (m : Nat) : 0 + m = m := by\n"
        "  induction m with\n  | zero => rfl\n  | succ m ih => rw [Nat.add_succ, ih]\n",
    ),
    (Worth.SORRY, "theorem hope_{n} (a b : Nat) : (a + b) * {n} = a * {n} + b * {n} := by\n  sorry\n"),
    (Worth.PROVED, "theorem some_{n} : ∃ m : Nat, m + 0 = {n} := ⟨{n}, rfl⟩\n"),
    (
        Worth.ERROR,
        "theorem chain_{n} (a b c : Nat) (h : a = b) (k : b = c) : c = a := by\n"
        "  rw [h, no_such_lemma_{n}]\n",
    ),
    (
        Worth.PROVED,
        "theorem chain_{n} (a b c : Nat) (h : a = b) (k : b = c) : c = a + 0 := by\n"
        "  rw [Nat.add_zero, h, k]\n",
    ),
    (
        Worth.ERROR,
        "theorem open_{n} (p q : Prop) (hp : p) (f : p → q) : q ∧ {n} = {n} := by\n"
        "  constructor\n  · exact f hp\n",
    ),
)


def programs(header: str, first: int, how_many: int) -> list[Program]:
    """Return the programs number `first` and on, each beginning with `header`."""
    return [program(header, number) for number in range(first, first + how_many)]


def program(header: str, number: int) -> Program:
    """Return one program; different numbers make different programs."""
    worth, body = _BODIES[number % len(_BODIES)]
    return Program(text=header + body.format(n=number), worth=worth)


#: Two searches that never end. The first looks up now and then whether it should stop, and then does at once.
#: The second goes on for as long as its process lives.
STOPS, GOES_ON = "that stop when told", "that must be killed"
ENDLESS = {
    STOPS: (
        "class Climbs (n : Nat) where\n  x : Nat\n"
        "instance climb_{n} (n : Nat) [Climbs (Nat.succ n)] : Climbs n := Climbs.mk 0\n"
        "set_option maxRecDepth 100000000 in\nset_option synthInstance.maxHeartbeats 0 in\n"
        "set_option synthInstance.maxSize 100000000 in\nset_option maxHeartbeats 0 in\n"
        "theorem endless_{n} : Climbs.x 0 = 0 := Eq.refl _\n"
    ),
    GOES_ON: (
        "theorem endless_{n} (a b c : Nat) : a + b + c = c + b + a := by\n  repeat rw [Nat.add_comm]\n"
    ),
}


def with_endless(
    kind: str, header: str, first: int, how_many: int, *, every: int, wall_seconds: float
) -> list[Program]:
    """Return programs as `programs` does, but one of `every` never ends; `kind` is a key of `ENDLESS`."""
    found = programs(header, first, how_many)
    for place in range(every // 2, how_many, every):
        text = header + ENDLESS[kind].format(n=first + place)
        found[place] = Program(text=text, worth=Worth.TIMEOUT, wall_seconds=wall_seconds)
    return found
