"""Benchmarks, the input: manifest lines with answers of about 2 KB in the shapes that provers produce."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from farm.manifest import Entry

_HEADER = "import Mathlib\nimport Aesop\n\nset_option maxHeartbeats 400000\n\nopen BigOperators Real Nat Topology Rat\n\n"
_PROSE = "We look at the hypothesis `h₀` and rewrite the goal with it; what is left is linear arithmetic.\n"


def _statement(number: int) -> str:
    return (
        f"theorem answer_{number} (a b c : ℝ) (f : ℕ → ℝ) (h₀ : ∀ x : ℕ, f x = a * x ^ 2 + b * x + c)\n"
        f"    (h₁ : f 0 = {number % 97} ∧ f 1 = 3) : a + b + c - {number % 13} ≤ 3 := by\n"
    )


def _body(number: int, *, most: int) -> str:
    """Return some tactic lines of about so many characters; no two answers are the same."""
    lines: list[str] = []
    length = 0
    while length < most:
        step = len(lines)
        line = (
            f"  have h{step + 2} : f {step} = a * {step} ^ 2 + b * {step} + c := by\n"
            f"    norm_num [h₀] -- step {step} of {number}\n"
            f"    linarith [h₁.1, h₁.2, sq_nonneg (a - {step})]\n"
        )
        lines.append(line)
        length += len(line)
    return "".join(lines) + "  linarith [h₁.1, h₁.2]\n"


def _completion(number: int) -> str:
    """The prompt goes on: no fence but the closing one, and the first line lost its indentation."""
    return _body(number, most=1900).lstrip() + "```\n"


def _fenced(number: int) -> str:
    return f"{_PROSE}\n```lean4\n{_statement(number)}{_body(number, most=1500)}```\n\n{_PROSE}"


def _whole_file(number: int) -> str:
    return f"### Solution\n\n{_PROSE}\n```lean4\n{_HEADER}{_statement(number)}{_body(number, most=1300)}```\n"


def _thought(number: int) -> str:
    sketch = f"```lean\n{_statement(number)}  sorry\n```\n"
    return f"<think>\n{_PROSE * 6}{sketch}</think>\n\n```lean4\n{_statement(number)}{_body(number, most=700)}```\n"


def _blocks(number: int) -> str:
    first = "```tactics\nlinarith [h₁.1]\n```\n"
    return f"{_PROSE}{first}{_PROSE}{first}{_PROSE}```lean4\n{_HEADER}{_statement(number)}{_body(number, most=900)}```\n"


def _helpers(number: int) -> str:
    lemma = f"lemma helper_{number} (x y : ℝ) (h : x ≤ y) : x - 1 ≤ y := by\n  /- by cases -/ linarith\n\n"
    return f"```lean4\n{lemma}{_statement(number)}{_body(number, most=1600)}\n"


SHAPES = (_completion, _fenced, _whole_file, _thought, _blocks, _helpers)


def entry(number: int) -> Entry:
    """Return the manifest line with this number; all numbers' programs differ."""
    return Entry(
        path="answers.jsonl",
        line=number + 1,
        name=f"answer_{number}",
        header=_HEADER,
        formal_statement=_statement(number),
        generation=SHAPES[number % len(SHAPES)](number),
        predicted_proof="",
    )


def entries(lines: int) -> Iterator[Entry]:
    """Yield so many manifest lines, the shapes in turn."""
    return map(entry, range(lines))


def write_manifest(path: Path, lines: int) -> Path:
    """Write so many lines as users have them, with fields of their own."""
    with path.open("w", encoding="utf-8") as file:
        for made in entries(lines):
            fields = {
                "name": made.name,
                "split": "test",
                "informal_prefix": "/-- What is the value of `a + b + c`? -/\n",
                "header": made.header,
                "formal_statement": made.formal_statement,
                "generation": made.generation,
                "num_generated_tokens": 700 + made.line % 100,
                "generation_time": made.line / 7,
            }
            file.write(json.dumps(fields, ensure_ascii=made.line % 2 == 0) + "\n")
    return path
