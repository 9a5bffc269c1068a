"""Goals back to the prover: what was to be proved at each sorry and each error, on real Lean."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.exploits.corpus import Case, asked, one_of_each, read
from farm_workers.lean.forked import MOST_CHARACTERS, MOST_GOALS, MOST_TEXT

from farm.client import Client, Goal, Position
from farm.judging.assurance import Assurance
from farm.judging.job import Check
from farm.judging.report import Report
from farm.judging.verdict import Reason, judge
from farm.limits import Limits
from tests.commands import Command
from tests.processes import PATIENCE
from tests.trainer_service import service

HEADER = "prelude\nimport Core\n"
CONTEXT = "p q : Prop\nh : p\nk : p → q\n"
BINDERS = "(p q : Prop) (h : p) (k : p → q)"
#: A printer of the submission's own, called for every goal that says `Hidden`; ARM is what it does.
PRINTER = """\
@[extern "native"] opaque dbgTrace {α : Type} [Inhabited α] (s : String) (f : Unit → α) : α
def Hidden (_ : Nat) : Prop := True
instance : Inhabited (Lean.PrettyPrinter.UnexpandM Lean.Syntax) := ⟨fun stx => pure stx⟩
unsafe def forever (s : Lean.Syntax) : Lean.PrettyPrinter.UnexpandM Lean.Syntax := ARM
@[app_unexpander Hidden] unsafe def unexpandHidden : Lean.PrettyPrinter.Unexpander := fun s => forever s
theorem seen (p : Prop) : p := by
  sorry
theorem t : Hidden 1 := by
  sorry
"""


def reported(checker: Checker, core: LeanEnvironment, text: str, **others: object) -> Report:
    """Check a program behind the header of the core library, asking for goals."""
    check = Check.of(program=HEADER + text, limits=Limits(wall_seconds=20 * PATIENCE), goals=True)
    return checker.check(replace(check, **others), core)


def told(report: Report) -> list[tuple[str, int, int, str]]:
    """Return the goals of a report; lines count behind the header."""
    return [(each.kind, each.line - 2, each.column, each.goal) for each in report.goals or ()]


def goals(checker: Checker, core: LeanEnvironment, text: str) -> list[tuple[str, int, int, str]]:
    report = reported(checker, core, text)
    assert report.goals is not None
    return told(report)


def test_a_sorry_in_a_tactic_block_has_the_goal_before_it(checker: Checker, core: LeanEnvironment) -> None:
    text = f"theorem t {BINDERS} : q := by\n  apply k\n  sorry\n"
    assert goals(checker, core, text) == [("sorry", 3, 2, CONTEXT + "⊢ p")]


def test_each_sorry_in_nested_blocks_has_its_own_goal(checker: Checker, core: LeanEnvironment) -> None:
    text = f"""\
theorem t {BINDERS} : q ∧ p := by
  constructor
  · apply k
    have : p := by
      sorry
    exact this
  case right => admit
"""
    places = [(5, 6), (7, 16)]
    assert goals(checker, core, text) == [("sorry", *place, CONTEXT + "⊢ p") for place in places]


def test_a_sorry_for_several_goals_tells_each(checker: Checker, core: LeanEnvironment) -> None:
    text = f"theorem t {BINDERS} : q ∧ p := by\n  constructor\n  all_goals sorry\n"
    left, right = f"case left\n{CONTEXT}⊢ q", f"case right\n{CONTEXT}⊢ p"
    assert goals(checker, core, text) == [("sorry", 3, 12, left), ("sorry", 3, 12, right)]


def test_a_sorry_with_goals_behind_it_tells_those_too(checker: Checker, core: LeanEnvironment) -> None:
    text = f"theorem t {BINDERS} : q ∧ p := by\n  constructor\n  sorry\n  exact h\n"
    both = f"case left\n{CONTEXT}⊢ q\n\ncase right\n{CONTEXT}⊢ p"
    assert goals(checker, core, text) == [("sorry", 3, 2, both)]


def test_a_sorry_in_the_place_of_a_term_has_the_expected_type(
    checker: Checker, core: LeanEnvironment
) -> None:
    text = f"theorem t {BINDERS} : q := k sorry\n"
    column = text.index("sorry")
    assert goals(checker, core, text) == [("sorry", 1, column, CONTEXT + "⊢ p")]


def test_an_error_in_a_tactic_block_has_the_goal_of_its_tactic(
    checker: Checker, core: LeanEnvironment
) -> None:
    text = f"theorem t {BINDERS} : q := by\n  apply k\n  exact k\n"
    assert goals(checker, core, text) == [("error", 3, 2, CONTEXT + "⊢ p")]


def test_an_error_in_a_rewrite_has_the_goal_after_the_steps_before_it(
    checker: Checker, core: LeanEnvironment
) -> None:
    text = "theorem t (a b : Nat) (h : a = b) : b = a := by\n  rw [h, h]\n"
    assert goals(checker, core, text) == [("error", 2, 9, "a b : Nat\nh : a = b\n⊢ b = b")]


def test_unsolved_goals_are_those_that_are_left(checker: Checker, core: LeanEnvironment) -> None:
    text = f"theorem t {BINDERS} : q ∧ p := by\n  constructor\n  · exact k h\n  · skip\n"
    assert goals(checker, core, text) == [("error", 4, 2, f"case right\n{CONTEXT}⊢ p")]


def test_an_error_in_a_theorem_without_tactics_has_no_goal(checker: Checker, core: LeanEnvironment) -> None:
    assert goals(checker, core, f"theorem t {BINDERS} : q := h\n") == []


def test_positions_count_characters_as_those_of_messages_do(checker: Checker, core: LeanEnvironment) -> None:
    text = "theorem t (𝕏ω : Prop) : 𝕏ω := by\r\n  have ωωω := 𝕏ω; sorry\r\n"
    ((kind, line, column, _),) = goals(checker, core, text)
    assert (kind, line, column) == ("sorry", 2, len("  have ωωω := 𝕏ω; "))


def test_a_proof_has_no_goals_and_stays_proved(checker: Checker, core: LeanEnvironment) -> None:
    report = reported(checker, core, "theorem t : True := True.intro\n", assurance=Assurance())
    assert (judge(report).reason, report.goals) == (Reason.OK, ())


def test_goals_are_told_only_when_asked_for_and_only_by_forks(
    checker: Checker, core: LeanEnvironment
) -> None:
    check = Check.of(program=f"{HEADER}theorem t (p : Prop) : p := by\n  sorry\n")
    assert checker.check(check, core).goals is None
    assert checker.check(replace(check, goals=True), core, way="cold").goals is None


def test_many_goals_and_long_ones_are_cut(checker: Checker, core: LeanEnvironment) -> None:
    name = "x" * (2 * MOST_TEXT)
    text = "".join(f"theorem t{n} ({name} : Prop) : {name} := by\n  sorry\n" for n in range(MOST_GOALS + 8))
    found = goals(checker, core, text)
    assert 0 < len(found) <= MOST_GOALS
    assert {len(goal) for *_, goal in found} == {MOST_TEXT}
    assert found[0][3].endswith("…")
    assert sum(len(goal) for *_, goal in found) <= MOST_CHARACTERS


def test_more_goals_than_are_told_are_left_out(checker: Checker, core: LeanEnvironment) -> None:
    text = "".join(f"theorem t{n} (p : Prop) : p := by\n  sorry\n" for n in range(MOST_GOALS + 8))
    assert [line for _, line, *_ in goals(checker, core, text)] == [2 * n for n in range(1, MOST_GOALS + 1)]


@pytest.mark.parametrize("arm", ["forever s", 'dbgTrace "printed" (fun _ => forever s)'])
def test_a_printer_that_never_ends_changes_no_verdict_and_takes_no_goal_before_it(
    checker: Checker, core: LeanEnvironment, arm: str
) -> None:
    text = PRINTER.replace("ARM", arm)
    plain, asked_for = (reported(checker, core, text, goals=wanted) for wanted in (False, True))
    assert judge(asked_for) == judge(plain)
    assert judge(plain).reason is Reason.HAS_SORRY
    assert (asked_for.answer, asked_for.run.limit) == (plain.answer, None)
    assert ("sorry", 7, 2, "p : Prop\n⊢ p") in told(asked_for)


def test_goals_take_no_more_than_a_part_of_what_is_left_of_the_time(
    checker: Checker, core: LeanEnvironment
) -> None:
    text = PRINTER.replace("ARM", "forever s")
    report = reported(checker, core, text, limits=Limits(wall_seconds=1.5 * PATIENCE, cpu_seconds=3.0))
    assert judge(report).reason is Reason.HAS_SORRY


@pytest.mark.parametrize("case", [pytest.param(each, id=each.name) for each in one_of_each(read())])
def test_a_trick_gets_the_same_verdict_and_the_same_seal_with_goals(
    checker: Checker, core: LeanEnvironment, case: Case
) -> None:
    check = asked(core, case, "kernel")
    expected = case.reasons("kernel")
    with_goals = checker.check(replace(check, goals=True), core)
    assert judge(with_goals).reason in expected
    # With more than one reason it is a race against what the program has left running.
    if len(expected) == 1 and with_goals.audit is not None:
        assert with_goals.audit == checker.check(check, core).audit


def test_a_client_is_told_goals_over_http(farm: Command, tmp_path: Path) -> None:
    proof = {
        "header": HEADER,
        "formal_statement": f"theorem t {BINDERS} : q := by",
        "proof": "  apply k\n  sorry",
    }
    with service(farm, tmp_path / "serve") as served, Client(**served.options) as client:
        found = client.check(proof, goals=True, timeout=20 * PATIENCE)
    assert found.goals == (
        Goal(
            line=2,
            column=2,
            origin="answer",
            program=Position(line=5, column=2),
            kind="sorry",
            goal=CONTEXT + "⊢ p",
        ),
    )
