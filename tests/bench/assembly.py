"""Print how many lines a second profile `farm` assembles on one core: ``python tests/bench/assembly.py``."""

from __future__ import annotations

import random
import statistics
import sys
import time

from farm.manifest import Entry
from farm.program import AssemblyOptions, assemble

LINES = 6_000
SIZE = 2_048
HEADER = "import Mathlib\nimport Aesop\n\nset_option maxHeartbeats 0\n\n"
HEADER += "open BigOperators Real Nat Topology Rat\n\n"
STATEMENT = (
    "theorem algebra_{number} (x y : ℝ) (f : ℝ → ℝ) (h₀ : ∀ z, f z = {number} * z + 1)\n"
    "    (h₁ : x + y = {number}) (h₂ : 0 < x ∧ 0 < y) : f x + f y = {number} * (x + y) + 2 := by\n"
)
TACTICS = (
    "have h₃ : x * y ≤ (x + y) ^ 2 / 4 := by\n    nlinarith [sq_nonneg (x - y), sq_nonneg (x + y)]",
    "simp only [h₀, mul_add, add_mul] at *",
    "norm_num [h₁, ← sub_eq_zero]  -- what is left is linear",
    "obtain ⟨h₄, h₅⟩ := h₂",
    "cases' le_total x y with h h <;> simp_all",
    "/- both sides are polynomials -/\n  ring_nf",
    "rw [show f x = _ from h₀ x, show f y = _ from h₀ y]",
    "constructor\n  · linarith\n  · exact h₂.2.le",
)
PROSE = "We note that the left side is linear in both unknowns, so the claim follows from the sum. "


def body(rng: random.Random, size: int) -> str:
    lines, length = [], 0
    while length < size:
        lines.append("  " + rng.choice(TACTICS))
        length += len(lines[-1]) + 1
    return "\n".join(lines) + "\n"


def prose(rng: random.Random, size: int) -> str:
    return " ".join(rng.choices(PROSE.split(), k=size // 5)) + "\n"


def generation(rng: random.Random, shape: int, statement: str) -> str:
    """One answer of about SIZE characters, in one of the shapes that provers are known for."""
    whole = HEADER + statement + body(rng, 1100)
    reflowed = statement.replace("\n    ", "\n  ").replace("0 < x ∧ 0 < y", "0 < x  ∧  0 < y")
    lemma = f"lemma helper (a : ℝ) : 0 ≤ a ^ 2 := by\n  positivity\n\n/-- The goal. -/\n{statement}"
    shapes = (
        body(rng, SIZE).strip() + "\n```",
        body(rng, SIZE).strip(),
        prose(rng, 500) + f"```lean4\n{whole}```\n" + prose(rng, 200),
        f"Complete this:\n```lean4\n{HEADER}{statement}  sorry\n\n{prose(rng, 200)}```lean4\n{whole}```",
        f"<think>\n{prose(rng, 600)}```lean4\n  simp\n```\n</think>\n```lean\n{statement}{body(rng, 999)}```",
        prose(rng, 400) + f"```tactics\nlinarith\n```\n```lean\n{HEADER}{lemma}{body(rng, 900)}```\n",
        prose(rng, 300) + f"```lean4\n{HEADER}{reflowed}{body(rng, 1200)}```\n",
        prose(rng, 500) + f"```lean4\n{whole}",
    )
    return shapes[shape % len(shapes)]


def entries(count: int) -> list[Entry]:
    rng = random.Random(1)
    made = []
    for number in range(count):
        statement = STATEMENT.format(number=number // 32)
        made.append(
            Entry(
                path="bench.jsonl",
                line=number + 1,
                name=f"algebra_{number // 32}",
                header=HEADER,
                formal_statement=statement,
                generation=generation(rng, number, statement),
                predicted_proof="",
            )
        )
    return made


def rate(lines: list[Entry]) -> float:
    options = AssemblyOptions()
    started = time.process_time()
    for entry in lines:
        assemble(entry, options)
    return len(lines) / (time.process_time() - started)


def main() -> None:
    lines = entries(LINES)
    size = statistics.mean(len(entry.generation) for entry in lines)
    rates = [rate(lines) for _ in range(5)]
    sys.stdout.write(
        f"assembly: {statistics.median(rates):,.0f} lines/s on one core, {size:,.0f} characters a line\n"
    )
    if "-v" in sys.argv:
        for shape in range(8):
            sys.stdout.write(f"  shape {shape}: {rate(lines[shape::8]):,.0f} lines/s\n")


if __name__ == "__main__":
    main()
