"""Forbidden tactics and constants, on real Lean: what is caught, and what is not meant."""

from __future__ import annotations

from farm_workers.checking.asked import check_of
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import LeanEnvironment

from farm.judging.assurance import Assurance
from farm.judging.report import Report
from farm.judging.verdict import Reason, judge
from farm.limits import Limits
from farm.manifest.entry import Entry
from farm.task import Task
from tests.commands import HEADER
from tests.processes import PATIENCE

STATEMENT = "theorem t (p q : Prop) (h : p ∧ q) : q ∧ p := by"


def checked(
    checker: Checker,
    core: LeanEnvironment,
    answer: str,
    *forbid: str,
    statement: str = STATEMENT,
    context: str = "",
) -> Report:
    """Check an answer to a statement: a proof of it, or a whole program in a code block."""
    entry = Entry(
        path="",
        line=1,
        name="t",
        header="" if context else HEADER,
        context=context,
        formal_statement=statement,
        generation=f"```lean4\n{answer}\n```",
        predicted_proof="",
        task=Task.of({"forbid": forbid}),
    )
    return checker.check(check_of(entry, Limits(wall_seconds=20 * PATIENCE), Assurance()), core)


#: Answers, what is forbidden, and whether they use it.
ANSWERS = [
    ("  exact ⟨h.2, h.1⟩", ["simp"], False),
    ("  exact ⟨h.2, h.1⟩", ["exact"], True),
    ("  first | simp | exact ⟨h.2, h.1⟩", ["simp"], True),
    ("  have e : True := by trivial\n  exact ⟨h.2, h.1⟩", ["trivial"], True),
    ("  have e : True := by trivial\n  exact ⟨h.2, h.1⟩", ["Lean.Parser.Tactic.tacticTrivial"], True),
    ("  have e : True := trivial\n  exact ⟨h.2, h.1⟩", ["Lean.Parser.Tactic.tacticTrivial"], False),
    ("  have e : 1 = 1 := by rfl\n  exact ⟨h.2, h.1⟩", ["eq_refl"], True),
    ("  refine ⟨by exact h.2, by exact h.1⟩", ["exact"], True),
    ("  refine ⟨show q from h.2, h.1⟩", ["show"], False),
    ("  constructor\n  · simpa using h.2\n  · exact h.1", ["simp"], False),
    ("  exact ⟨h.2, h.1⟩", ["And.left"], True),
    ("  exact And.intro h.2 h.1", ["And", "funext"], False),
    ("  exact And.intro h.2 h.1", ["_root_.And.right"], True),
]


def test_an_answer_is_refused_exactly_if_it_uses_what_is_forbidden(
    checker: Checker, core: LeanEnvironment
) -> None:
    for answer, forbid, uses in ANSWERS:
        verdict = judge(checked(checker, core, answer, *forbid))
        assert verdict.reason is (Reason.FORBIDDEN if uses else Reason.OK), (answer, forbid, verdict)


def test_an_entry_that_could_match_nothing_is_refused(checker: Checker, core: LeanEnvironment) -> None:
    for entry in ("rw[", "simp;", "exact??", "--", "/-", "1", "<;>", "tactic", "Nat.", "«", "(", "Lean"):
        verdict = judge(checked(checker, core, "  exact ⟨h.2, h.1⟩", entry))
        assert verdict.reason is Reason.BAD_CHALLENGE, (entry, verdict)


def test_a_name_that_is_nothing_is_a_fault_of_the_line_whatever_its_answer_is(
    checker: Checker, core: LeanEnvironment
) -> None:
    for answer in ("  exact ⟨h.2, h.1⟩", "  exact wrong", "  sorry"):
        verdict = judge(checked(checker, core, answer, "exact", "nlinarith", "Nat.nothing"))
        assert verdict.reason is Reason.BAD_CHALLENGE
        assert verdict.detail == (
            "The line forbids `Nat.nothing`, which is neither a constant nor a tactic where its proof stands "
            "(and 1 more)."
        )


CONTEXT = f"""{HEADER}
theorem first (p q : Prop) (h : p ∧ q) : p := h.1
macro "so " t:term : tactic => `(tactic| exact $t)
"""


def test_what_the_dataset_gives_may_use_what_is_forbidden(checker: Checker, core: LeanEnvironment) -> None:
    for answer, forbid, reason in [
        ("  refine ⟨And.right h, first p q h⟩", ["And.left", "exact"], Reason.OK),
        ("  refine ⟨And.right h, first p q h⟩", ["first"], Reason.FORBIDDEN),
        ("  refine ⟨And.right h, And.left h⟩", ["And.left"], Reason.FORBIDDEN),
        ("  have := first p q h\n  refine ⟨And.right h, And.left h⟩", ["And.left"], Reason.FORBIDDEN),
        ("  so ⟨And.right h, first p q h⟩", ["exact"], Reason.FORBIDDEN),
        ("  so ⟨And.right h, first p q h⟩", ["so"], Reason.FORBIDDEN),
        ("  apply And.intro (And.right h) (first p q h)", ["so"], Reason.OK),
    ]:
        for _ in range(2):  # alone, then below a context that checks share
            verdict = judge(checked(checker, core, answer, *forbid, context=CONTEXT))
            assert verdict.reason is reason, (answer, forbid, verdict)


def test_a_statement_of_the_dataset_is_not_held_against_its_proof(
    checker: Checker, core: LeanEnvironment
) -> None:
    statement = """macro "swapped " p:term : term => `((by exact $p))
def Both (p q : Prop) : Prop := (fun h : p ∧ q => h.1) = fun h => And.left h
theorem t (p q : Prop) (h : Both p q) : swapped Both p q := by"""
    for forbid in ("exact", "And.left", "Both"):
        verdict = judge(checked(checker, core, "  apply h", forbid, statement=statement))
        assert verdict.reason is Reason.OK, verdict


def test_the_value_of_an_answer_is_the_submission_s(checker: Checker, core: LeanEnvironment) -> None:
    statement = (
        "abbrev solution : Nat := sorry\ndef P (n : Nat) : Prop := n = solution\ntheorem t : P 5 := by"
    )
    for value, reason in [("Nat.succ 4", Reason.FORBIDDEN), ("5", Reason.OK)]:
        program = statement.replace("sorry", value) + " rfl"
        verdict = judge(checked(checker, core, program, "_root_.Nat.succ", statement=statement))
        assert verdict.reason is reason, (value, verdict)
