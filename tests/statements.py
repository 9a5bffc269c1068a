"""Statements and what is handed in for them: proofs, and what is none."""

from __future__ import annotations

OPEN = "theorem goal (n : Nat) : n = n := sorry\n"
MATCHED = "(match 0 with | .zero => 1 | .succ _ => 2)"
PROVED = "theorem goal (n : Nat) : n = n := rfl\n"

#: A statement behind one that says the same, which is none of its proofs.
HELPED = f"theorem help (n : Nat) : n = n := sorry\n{OPEN}"

#: A statement and a proof of it.
HONEST = [
    (OPEN, PROVED),
    (OPEN, "theorem goal (m : Nat) : m = m := rfl\n"),
    (OPEN, "theorem goal : ∀ {n : Nat}, n = n := rfl\n"),
    (OPEN, "theorem goal (n : Nat) : n = n := by exact rfl\n"),
    (OPEN, "theorem help (n : Nat) : n = n := rfl\ntheorem goal (n : Nat) : n = n := help n\n"),
    (OPEN, "private theorem help (n : Nat) : n = n := rfl\ntheorem goal (n : Nat) : n = n := help n\n"),
    (OPEN, "def one : Nat := 1\ntheorem goal (n : Nat) : n = n := (fun _ => rfl) one\n"),
    (OPEN, "theorem goal (n : Nat) : n = n := aux n where aux (k : Nat) : k = k := rfl\n"),
    (OPEN, "axiom unused : False\n" + PROVED),
    (OPEN, "inductive Box where\n  | box (n : Nat)\n" + PROVED),
    (
        OPEN,
        "theorem all : ∀ n : Nat, n = n\n  | .zero => rfl\n  | .succ _ => rfl\n"
        "theorem goal (n : Nat) : n = n := all n\n",
    ),
    (
        "theorem goal (a b : Prop) (h : a ↔ b) : a = b := sorry\n",
        "theorem goal (a b : Prop) (h : a ↔ b) : a = b := propext h\n",
    ),
    (
        "universe u\ntheorem goal {α : Sort u} (a : α) : a = a := sorry\n",
        "universe u\ntheorem goal {α : Sort u} (a : α) : a = a := rfl\n",
    ),
    (
        "def double (n : Nat) : Nat := n + n\ntheorem goal : double 2 = 4 := sorry\n",
        "def double (n : Nat) : Nat := n + n\ntheorem goal : double 2 = 4 := rfl\n",
    ),
    (
        "inductive Tree where\n  | leaf\n  | node (t : Tree)\ntheorem goal (t : Tree) : t = t := sorry\n",
        "inductive Tree where\n  | leaf\n  | node (t : Tree)\ntheorem goal (t : Tree) : t = t := rfl\n",
    ),
    (
        'theorem goal : "é" = "é" ∧ 18446744073709551616 = 18446744073709551616 := sorry\n',
        'theorem goal : "é" = "é" ∧ 18446744073709551616 = 18446744073709551616 := ⟨rfl, rfl⟩\n',
    ),
    (
        f"theorem goal : {MATCHED} = 1 := sorry\n",
        f"def help : Nat := {MATCHED}\ntheorem goal : {MATCHED} = 1 := rfl\n",
    ),
    (
        "namespace A.B\ntheorem goal : True := sorry\nend A.B\n",
        "theorem A.B.goal : True := True.intro\n",
    ),
    (OPEN, "namespace A\n" + PROVED + "end A\n"),
    (OPEN, "private " + PROVED),
    (OPEN, PROVED.replace("goal", "other")),
    (OPEN, "theorem first (n : Nat) : n = n := rfl\n" + PROVED.replace("goal", "A.goal")),
]

TWO_SORTS = "theorem goal.{u, v} (α : Sort u) (β : Sort v) (γ : Sort u) "
#: Universes by other names, and in another order. Lean names those of `Sort _`, and sorts by names.
HONEST += [
    (
        "universe u\ntheorem goal {α : Sort u} (a : α) : a = a := sorry\n",
        "universe w\ntheorem goal {α : Sort w} (a : α) : a = a := rfl\n",
    ),
    (
        "theorem goal (α : Sort _) (a : α) : a = a := sorry\n",
        "universe u_1\ntheorem help {α : Sort u_1} (a : α) : a = a := rfl\n"
        "theorem goal (α : Sort _) (a : α) : a = a := help a\n",
    ),
    (
        "theorem goal.{u, v} (α : Type u) (β : Type v) (a : α) (b : β) : (a, b) = (a, b) := sorry\n",
        "universe v u\ntheorem goal (α : Type v) (β : Type u) (a : α) (b : β) : (a, b) = (a, b) := rfl\n",
    ),
    (
        "theorem goal.{u, v} (α : Type (max u v)) (a : α) : a = a := sorry\n",
        "theorem goal.{z, a} (α : Type (max z a)) (a : α) : a = a := rfl\n",
    ),
    (
        TWO_SORTS + "(f : α → β) : f = f := sorry\n",
        "theorem goal.{v, u} (α : Sort v) (β : Sort u) (γ : Sort v) (f : α → β) : f = f := rfl\n",
    ),
    (
        "def P.{u, v} (α : Sort u) (β : Sort v) : Prop := α = α\ntheorem goal : P Nat True := sorry\n",
        "def P.{x, a} (α : Sort x) (β : Sort a) : Prop := α = α\ntheorem goal : P Nat True := rfl\n",
    ),
]

#: A statement, what is no proof of it, and what is to be found.
NO_PROOFS: list[tuple[str, str, list[tuple[str, str]]]] = [
    (OPEN, OPEN, [("has_sorry", "goal")]),
    (OPEN, "theorem other : True := True.intro\n", [("target_missing", "goal")]),
    (OPEN, "namespace A\ntheorem goal (n : Nat) : n = 0 + n := sorry\nend A\n", [("target_missing", "goal")]),
    (OPEN, "theorem other (n : Nat) : n = n := sorry\n", [("has_sorry", "other")]),
    (OPEN, "theorem other.{u} (_ : Sort u) (n : Nat) : n = n := rfl\n", [("target_missing", "goal")]),
    (OPEN, "axiom other (n : Nat) : n = n\n", [("target_missing", "goal")]),
    (OPEN, "def other (n : Nat) : n = n := rfl\n", [("target_missing", "goal")]),
    (HELPED, "theorem help (n : Nat) : n = n := sorry\n", [("target_missing", "goal")]),
    (OPEN, "def goal (n : Nat) : n = n := rfl\n", [("not_a_theorem", "goal")]),
    (OPEN, "abbrev goal (n : Nat) : n = n := rfl\n", [("not_a_theorem", "goal")]),
    (OPEN, "opaque goal (n : Nat) : n = n := rfl\n", [("not_a_theorem", "goal")]),
    (OPEN, "unsafe def goal (n : Nat) : n = n := rfl\n", [("not_a_theorem", "goal"), ("unsafe", "goal")]),
    (OPEN, "axiom goal (n : Nat) : n = n\n", [("not_a_theorem", "goal"), ("axiom", "goal")]),
    (OPEN, "theorem goal (n : Nat) : 0 = 0 := rfl\n", [("statement_mismatch", "goal")]),
    (OPEN, "theorem goal : 1 = 1 := rfl\n", [("statement_mismatch", "goal")]),
    (
        OPEN,
        "section\nvariable (h : False)\ninclude h\ntheorem goal (n : Nat) : n = n := rfl\nend\n",
        [("statement_mismatch", "goal")],
    ),
    (
        "theorem goal.{u} (α : Type u) (a : α) : a = a := sorry\n",
        "theorem goal (α : Type) (a : α) : a = a := rfl\n",
        [("universe_mismatch", "goal")],
    ),
    (
        "theorem goal.{u} (α : Type u) (a : α) : a = a := sorry\n",
        "theorem goal.{u} (α : Type (u + 1)) (a : α) : a = a := rfl\n",
        [("statement_mismatch", "goal")],
    ),
    (
        "theorem goal.{u} (α : Sort u) (a : α) : a = a := sorry\n",
        "theorem goal.{u} (α : Type u) (a : α) : a = a := rfl\n",
        [("statement_mismatch", "goal")],
    ),
    (
        TWO_SORTS + "(f : α → β) : f = f := sorry\n",
        "theorem goal.{v, u} (α : Sort v) (β : Sort u) (γ : Sort u) (f : α → β) : f = f := rfl\n",
        [("statement_mismatch", "goal")],
    ),
    (
        "theorem goal.{u, v} (α : Type (max u v)) (a : α) : a = a := sorry\n",
        "theorem goal.{u, v} (α : Type (max u (v + 1))) (a : α) : a = a := rfl\n",
        [("statement_mismatch", "goal")],
    ),
    (
        "def P.{u, v} (α : Sort u) (β : Sort v) : Prop := α = α\ntheorem goal : P Nat True := sorry\n",
        "def P.{u, v} (β : Sort v) (α : Sort u) : Prop := α = α\ntheorem goal : P True Nat := rfl\n",
        [("statement_mismatch", "goal"), ("prerequisite_differs", "P")],
    ),
    (
        "theorem goal : 18446744073709551616 = 18446744073709551616 := sorry\n",
        "theorem goal : 18446744073709551617 = 18446744073709551617 := rfl\n",
        [("statement_mismatch", "goal")],
    ),
    (
        'theorem goal : "a" = "a" := sorry\n',
        'theorem goal : "b" = "b" := rfl\n',
        [("statement_mismatch", "goal")],
    ),
    (
        OPEN,
        "axiom cheat : ∀ p : Prop, p\ntheorem goal (n : Nat) : n = n := cheat _\n",
        [("axiom", "cheat")],
    ),
    (
        OPEN,
        "axiom cheat : False\ntheorem no : False := cheat\ntheorem goal (n : Nat) : n = n := no.elim\n",
        [("axiom", "cheat")],
    ),
    (
        "def Good (n : Nat) : Prop := n = 0\ntheorem goal : Good 0 := sorry\n",
        "def Good (n : Nat) : Prop := n = n\ntheorem goal : Good 0 := rfl\n",
        [("prerequisite_differs", "Good")],
    ),
    (
        "def Good : Prop := 0 = 1\ndef Fine : Prop := Good\ntheorem goal : Fine := sorry\n",
        "def Good : Prop := 0 = 0\ndef Fine : Prop := Good\ntheorem goal : Fine := rfl\n",
        [("prerequisite_differs", "Good")],
    ),
    (
        "def P : Prop := False\ntheorem goal : P := sorry\n",
        "inductive P : Prop where\n  | p\ntheorem goal : P := P.p\n",
        [("prerequisite_differs", "P")],
    ),
    (
        "inductive P : Prop where\n  | p (h : False)\ntheorem goal : P := sorry\n",
        "inductive P : Prop where\n  | p (h : True)\ntheorem goal : P := P.p True.intro\n",
        [("prerequisite_differs", "P.p"), ("prerequisite_differs", "P.rec")],
    ),
    (
        "structure S where\n  n : Nat\ntheorem goal (s : S) : s.n = 0 := sorry\n",
        "structure S where\n  m : Nat\ndef S.n (_ : S) := 0\ntheorem goal (s : S) : s.n = 0 := rfl\n",
        [("prerequisite_differs", "S.n")],
    ),
    (
        f"theorem goal : {MATCHED} = 1 := sorry\n",
        f"theorem goal : {MATCHED.replace('.succ _ => 2', '_ => 1')} = 1 := rfl\n",
        [("statement_mismatch", "goal")],
    ),
    (
        f"theorem goal : {MATCHED} = 1 := sorry\n",
        "def goal.match_1.{u} (_ : Nat → Sort u) (_ : Nat) : Nat := 1\n"
        "theorem goal : goal.match_1 (fun _ => Nat) 0 = 1 := rfl\n",
        [("statement_mismatch", "goal")],
    ),
    (
        OPEN,
        "instance (priority := high) : OfNat Nat 7 := ⟨8⟩\ntheorem goal (n : Nat) : n = n := rfl\n",
        [],
    ),
]
