"""Sorries of statements: a proof may repeat them, and says what it rests on; real checks by one checker."""

from __future__ import annotations

from farm_workers.checking.asked import check_of
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import LeanEnvironment

from farm.judging.assurance import Assurance
from farm.judging.report import Report
from farm.judging.verdict import judge
from farm.limits import Limits
from farm.manifest.entry import Entry
from farm.task import Task
from tests.commands import HEADER

OPEN = "theorem t (h : (sorry : False) = (sorry : False)) : {} := by"
BINDER = "theorem t (p : Prop) (f : p → Nat) : (∀ h : p, f h = f (sorry)) ∨ True := by"
FAMILY = "theorem t (F : Nat → Type) (g : (n : Nat) → F n) : {} ∨ True := by"
EVERY = "theorem t (h : {} p : Prop{} ((sorry : p) = (sorry : p))) : 1 = 2 := by"
#: A dataset's lemma, of whose proof the last theorem's statement speaks.
LEMMA = "theorem lemma_ : 1 = 2 := by sorry\ntheorem t (h : lemma_ = lemma_) : {} := by"
DEFINED = "noncomputable def x : {} := by sorry\ntheorem t (h : x = x) : {} := by"
ALIAS = "def T := {}\nnoncomputable def x : T := by sorry\ntheorem t (h : x = x) : {} := by"
VALUE = "abbrev sol : Nat := sorry\ntheorem t (h : sol = 1) : {} := by"
#: Statements, proofs, and what a proof is said to rest on; None if it has a sorry of its own.
SORRIES: list[tuple[str, str, list[str] | None]] = [
    (BINDER, "exact Or.inr trivial", ["t"]),
    (FAMILY.format("(∀ n, g n = (sorry : F n))"), "exact Or.inr trivial", ["t"]),
    (FAMILY.format("(∃ n, g n = (sorry : F n))"), "exact Or.inr trivial", ["t"]),
    (FAMILY.format("(∀ n, ∃ m, g n = g n ∧ g m = (sorry : F m))"), "exact Or.inr trivial", ["t"]),
    (OPEN.format("1 = 1"), "exact rfl", []),
    (OPEN.format("1 = 1"), "have _ := h\nexact rfl", ["t"]),
    (OPEN.format("1 = 2"), "exact absurd (sorry : False) id", ["t"]),
    (OPEN.format("1 = 2"), "exact False.elim sorry", ["t"]),
    (OPEN.format("1 = 2"), "exact (fun x : False => False.elim x) sorry", ["t"]),
    (OPEN.format("1 = 2"), "cases (sorry : False)", ["t"]),
    (OPEN.format("1 = 2"), "exact sorry", None),
    (OPEN.format("1 = 2"), "exact (sorry : 1 = 2 ∧ True).left", None),
    (OPEN.format("1 = 2"), "exact (sorry : ∀ p : Prop, p) (1 = 2)", None),
    (EVERY.format("∀", ","), "exact (fun p : Prop => (sorry : p)) (1 = 2)", None),
    (EVERY.format("∃", ","), "exact (fun p : Prop => (sorry : p)) (1 = 2)", None),
    (EVERY.format("∀", ","), "exact (sorry : 1 = 2)", None),
    ("theorem t (p : Prop) (f : p → Nat) : f sorry = f sorry → p := by", "exact fun _ => sorry", ["t"]),
    ("theorem t (p q : Prop) (f : p → Nat) : f sorry = f sorry → q := by", "exact fun _ => sorry", None),
    ("theorem t (p q : Prop) (f : q → Nat) : f sorry = f sorry → p := by", "exact fun _ => sorry", None),
    ("theorem t (h : (sorry : Prop)) : True := by", "exact trivial", []),
    (LEMMA.format("3 = 3"), "exact rfl", []),
    (LEMMA.format("1 = 2"), "exact lemma_", ["lemma_"]),
    (LEMMA.format("1 = 2"), "exact (fun x : 1 = 2 => x) lemma_", ["lemma_"]),
    (LEMMA.format("1 = 2 ∧ lemma_ = lemma_"), "exact And.intro lemma_ rfl", ["lemma_"]),
    (DEFINED.format("False", "3 = 3"), "exact rfl", []),
    (DEFINED.format("False", "1 = 2"), "exact False.elim x", ["x"]),
    (DEFINED.format("{ n : Nat // n = 1 ∧ n = 2 }", "1 = 2"), "exact x.2.1.symm.trans x.2.2", ["x"]),
    (DEFINED.format("∀ p : Prop, p", "1 = 2"), "exact x (1 = 2)", ["x"]),
    (
        DEFINED.format("Nat × { n : Nat // n = 1 ∧ n = 2 }", "1 = 2"),
        "exact x.2.2.1.symm.trans x.2.2.2",
        ["x"],
    ),
    (DEFINED.format("Nat × List Nat → Prop × Type", "x = x"), "exact rfl", []),
    (ALIAS.format("Nat → Nat", "x = x"), "exact rfl", []),
    (ALIAS.format("False", "1 = 2"), "exact False.elim x", ["x"]),
    (VALUE.format("sol = sol"), "exact rfl", []),
    (VALUE.format("1 = sol"), "exact h.symm", []),
]


def checked(checker: Checker, core: LeanEnvironment, statement: str, proof: str, **fields: object) -> Report:
    """Return the report on a proof of a statement, or on a whole program where a field has one."""
    texts = {"context": "", "predicted_proof": None, "generation": proof, "formal_statement": statement}
    texts |= {name: fields.pop(name) for name in ("context", "predicted_proof") if name in fields}
    header = "" if texts["context"] else HEADER
    entry = Entry(path="", line=1, name="", header=header, task=Task.of(fields), **texts)  # type: ignore[arg-type]
    return checker.check(check_of(entry, Limits(wall_seconds=30.0), Assurance()), core)


def test_a_sorry_of_the_statement_is_told_and_any_other_refused(
    checker: Checker, core: LeanEnvironment
) -> None:
    for statement, proof, rests_on in SORRIES:
        report = checked(checker, core, statement, proof)
        reason = "has_sorry" if rests_on is None else "ok"
        assert judge(report).reason == reason, (statement, proof, judge(report).detail)
        assert report.audit is not None
        assert report.audit.statement_has_sorry, (statement, proof)
        if rests_on is not None:
            assert list(report.rests_on_sorry_of) == rests_on, (statement, proof)
            assert ("a sorry of the dataset" in report.trusts) == bool(rests_on)


def test_the_same_holds_where_the_lemma_stands_in_a_shared_context(
    checker: Checker, core: LeanEnvironment
) -> None:
    lemma, _, statement = LEMMA.partition("\n")
    for goal, proof, rests_on in (("3 = 3", "exact rfl", ()), ("1 = 2", "exact lemma_", ("lemma_",))):
        stated = statement.format(goal)
        report = checked(checker, core, stated, proof, context=f"{HEADER}{lemma}\n")
        assert (judge(report).reason, report.rests_on_sorry_of) == ("ok", rests_on)


def test_a_disproof_by_a_sorry_of_the_statement_is_none(checker: Checker, core: LeanEnvironment) -> None:
    stated = OPEN.format("1 = 2")
    for proof, reason in (
        ("exact False.elim (sorry : False)", "has_sorry"),
        ("intro h\nexact Nat.noConfusion (h sorry) (fun h => Nat.noConfusion h)", "has_sorry"),
    ):
        assert judge(checked(checker, core, stated, proof, task="disprove")).reason == reason
    false = "theorem t (h : (sorry : Prop)) (p : Prop) : p ∨ p := by"
    refuted = "intro h\nexact Or.elim (h sorry False) id id"
    assert judge(checked(checker, core, false, refuted, task="disprove")).reason == "has_sorry"
    honest = "theorem t (p : Prop) (h : (sorry : Prop) → p) : 1 = 2 := by"
    refuted = "intro h\nexact Nat.noConfusion (h True (fun _ => trivial)) (fun h => Nat.noConfusion h)"
    assert judge(checked(checker, core, honest, refuted, task="disprove")).reason == "disproved"


def test_a_part_by_a_sorry_of_its_statement_counts_as_no_part(
    checker: Checker, core: LeanEnvironment
) -> None:
    last = "theorem b : 2 = 3 := by"
    for part, proof, standing in (
        ("(h : (sorry : False) = sorry) : 1 = 2", "absurd (sorry : False) id", "rests_on_open"),
        ("(h : (sorry : False) = sorry) : 1 = 1", "rfl", "proved"),
        ("(h : lemma_ = lemma_) : 1 = 2", "lemma_", "rests_on_open"),
        ("(h : lemma_ = lemma_) : 1 = 1", "rfl", "proved"),
    ):
        lemma = LEMMA.partition("\n")[0]
        program = f"{HEADER}{lemma}\ntheorem a {part} := {proof}\ntheorem b : 2 = 3 := sorry\n"
        statement = f"{lemma}\ntheorem a {part} := by sorry\n{last}"
        report = checked(checker, core, statement, "", predicted_proof=program, permit_sorry=["b"])
        assert judge(report).reason == "partial", judge(report).detail
        standings = {each.name: each.verdict for each in (report.audit and report.audit.parts) or ()}
        assert (standings["a"], standings["b"]) == (standing, "open")


def test_a_part_that_may_stay_open_is_no_place_for_an_axiom(checker: Checker, core: LeanEnvironment) -> None:
    statement = "theorem a : 1 = 2 := by sorry\ntheorem b : 2 = 2 := by"
    for above, reason, standing in (
        ("theorem a : 1 = 2 := sorry", "partial", "open"),
        ("axiom a : 1 = 2", "axiom", "axiom"),
        ("axiom x : 1 = 2\ntheorem a : 1 = 2 := x", "axiom", "refused"),
        ("axiom x : False\ntheorem help : 1 = 2 := x.elim\ntheorem a : 1 = 2 := help", "axiom", "refused"),
    ):
        program = f"{HEADER}{above}\ntheorem b : 2 = 2 := rfl\n"
        report = checked(checker, core, statement, "", predicted_proof=program, permit_sorry=["a"])
        assert (judge(report).reason, report.audit is not None) == (reason, True), judge(report).detail
        assert [each.verdict for each in (report.audit and report.audit.parts) or ()] == [standing, "proved"]


def forged(line: int, number: str = "{}", text: str = "_stdin") -> str:
    """Return a sorry of type `Nat` with the label that Lean gives one at column 1 of a line."""
    label = f'(Lean.Name.str Lean.Name.anonymous "{text}")'
    for each in (line, 1, line, 6, 1, 6):
        label = f"(Lean.Name.num {label} {number.format(each)})"
    for each in ("_sorry", "_@", text):
        label = f'(Lean.Name.str {label} "{each}")'
    label = f"(Lean.Name.num {label} 890180347)"
    for each in ("_hygCtx", "_hyg"):
        label = f'(Lean.Name.str {label} "{each}")'
    return f"(sorryAx (Lean.Name → Nat) false (Lean.Name.num {label} 4))"


ONE, OTHER = forged(5), forged(6)
#: Statements with sorries of their own, that a program repeats below a lemma; and the end of their proofs.
MOVED = (
    ("theorem t (h : (sorry : Prop)) : True := by", "trivial"),
    (
        "theorem t (n : Nat) : (sorry : Nat) = n ∨ n + sorry = sorry ∨ True := by",
        "exact Or.inr (Or.inr trivial)",
    ),
    ("def sol (n : Nat) : Nat := n + sorry\ntheorem t : sol = sol := by", "rfl"),
    ("class C where v : Nat\ninstance c : C := ⟨sorry⟩\ntheorem t : C.v = C.v := by", "rfl"),
    (
        "inductive P : Nat → Prop where\n  | mk : P sorry\ntheorem t : P sorry → True := by",
        "exact fun _ => trivial",
    ),
    ("theorem a : 1 = 2 := by sorry\ntheorem t : 2 = 2 := by", "rfl"),
    ("abbrev sol : Nat := sorry\ntheorem t : sol = sol := by", "rfl"),
)
TWO = "def a : Nat := sorry\ndef b : Nat := sorry\ntheorem t : a = b := by"
TWO_FORGED = "def a : Nat := {}\ndef b : Nat := {}\ntheorem t : a = b := by\n  rfl\n"
#: Programs that make one sorry of two that the statement has: a statement, and what stands in its place.
ONE_OF_TWO = {
    "one label": (TWO, TWO_FORGED.format(ONE, ONE)),
    "a number that is computed": (TWO, TWO_FORGED.format(ONE, forged(5, "({} + 0)"))),
    "a number that is a successor": (TWO, TWO_FORGED.format(forged(0), forged(0, "({} * 1)"))),
    "a number with another instance": (
        TWO,
        f"instance (priority := 5000) : OfNat Nat 7 := ⟨5⟩\n{TWO_FORGED.format(ONE, forged(7))}",
    ),
    "a definition for the label": (
        TWO,
        f"abbrev one : Nat := 5\n{TWO_FORGED.format(ONE, ONE.replace('5)', 'one)'))}",
    ),
    "a function of the label": (
        TWO,
        TWO_FORGED.format(
            ONE,
            ONE.replace(
                "(sorryAx (Lean.Name → Nat) false ", "((fun n => sorryAx (Lean.Name → Nat) false n) "
            ),
        ),
    ),
    "the label of the other": (TWO, TWO_FORGED.format(forged(3), forged(3))),
    "a lemma about another sorry": (
        "theorem a : (sorry : Nat) = 1 := by sorry\ntheorem t : (sorry : Nat) = 1 := by",
        f"theorem a : {ONE} = 1 := by sorry\ntheorem t : {ONE} = 1 := by\n  exact a\n",
    ),
    "a hypothesis about another sorry": (
        "theorem t (h : (sorry : Nat) = 1) : (sorry : Nat) = 1 := by",
        f"theorem t (h : {ONE} = 1) : {ONE} = 1 := by\n  exact h\n",
    ),
    "an instance": (
        "class C where v : Nat\ninstance c : C := ⟨sorry⟩\ntheorem t : C.v = (sorry : Nat) := by",
        f"class C where v : Nat\ninstance c : C := ⟨{ONE}⟩\ntheorem t : C.v = {ONE} := by\n  rfl\n",
    ),
    "a constructor": (
        "inductive P : Nat → Prop where\n  | mk : P sorry\ntheorem t : P sorry := by",
        f"inductive P : Nat → Prop where\n  | mk : P {ONE}\ntheorem t : P {ONE} := by\n  exact P.mk\n",
    ),
    "a part of a match": (
        "def x (n : Nat) : Nat := match n with | 0 => sorry | k + 1 => k\n"
        "theorem t : x 0 = (sorry : Nat) := by",
        f"def x (n : Nat) : Nat := match n with | 0 => {ONE} | k + 1 => k\n"
        f"theorem t : x 0 = {ONE} := by\n  rfl\n",
    ),
    "a sorry of another module": (
        "theorem t : (sorry : Nat) = 1 ∨ True := by",
        f"theorem t : {forged(5, text='Core')} = 1 ∨ True := by\n  exact Or.inr trivial\n",
    ),
}


def test_a_sorry_of_the_statement_may_stand_elsewhere_in_the_program(
    checker: Checker, core: LeanEnvironment
) -> None:
    for statement, proof in MOVED:
        program = f"{HEADER}theorem help : True := trivial\n\n{statement}\n  {proof}\n"
        report = checked(checker, core, statement, "", predicted_proof=program)
        assert judge(report).reason == "ok", (statement, judge(report).detail)
    two = TWO.replace("a = b", "a = b ∨ True")
    program = HEADER + TWO_FORGED.format(ONE, OTHER).replace("a = b", "a = b ∨ True")
    report = checked(checker, core, two, "", predicted_proof=program.replace("rfl", "exact Or.inr trivial"))
    assert judge(report).reason == "ok", judge(report).detail  # so the others fail for their labels


def test_two_sorries_of_the_statement_never_become_one(checker: Checker, core: LeanEnvironment) -> None:
    for name, (statement, program) in ONE_OF_TWO.items():
        report = checked(checker, core, statement, "", predicted_proof=HEADER + program)
        assert report.answer.first_error is None, (name, report.answer.first_error)
        assert judge(report).reason in ("statement_mismatch", "has_sorry"), (name, judge(report).detail)
    # A lemma of a context that is another module speaks of a sorry that the statement does not have.
    context = f"{HEADER}theorem a : (sorry : Nat) = 1 := sorry\n"
    program = f"{context}theorem t : type_of% @a := by\n  exact a\n"
    for _ in range(2):
        report = checked(
            checker, core, "theorem t : (sorry : Nat) = 1 := by", "", context=context, predicted_proof=program
        )
        assert judge(report).reason in ("statement_mismatch", "has_sorry"), judge(report).detail


#: What may stand below an option that makes errors of warnings, and the reason of the verdict.
STRICT = "set_option warningAsError true\n"
BELOW_STRICT = (
    ("theorem t (p : Prop) (h : p) : p := by", "exact h", "ok", {}),
    ("theorem t (p : Prop) (h : p) : p := by", "sorry", "has_sorry", {}),
    ("theorem t (p : Prop) (h : p) : p := by", "exact h p", "error", {}),
    ("theorem t (p : Prop) : p := by", "", "stated", {"task": "statement"}),
    ("theorem t (p : Prop) : p := by", "intro h\nexact h False", "bad_challenge", {"task": "disprove"}),
    ("theorem a : 1 = 1 := by sorry\ntheorem t (p : Prop) (h : p) : p := by", "exact h", "bad_challenge", {}),
    ("theorem t (h : (sorry : Prop)) : 1 = 1 := by", "rfl", "bad_challenge", {}),
)


def test_the_farms_own_sorry_is_no_error_where_warnings_are(checker: Checker, core: LeanEnvironment) -> None:
    for statement, proof, reason, task in BELOW_STRICT:
        for above, below in ((HEADER + STRICT, ""), ("", STRICT)):
            report = checked(checker, core, below + statement, proof, context=above, **task)
            verdict = judge(report)
            assert verdict.reason == reason, (statement, above, verdict.detail)
            assert reason != "bad_challenge" or "leave `warningAsError` out" in verdict.detail
