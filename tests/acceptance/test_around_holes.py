"""What stands around a hole: modules that differ from the draft's in more than the hole fill none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from farm_workers.audit.declarations import Module
from farm_workers.audit.findings import Word
from farm_workers.audit.holes import judge_hole
from farm_workers.audit.olean import Olean
from farm_workers.box import once as box
from farm_workers.box.isolation import Isolation
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.lean.compile import LeanRunner
from farm_workers.lean.way import Question

from farm.lean_text.positions import line_and_column
from farm.limits import Limits
from tests.commands import HEADER
from tests.processes import PATIENCE

Compile = Callable[[str], Module]

#: A theorem with two holes, and with the first one filled.
OPEN = "theorem a (p : Prop) (h : p) : p ∧ p := ⟨sorry, sorry⟩\n"
FILLED = "theorem a (p : Prop) (h : p) : p ∧ p := ⟨h, sorry⟩\n"
_NEXT = "theorem z : True := sorry\n"
_RECURSIVE = "theorem r : (n : Nat) → n = n ∧ True\n  | n + 1 => have := r n; ⟨rfl, trivial⟩\n"
_PATTERN = "theorem m (p q : Prop) (h : p ∧ q) : q ∧ p := by\n  have ⟨a, b⟩"
_KEPT = "theorem t (p : Prop) (h : p) : p := by\n  have k : p ∧ (0 : Nat) = 1 := sorry\n  exact k.1\n"


@pytest.fixture(scope="module")
def compile_(isolation: Isolation, core: LeanEnvironment) -> Iterator[Compile]:
    """Return how to compile a text below the header, with its examples in the module."""
    leans = LeanRunner(isolation, way="forked", most_images=1)
    known = dict[str, bytes]()

    def compile_(text: str) -> Module:
        if text not in known:
            limits = Limits(wall_seconds=20 * PATIENCE)
            asked = replace(Question.of(HEADER + text, core, limits, box.never), moved=(0, 0))
            with leans.compiled(asked) as reply:
                assert reply.report.answer.first_error is None, text
                assert reply.module is not None
                known[text] = reply.module.read()
        return Module(Olean(known[text]))

    yield compile_
    leans.close()


def words(compile_: Compile, draft: str, other: str) -> set[Word]:
    """Return the words of the findings against a text in the place of a draft whose first hole it fills."""
    program = HEADER + draft
    place = line_and_column(program, program.index("sorry"))
    return {each.word for each in judge_hole(compile_(other), compile_(draft), place)}


#: Texts below the two theorems: one behind the hole, and one in its place.
AROUND = {
    "a value": ("def n : Nat := 1\n", "def n : Nat := 2\n"),
    "a value by an instance": (
        "def n : Nat := 100\n",
        "instance (priority := 9000) : OfNat Nat 100 := ⟨0⟩\ndef n : Nat := 100\n",
    ),
    "a value in a lower case": (
        "def n : Nat := match 0 with | 0 => 1 | _ => 2\n",
        "def n : Nat := match 0 with | 0 => 2 | _ => 1\n",
    ),
    "a pattern": (
        "def n (k : Nat) : Nat := match k with | 0 => 1 | _ => 2\n",
        "def n (k : Nat) : Nat := match k with | 1 => 1 | _ => 2\n",
    ),
    "a proposition": (
        "abbrev P : Prop := 1 = 1\ntheorem u : P := rfl\n",
        "abbrev P : Prop := True\ntheorem u : P := trivial\n",
    ),
    "the proof of a lemma": ("theorem u : 1 = 1 := rfl\n", "theorem u : 1 = 1 := Eq.trans rfl rfl\n"),
    "a lemma that is gone": ("theorem u : 1 = 1 := rfl\n", ""),
    "a lemma that is assumed": ("theorem u : 1 = 1 := rfl\n", "axiom u : 1 = 1\n"),
    "a lemma that is a definition": ("theorem u : 1 = 1 := rfl\n", "def u : 1 = 1 := rfl\n"),
    "a lemma that is open": ("theorem u : 1 = 1 := rfl\n", "theorem u : 1 = 1 := sorry\n"),
    "a lemma of another namespace": (
        "namespace N\ntheorem u : 1 = 1 := rfl\nend N\n",
        "theorem u : 1 = 1 := rfl\n",
    ),
    "constructors": ("inductive T where | x | y\n", "inductive T where | y | x\n"),
    "another constructor": ("inductive T where | x\n", "inductive T where | x | y\n"),
    "fields": (
        "structure S where\n  (a b : Nat)\n",
        "structure S where\n  (b a : Nat)\n",
    ),
    "the default of a field": (
        "structure S where\n  a : Nat := 1\n",
        "structure S where\n  a : Nat := 2\n",
    ),
    "an instance": (
        "class C where\n  v : Nat\ninstance c : C := ⟨1⟩\n",
        "class C where\n  v : Nat\ninstance c : C := ⟨2⟩\n",
    ),
    "the instance that is found": (
        "class C where\n  v : Nat\ninstance c : C := ⟨1⟩\ndef n : Nat := C.v\n",
        "class C where\n  v : Nat\ninstance c : C := ⟨1⟩\ninstance d : C := ⟨2⟩\ndef n : Nat := C.v\n",
    ),
    "an opaque value": ("opaque o : Nat := 3\n", "opaque o : Nat := 4\n"),
    "a private value": ("private def n : Nat := 3\n", "private def n : Nat := 4\n"),
    "a private name": ("private def n : Nat := 3\n", "def n : Nat := 3\n"),
    "a universe": (
        "def i.{u} (α : Sort u) (a : α) : α := a\n",
        "def i.{u} (α : Type u) (a : α) : α := a\n",
    ),
    "a value under a name like Lean's": (
        "def n : Nat := match 0 with | 0 => 1 | _ => 2\n",
        "def n._x_1 : Nat := 1\ndef n : Nat := n._x_1\n",
    ),
    "a proof within a value": (
        "def s : {n : Nat // n = 3} := ⟨3, rfl⟩\n",
        "def s : {n : Nat // n = 3} := ⟨1 + 2, rfl⟩\n",
    ),
    "an example": ("example : 1 = 1 := rfl\n", "example : 2 = 2 := rfl\n"),
    "an example that is gone": ("example : 1 = 1 := rfl\n", "\n"),
    "an axiom more": ("", "axiom ax : True\n"),
    "a theorem more": ("", "theorem u : True := trivial\n"),
    "an open theorem more": ("", "theorem u : True := sorry\n"),
}


@pytest.mark.parametrize(("draft", "other"), AROUND.values(), ids=AROUND)
def test_an_answer_changes_nothing_around_its_hole(compile_: Compile, draft: str, other: str) -> None:
    assert words(compile_, OPEN + draft, FILLED + draft) == set()
    assert words(compile_, OPEN + draft, FILLED + other) - {Word.AXIOM}


#: Whole texts with a hole, and others in their place.
WITHIN = {
    "another type": (_KEPT, _KEPT.replace("(0 : Nat) = 1 := sorry", "True := ⟨h, trivial⟩")),
    "another proof": (_KEPT, "theorem t (p : Prop) (h : p) : p := h\n"),
    "another type before another hole": (
        "theorem t (p : Prop) : p := by\n  have k : (0 : Nat) = 1 := sorry\n  sorry\n",
        "theorem t (p : Prop) : p := by\n  have k : True := trivial\n  sorry\n",
    ),
    "another type of data": (
        "theorem t : True := by\n  have k : {n : Nat // n = 3} := sorry\n  exact trivial\n",
        "theorem t : True := by\n  have k : Nat := 5\n  exact trivial\n",
    ),
    "another type of a function": (
        "theorem t (p : Prop) (h : p) : p := (sorry : (n : Nat) → (0 : Nat) = 1 → p) 0 sorry\n",
        "theorem t (p : Prop) (h : p) : p := (fun (n : Nat) (_ : (0 : Nat) = 1) => h) 0 sorry\n",
    ),
    "another value where a function is applied": (
        f"def f (b : Nat) : Nat := (sorry : Nat → Nat) b\n{_NEXT}",
        f"def f (b : Nat) : Nat := 3\n{_NEXT}",
    ),
    "a witness that the draft chooses": (
        "theorem t : ∃ n : Nat, n = n := by\n  refine ⟨?w, ?h⟩\n  case h => sorry\n  all_goals exact 5\n",
        "theorem t : ∃ n : Nat, n = n := by\n  refine ⟨?w, ?h⟩\n  case h => exact (rfl : 7 = 7)\n"
        "  all_goals exact 5\n",
    ),
    "a proposition that the draft chooses": (
        "theorem t : ∃ r : Prop, r := by\n  refine ⟨?r, ?h⟩\n  case h => sorry\n  all_goals exact 0 = 1\n",
        "theorem t : ∃ r : Prop, r := by\n  refine ⟨?r, ?h⟩\n  case h => exact trivial\n"
        "  all_goals exact 0 = 1\n",
    ),
    "the other hole too": (OPEN, "theorem a (p : Prop) (h : p) : p ∧ p := ⟨h, h⟩\n"),
    "another type of the other hole": (
        OPEN,
        "theorem a (p : Prop) (h : p) : p ∧ p := ⟨h, (sorry : True → p) trivial⟩\n",
    ),
    "a sorry in the answer": (OPEN, "theorem a (p : Prop) (h : p) : p ∧ p := ⟨absurd h sorry, sorry⟩\n"),
    "a sorry in a lemma of the answer": (
        OPEN,
        "theorem a._proof_9 (p : Prop) : p := sorry\n"
        "theorem a (p : Prop) (h : p) : p ∧ p := ⟨a._proof_9 p, sorry⟩\n",
    ),
    "an axiom in the answer": (
        OPEN,
        "axiom ax : False\ntheorem a (p : Prop) (h : p) : p ∧ p := ⟨ax.elim, sorry⟩\n",
    ),
    "another statement": (OPEN, "theorem a (p : Prop) (h : p ∧ p) : p ∧ p := ⟨h.1, sorry⟩\n"),
    "more than the hole": (
        "def s : {n : Nat // n = 3 ∧ True} := ⟨3, sorry, trivial⟩\n",
        "def s : {n : Nat // n = 3 ∧ True} := ⟨3, rfl, True.intro⟩\n",
    ),
    "no hole": (OPEN, OPEN),
}


@pytest.mark.parametrize(("draft", "other"), WITHIN.values(), ids=WITHIN)
def test_an_answer_has_the_type_of_its_hole_and_changes_nothing_else(
    compile_: Compile, draft: str, other: str
) -> None:
    assert words(compile_, draft, other)


#: Honest texts in the place of drafts, where Lean names or elaborates other parts in another way.
HONEST = {
    "lines that move": (
        OPEN + _NEXT,
        f"theorem a (p : Prop) (h : p) : p ∧ p := ⟨by\n  exact h, sorry⟩\n{_NEXT}",
    ),
    "a lemma that Lean uses again": (
        f"{OPEN}def e (n : Nat) : {{m : Nat // m = n}} := ⟨n, by rfl⟩\n",
        "theorem a (p : Prop) (h : p) : p ∧ p := ⟨by\n  have : {m : Nat // m = 3} := ⟨3, rfl⟩\n  exact h, "
        "sorry⟩\n"
        "def e (n : Nat) : {m : Nat // m = n} := ⟨n, by rfl⟩\n",
    ),
    "a match that Lean uses again": (
        "theorem t (n : Nat) : n = n ∧ True := ⟨by\n  sorry, sorry⟩\n"
        "theorem u (n : Nat) : n = n := match n with | 0 => rfl | _ => rfl\n",
        "theorem t (n : Nat) : n = n ∧ True := ⟨by\n  match n with | 0 => rfl | _ => rfl, sorry⟩\n"
        "theorem u (n : Nat) : n = n := match n with | 0 => rfl | _ => rfl\n",
    ),
    "a lemma of a definition": (
        f"def d (n : Nat) (h : 0 = n) : {{m : Nat // m = n}} := ⟨0, sorry⟩\n{_NEXT}",
        f"def d (n : Nat) (h : 0 = n) : {{m : Nat // m = n}} := ⟨0, Eq.trans h rfl⟩\n{_NEXT}",
    ),
    "no lemma of a definition": (
        f"def d (n : Nat) (h : 0 = n) : {{m : Nat // m = n}} := ⟨0, sorry⟩\n{_NEXT}",
        f"def d (n : Nat) (h : 0 = n) : {{m : Nat // m = n}} := ⟨0, h⟩\n{_NEXT}",
    ),
    "a number that a proof is about": (
        f"theorem w : ∃ n : Nat, n = 2 + 3 := ⟨sorry, sorry⟩\n{_NEXT}",
        f"theorem w : ∃ n : Nat, n = 2 + 3 := ⟨5, sorry⟩\n{_NEXT}",
    ),
    "a value": (
        f"def f (n : Nat) : Nat := sorry\ntheorem g : f 1 = f 1 := rfl\n{_NEXT}",
        f"def f (n : Nat) : Nat := n\ntheorem g : f 1 = f 1 := rfl\n{_NEXT}",
    ),
    "a case of a recursion": (
        f"{_RECURSIVE}  | 0 => ⟨sorry, sorry⟩\n",
        f"{_RECURSIVE}  | 0 => ⟨rfl, sorry⟩\n",
    ),
    "a part of a pattern": (
        f"{_PATTERN} := (sorry : p ∧ q)\n  exact ⟨b, sorry⟩\n",
        f"{_PATTERN} := (h : p ∧ q)\n  exact ⟨b, sorry⟩\n",
    ),
}


@pytest.mark.parametrize(("draft", "other"), HONEST.values(), ids=HONEST)
def test_names_of_leans_own_and_moved_lines_are_no_changes(compile_: Compile, draft: str, other: str) -> None:
    assert words(compile_, draft, other) == set()
