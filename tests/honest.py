"""Honest programs of many shapes, made by a seeded generator: each proves its statement."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from tests.commands import HEADER

#: Binders, a proposition, tactics and a term that prove it.
_FACTS = (
    ("(p q : Prop) (h : p ∧ q)", "q ∧ p", "exact ⟨h.2, h.1⟩", "⟨h.2, h.1⟩"),
    ("{α : Type _} {β : Type _} (f : α → β) (a b : α) (h : a = b)", "f a = f b", "rw [h]", "congrArg f h"),
    ("{α : Sort u} {β : Sort v} (f : α → β) (a : α)", "f a = f a", "exact rfl", "rfl"),
    ("{β : Sort v} {α : Sort u} (f : α → β) (a : α)", "f a = f a", "exact rfl", "rfl"),
    ("{α : Type u_1} (a : α)", "a = a", "rfl", "rfl"),
    ("(α : Type (max u v)) (a : α)", "∃ b : α, b = a", "exact ⟨a, rfl⟩", "⟨a, rfl⟩"),
    ("{α : Type _} [BEq α] (a b : α)", "(a == b) = (a == b)", "rfl", "rfl"),
    ("(n : Nat) (h : n = n := by exact rfl)", "n = n", "exact h", "h"),
    ("(n : Nat) (h : n = n := by simp)", "n = n", "exact h", "h"),
    ("(n : Nat) (h : n = n := by\n    -- := by (\n    rfl)", "n = n", "exact h", "h"),
    ("(h : 1 = 1 := by decide)", "1 = 1", "exact h", "h"),
    ("(n : Nat := 3) (m : Nat := (fun x => x) n)", "n = n ∧ m = m", "exact ⟨rfl, rfl⟩", "⟨rfl, rfl⟩"),
    ('(s : String := "a := by (")', "s = s", "rfl", "rfl"),
    ('(s : String := r#"a := " by"#)', "s = s", "rfl", "rfl"),
    ("(c : Char := '\"')", "c = c", "rfl", "rfl"),
    ("(c : Char := '(')", "c = ':' ∨ True", "exact Or.inr trivial", "Or.inr trivial"),
    ("", 'r##"x"# := "## = r##"x"# := "##', "rfl", "rfl"),
    ("", "let x := 1; x = 1", "exact rfl", "rfl"),
    ("(h : let y := 2; y = 2)", "2 = 2", "exact h", "h"),
    ("", "have x : Nat := 1; 2 = 2", "exact rfl", "rfl"),
    ("", "(fun (x : Nat) => x) 1 = (by exact 1)", "exact rfl", "rfl"),
    ("", "(show Nat from 1) = 1", "exact rfl", "rfl"),
    ("(n : Nat)", "(match n with | 0 => True | _ => True) ∨ True", "exact Or.inr trivial", "Or.inr trivial"),
    ("", "({ fst := 1, snd := 2 } : Nat × Nat).1 = 1", "exact rfl", "rfl"),
    ("", "Prod.fst { fst := 1, snd := 2 : Nat × Nat } = 1", "exact rfl", "rfl"),
    ("⦃p q : Prop⦄ (hp : p) ⦃hq : q⦄", "p ∧ q", "exact ⟨hp, hq⟩", "⟨hp, hq⟩"),
    ("(«x := y» : Nat)", "«x := y» = «x := y»", "exact rfl", "rfl"),
    ("(α₁ β' : Nat) (hα : α₁ = β')", "β' = α₁", "exact hα.symm", "hα.symm"),
    ("(x : { n : Nat // n = n })", "x.1 = x.1", "exact rfl", "rfl"),
    ("(a b : Nat) (h : a = b)", "Eq (α := Nat) a b", "exact h", "h"),
    ("", "∀ (α : Type u) (a : α), a = a", "exact fun _ _ => rfl", "fun _ _ => rfl"),
    ("", "∀ n : Nat, n = n", "intro n\n  cases n with\n  | zero => rfl\n  | succ n => rfl", "fun _ => rfl"),
    ("", "∀ n : Nat, n = n", "intro n; rfl", "\n  | 0 => rfl\n  | _ + 1 => rfl"),
    ("", "(p : Prop) → p → p", "exact fun _ h => h", "\n  | _, h => h"),
    ("(a b : Nat) (h : a = b)", "b = a", "exact h ▸ rfl", "other\nwhere\n  other : b = a := h ▸ rfl"),
)
_NAMES = ("t{n}", "«a := {n}»", "«t by {n}»", "αβ₁'{n}", "A.B.t{n}", "A.«b := by {n}»", "t'{n}")
_MODIFIERS = (
    *(
        "",
        "",
        "@[simp] ",
        "/-- doc := by sorry -/\n",
        "-- theorem x : True := by\n",
        "protected ",
        "open Nat in\n",
    ),
    *("set_option maxRecDepth 1000 in\n", "open Nat List in\n/-- d -/\n@[local simp] ", "private "),
    *(
        "theorem above{n} (k : Nat := 1) : k = k := by rfl\n\n",
        "def d{n} := 1 -- := by\n\n",
        "@[simp, local simp] ",
    ),
)
#: What a header opens, with the text that closes it at the end of a file.
_OPENED = (
    *(("", ""), ("", ""), ("universe u v u_1\n", ""), ("open Nat\n", "")),
    *(
        ("namespace M\n", "end M\n"),
        ("noncomputable section\n", "end\n"),
        ("section S\nopen List\n", "end S\n"),
    ),
)
_SPACES = ("", "", " /- := by sorry -/", " -- := by\n   ", "\n   ")
#: Ends of statements.
_ENDS = (
    *(" :=", " := by", " :=\n  by", " := sorry", " := by sorry", " := by\n  sorry", "", " := by -- := by"),
    *(
        " /- := by -/ := by",
        " := by   \n\n",
        " := by\n  -- proof\n  sorry\n",
        " := /- proof -/ by",
        " -- open",
    ),
)
#: Models' answers; the first one stands below a statement that ends with `by`.
_TEXTS = (
    "So:\n```lean4\n{tactics}\n```",
    "```lean4\n{stem} := by\n  {tactics}\n```",
    "```lean4\n{stem}{term}\n```",
    "Here it is.\n```lean4\n{header}{stem} := by\n  {tactics}\n{closed}```\nDone.",
    "{stem} := by\n  {tactics}\n",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Honest:
    """A row of a dataset, the whole text of a program that proves it, and a model's answer that does."""

    name: str
    header: str
    statement: str
    program: str
    answer: str


def honest(seed: int, count: int) -> Iterator[Honest]:
    """Yield honest programs; the same seed gives the same ones."""
    chosen = random.Random(seed)
    for number in range(count):
        yield _made(chosen, number)


def _made(chosen: random.Random, number: int) -> Honest:
    binders, says, tactics, term = chosen.choice(_FACTS)
    opened, closed = chosen.choice(_OPENED)
    name = chosen.choice(_NAMES).replace("{n}", str(number))
    modifier = chosen.choice(_MODIFIERS).replace("{n}", str(number))
    tactics = tactics.replace("\n  ", "\n")
    if "simp" in modifier and "=" in says:  # Lean refuses `a = a` as a rule
        modifier = ""
    if modifier == "protected " and "." not in name:
        name = f"A.{name}"
    stem = f"{modifier}theorem {name}{chosen.choice(_SPACES)} {binders}{chosen.choice(_SPACES)} : {says}"
    proof = term if term.startswith("\n") else f" :=\n  {term}"
    indented = tactics.replace("\n", "\n  ")
    header = f"{HEADER}{opened}"
    end = chosen.choice(_ENDS)
    text = chosen.choice(_TEXTS if "by" in end else _TEXTS[1:])
    parts = {"header": header, "stem": stem, "term": proof, "tactics": indented, "closed": closed}
    by_tactics = f" := by\n  {indented}"
    program = f"{header}{stem}{chosen.choice([proof, by_tactics])}\n{closed}"
    answer = text
    for key, value in parts.items():
        answer = answer.replace(f"{{{key}}}", value)
    return Honest(name=name, header=header, statement=stem + end, program=program, answer=answer)
