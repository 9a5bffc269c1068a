"""Programs without a statement: what they declare is in the sealed module, or they are not proved."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from farm_workers.checking.checker import Checker
from farm_workers.environments.fit import Fit, engine
from farm_workers.environments.lean_environment import KernelChecker, LeanEnvironment
from farm_workers.exploits.corpus import Case, judged, read

from farm.judging.assurance import Assurance
from farm.judging.audit import UNREBUILT
from farm.judging.job import Check
from farm.judging.report import Report
from farm.judging.tiers import Tier
from farm.judging.verdict import Outcome, Reason, judge
from tests.toolchains import toolchain

BARE = [case for case in read() if not case.statement]
HONEST = """\
example : 1 = 1 := rfl
theorem fine : True := True.intro
example : Nat := 5
namespace A
example (n : Nat) : n = n := match n with | 0 => rfl | _ => rfl
end A
"""
NAMED = """\
def double : Nat → Nat
  | 0 => 0
  | n + 1 => double n + 2
structure Point where
  x : Nat
instance : Inhabited Point := ⟨⟨0⟩⟩
private theorem «own name» : double 1 = 2 := rfl
theorem «1».fine : double 2 = 4 := rfl
"""


def asked(
    checker: Checker, core: LeanEnvironment, text: str, way: str = "forked", tier: Tier = Tier.KERNEL
) -> Report:
    return checker.check(
        Check.of(program=f"{core.header}{text}", assurance=Assurance(tier=tier)), core, way=way
    )


@pytest.mark.parametrize("case", [case for case in BARE if not case.is_honest], ids=lambda case: case.name)
def test_a_fresh_lean_takes_no_lie_for_a_proof(checker: Checker, core: LeanEnvironment, case: Case) -> None:
    report = asked(checker, core, case.program, "cold")
    assert report.way == "cold"
    assert judge(report).outcome is Outcome.REJECTED


@pytest.fixture(scope="module")
def plainer(core: LeanEnvironment) -> LeanEnvironment:
    """The embedded environment whose forks elaborate command by command, as older releases do."""
    digest = f"{core.digest}-by-commands"
    fit = Fit(digest=digest, lean=core.toolchain, source="run", engine=engine(), way="commands")
    return replace(core, digest=digest, fit=fit)


def test_an_older_lean_accounts_for_declarations_as_well(checker: Checker, plainer: LeanEnvironment) -> None:
    accounted = [case for case in BARE if case.kind in ("bare: caught", "bare: dropped", "bare: honest")]
    tried = [(case, judged(checker, plainer, case, Tier.KERNEL)) for case in accounted]
    assert [case.name for case, found in tried if not found.is_right or found.report.way != "forked"] == []


def test_a_lost_declaration_is_an_error_of_leans_at_its_place(
    checker: Checker, core: LeanEnvironment
) -> None:
    (lost,) = [case for case in BARE if case.name == "a theorem that a macro drops"]
    report = asked(checker, core, lost.program)
    (error,) = [each for each in report.answer.messages if each.severity == "error"]
    lines = f"{core.header}{lost.program}".split("\n")
    assert (error.column, lines[error.line - 1]) == (0, "theorem main : 5 = 6 := rfl")
    assert "leaves nothing in the compiled module" in judge(report).detail


def test_a_fresh_lean_proves_nothing_beside_a_command_that_may_drop_errors(
    checker: Checker, core: LeanEnvironment
) -> None:
    verdict = judge(asked(checker, core, f"{NAMED}-- #guard_msgs\n", "cold"))
    assert (verdict.reason, "#guard_msgs" in verdict.detail) == (Reason.AUDIT, True)


def test_the_kernel_is_given_the_examples(checker: Checker, core: LeanEnvironment) -> None:
    report = asked(checker, core, HONEST)
    assert judge(report).reason is Reason.OK
    assert report.audit is not None
    assert report.audit.constants == 5  # of one example Lean makes a constant besides


def test_a_fresh_lean_which_lists_no_examples_refuses_them(checker: Checker, core: LeanEnvironment) -> None:
    verdict = judge(asked(checker, core, HONEST, "cold"))
    assert (verdict.reason, "_example" in verdict.detail) == (Reason.AUDIT, True)


def test_a_fresh_lean_proves_theorems_with_names(checker: Checker, core: LeanEnvironment) -> None:
    report = asked(checker, core, NAMED, "cold")
    assert (judge(report).reason, report.way) == (Reason.OK, "cold"), judge(report).detail


def test_a_message_names_the_line_of_an_example(checker: Checker, core: LeanEnvironment) -> None:
    text = "set_option warn.sorry false\ntheorem fine : True := True.intro\n\nexample : 1 = 2 := sorry\n"
    assert "example at line 6" in judge(asked(checker, core, text)).detail


def test_two_examples_of_a_line_are_both_looked_at(checker: Checker, core: LeanEnvironment) -> None:
    text = "theorem fine : True := True.intro\nexample : 1 = 1 := rfl example : True := True.intro\n"
    assert judge(asked(checker, core, text)).reason is Reason.OK
    wrong = text.replace("rfl example : True := True.intro", "rfl unsafe example : False := lcProof")
    assert "example at line 4 (2)" in judge(asked(checker, core, wrong)).detail


def test_a_line_with_a_statement_may_hold_any_example(checker: Checker, core: LeanEnvironment) -> None:
    case = replace(BARE[0], statement="theorem fine : True := by sorry")
    assert judged(checker, core, case, Tier.KERNEL).verdict.reason is Reason.OK


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (NAMED, Reason.OK),
        (HONEST, Reason.AUDIT),
        ("theorem fine : True := True.intro\nunsafe def a : (1 : Nat) = 3 := lcProof\n", Reason.AXIOM),
        ('macro "own" : term => `(1)\ntheorem fine : True := True.intro\n', Reason.AUDIT),
    ],
)
def test_a_lean_that_cannot_be_forked_proves_what_it_accounts_for(
    checker: Checker, core: LeanEnvironment, tmp_path: Path, text: str, reason: Reason
) -> None:
    dressed = toolchain(tmp_path / "toolchain", core)
    own = replace(
        core,
        digest="unforked",
        lean=(str(dressed.lean),),
        visible=tuple(map(str, dressed.visible)),
        checkers=(KernelChecker(name="sh", command=("/bin/sh", "-c", "exit 0"), visible=()),),
    )
    report = asked(checker, own, text)
    verdict = judge(report)
    assert verdict.reason is reason, verdict.detail
    assert report.trusts == ((UNREBUILT,) if reason is Reason.OK else ())
