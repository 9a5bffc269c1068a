"""Bench step, manifests: answers in the shapes that provers give, and small programs as they are. Pure texts.

A manifest of answers is what users have: 32 of them to a problem, 2 KB each, and fields of the users' own.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path

from farm_workers.bench.measure import BenchProgram

from farm.manifest.entry import Entry

#: So many different answers are written; a longer manifest has them again, to other problems.
LINES = 6_000
#: Characters of an answer, about.
_SIZE = 2_048
_HEADER = "import Mathlib\nimport Aesop\n\nset_option maxHeartbeats 0\n\n"
_HEADER += "open BigOperators Real Nat Topology Rat\n\n"
_STATEMENT = (
    "theorem algebra_{number} (x y : ℝ) (f : ℝ → ℝ) (h₀ : ∀ z, f z = {number} * z + 1)\n"
    "    (h₁ : x + y = {number}) (h₂ : 0 < x ∧ 0 < y) : f x + f y = {number} * (x + y) + 2 := by\n"
)
_TACTICS = (
    "have h₃ : x * y ≤ (x + y) ^ 2 / 4 := by\n    nlinarith [sq_nonneg (x - y), sq_nonneg (x + y)]",
    "simp only [h₀, mul_add, add_mul] at *",
    "norm_num [h₁, ← sub_eq_zero]  -- what is left is linear",
    "obtain ⟨h₄, h₅⟩ := h₂",
    "cases' le_total x y with h h <;> simp_all",
    "/- both sides are polynomials -/\n  ring_nf",
    "rw [show f x = _ from h₀ x, show f y = _ from h₀ y]",
    "constructor\n  · linarith\n  · exact h₂.2.le",
)
_PROSE = "We note that the left side is linear in both unknowns, so the claim follows from the sum. "


def entries(count: int, *, brief: bool = False) -> list[Entry]:
    """Return so many lines of a manifest of answers, always the same; `brief` ones are a quarter as long."""
    rng = random.Random(1)
    made = []
    for number in range(count):
        statement = _STATEMENT.format(number=number // 32)
        made.append(
            Entry(
                path="bench.jsonl",
                line=number + 1,
                name=f"algebra_{number // 32}",
                header=_HEADER,
                formal_statement=statement,
                generation=_body(rng, _SIZE // 4) if brief else _generation(rng, number, statement),
                predicted_proof="",
            )
        )
    return made


def _generation(rng: random.Random, shape: int, statement: str) -> str:
    """Return one answer, in one of the shapes that provers are known for."""
    whole = _HEADER + statement + _body(rng, 1100)
    reflowed = statement.replace("\n    ", "\n  ").replace("0 < x ∧ 0 < y", "0 < x  ∧  0 < y")
    lemma = f"lemma helper (a : ℝ) : 0 ≤ a ^ 2 := by\n  positivity\n\n/-- The goal. -/\n{statement}"
    asked = f"Complete this:\n```lean4\n{_HEADER}{statement}  sorry\n\n{_prose(rng, 200)}"
    thought = f"<think>\n{_prose(rng, 600)}```lean4\n  simp\n```\n</think>\n"
    shapes = (
        _body(rng, _SIZE).strip() + "\n```",
        _body(rng, _SIZE).strip(),
        _prose(rng, 500) + f"```lean4\n{whole}```\n" + _prose(rng, 200),
        f"{asked}```lean4\n{whole}```",
        f"{thought}```lean\n{statement}{_body(rng, 999)}```",
        _prose(rng, 400) + f"```tactics\nlinarith\n```\n```lean\n{_HEADER}{lemma}{_body(rng, 900)}```\n",
        _prose(rng, 300) + f"```lean4\n{_HEADER}{reflowed}{_body(rng, 1200)}```\n",
        _prose(rng, 500) + f"```lean4\n{whole}",
    )
    return shapes[shape % len(shapes)]


def _body(rng: random.Random, size: int) -> str:
    lines, length = [], 0
    while length < size:
        lines.append("  " + rng.choice(_TACTICS))
        length += len(lines[-1]) + 1
    return "\n".join(lines) + "\n"


def _prose(rng: random.Random, size: int) -> str:
    return " ".join(rng.choices(_PROSE.split(), k=size // 5)) + "\n"


def write_answers(path: Path, lines: int, *, brief: bool = False) -> Path:
    """Write a manifest of so many answers, all programs of which differ, and return its path.

    A line has 2.7 KB, a `brief` one a kilobyte.
    """
    made = entries(min(lines, LINES), brief=brief)
    with path.open("w", encoding="utf-8") as file:
        for number in range(lines):
            file.write(_line(made[number % len(made)], number) + "\n")
    return path


def _line(entry: Entry, number: int) -> str:
    """Return a line as users have them, with fields of their own; every other one is pure ASCII."""
    name = f"algebra_{number // 32}_"
    fields = {
        "name": name,
        "split": "test",
        "informal_prefix": "/-- What is the value of `f x + f y`? -/\n",
        "header": entry.header,
        "formal_statement": entry.formal_statement.replace("algebra_", name),
        "generation": entry.generation.replace("algebra_", name),
        "num_generated_tokens": 700 + number % 100,
        "generation_time": number / 7,
    }
    return json.dumps(fields, ensure_ascii=number % 2 == 0)


def write_programs(path: Path, given: Sequence[BenchProgram]) -> Path:
    """Write a manifest of whole programs, and return its path."""
    with path.open("w", encoding="utf-8") as file:
        for number, program in enumerate(given):
            fields = {"name": f"program_{number}", "header": program.header}
            fields |= {"formal_statement": program.statement, "predicted_proof": program.text}
            file.write(json.dumps(fields) + "\n")
    return path
