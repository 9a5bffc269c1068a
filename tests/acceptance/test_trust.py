"""What deceives and what only looks like it, checked by real Lean on every tier."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import KernelChecker, LeanEnvironment
from farm_workers.exploits.corpus import Case, judged
from farm_workers.lean.compile import LeanRunner
from farm_workers.lean.way import Question

from farm.assembly.challenge import Challenge, challenge_to
from farm.judging.assurance import Assurance
from farm.judging.job import Check
from farm.judging.report import Report
from farm.judging.tiers import Tier
from farm.judging.verdict import Outcome, Reason, judge
from farm.limits import Limits
from farm.manifest.entry import Entry
from tests.toolchains import unforked

LIMITS = Limits(wall_seconds=20.0)


def challenge(core: LeanEnvironment, statement: str) -> Challenge:
    entry = Entry(
        path="",
        line=1,
        name="",
        header=core.header,
        formal_statement=statement,
        generation="",
        predicted_proof="",
    )
    found = challenge_to(entry.header, entry.formal_statement)
    assert found is not None
    return found


def stated(checker: Checker, core: LeanEnvironment, tier: str, *pieces: str, challenge: Challenge) -> Report:
    """Check a program made of pieces that are the farm's and the submission's own in turn."""
    program, spans = core.header, []
    for place, piece in enumerate(pieces):
        if place % 2:
            spans.append((len(program), len(program) + len(piece)))
        program += piece
    check = Check.of(
        program=program,
        limits=LIMITS,
        submitted=tuple(spans),
        challenge=challenge,
        assurance=Assurance(tier=tier),
    )
    return checker.check(check, core)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("theorem t : 1 = 1 := rfl\n/-\n", "-/\n"),
        ("theorem t : 1 = 1 := rfl\n/- ", " rfl -/"),
        ('theorem t : 1 = 1 := rfl\ntheorem u : "', ' " = "" := rfl'),
    ],
)
def test_a_statement_that_is_made_a_comment_or_a_string_is_not_stated(
    checker: Checker, core: LeanEnvironment, before: str, after: str
) -> None:
    asked = challenge(core, "theorem t : 1 = 2 := by sorry")
    pieces = ("", before, "theorem t : 1 = 2 := by", f"{after}\n")
    report = stated(checker, core, Tier.KERNEL, *pieces, challenge=asked)
    assert judge(report).outcome is Outcome.REJECTED
    assert judge(report).reason in ("statement_mismatch", "error")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("theorem t : 1 = 1 := rfl", Reason.OK),
        ("def f (n : Nat) : Nat := n\ntheorem t : f 1 = 1 := rfl", Reason.OK),
        ("def f (n : Nat) : Nat := n", Reason.AUDIT),
        ("example : 1 = 1 := rfl", Reason.AUDIT),
        ("axiom wrong : 1 = 2\ntheorem t : 1 = 1 := rfl", Reason.AXIOM),
        (
            "set_option warn.sorry false\ntheorem u : 1 = 2 := sorry\ntheorem t : 1 = 1 := rfl",
            Reason.HAS_SORRY,
        ),
        ("example : 1 = 2 := sorry\ntheorem t : 1 = 1 := rfl", Reason.HAS_SORRY),
        ("theorem t : 1 = 2 := rfl", Reason.ERROR),
    ],
)
@pytest.mark.parametrize("tier", [Tier.KERNEL, Tier.AUDIT])
def test_without_a_statement_all_of_a_module_is_judged(
    checker: Checker, core: LeanEnvironment, tier: Tier, text: str, reason: Reason
) -> None:
    check = Check.of(program=f"{core.header}{text}\n", limits=LIMITS, assurance=Assurance(tier=tier))
    report = checker.check(check, core)
    assert (judge(report).reason, judge(report).detail) == (reason, judge(report).detail)
    assert report.statement == "unchecked"


def test_what_is_admitted_and_nothing_rests_on_is_found(checker: Checker, core: LeanEnvironment) -> None:
    asked = challenge(core, "theorem t : 1 = 1 := by sorry")
    pieces = ("", "set_option warn.sorry false\ntheorem u : 1 = 2 := sorry\ntheorem t : 1 = 1 := rfl\n")
    report = stated(checker, core, Tier.KERNEL, *pieces, challenge=asked)
    assert judge(report).reason is Reason.HAS_SORRY


def test_a_sorry_of_the_header_is_not_the_proof_s(checker: Checker, core: LeanEnvironment) -> None:
    header = replace(core, header=f"{core.header}noncomputable def open_ : Nat := sorry\n")
    asked = challenge(header, "theorem t : open_ = open_ := by sorry")
    pieces = ("theorem t : open_ = open_ := by\n", "  exact rfl\n")
    report = stated(checker, header, Tier.KERNEL, *pieces, challenge=asked)
    assert judge(report).outcome is Outcome.PROVED
    assert report.audit is not None
    assert report.audit.statement_has_sorry is True
    admitting = ("theorem t : open_ = open_ := by\n", "  sorry\n")
    assert judge(stated(checker, header, Tier.KERNEL, *admitting, challenge=asked)).reason is Reason.HAS_SORRY


@pytest.mark.parametrize("tier", [Tier.AUDIT, Tier.KERNEL])
@pytest.mark.parametrize(
    "helper",
    [
        "theorem h : (0 : Nat) = 1 := sorry",
        "theorem a.b : True := by\n  sorry\n@[simp] theorem h (n : Nat) : n + 0 = n := sorry",
        "private theorem h : True := sorry",
        "instance h : Nonempty Nat := sorry",
        "theorem h : True := True.intro\n/-- theorem t : 1 = 1 := sorry -/\ntheorem t.h : True := sorry",
    ],
)
def test_a_theorem_that_the_dataset_leaves_open_is_not_the_one_to_prove(
    checker: Checker, core: LeanEnvironment, helper: str, tier: Tier
) -> None:
    header = replace(core, header=f"{core.header}{helper}\n")
    asked = challenge(header, "theorem t (ω : Nat) : ω = ω := by sorry")
    stated_as = "theorem t (ω : Nat) : ω = ω := by\n"
    report = stated(checker, header, tier, stated_as, "  exact rfl\n", challenge=asked)
    assert (judge(report).reason, report.audit and report.audit.target) == (Reason.OK, "t"), judge(report)
    for none in ("  sorry\n", "  exact rfl\ntheorem more : 1 = 2 := sorry\n"):
        assert (
            judge(stated(checker, header, tier, stated_as, none, challenge=asked)).reason is Reason.HAS_SORRY
        )


@pytest.mark.parametrize("header", ["", "theorem h : True := sorry\n", "theorem h : True := True.intro\n"])
@pytest.mark.parametrize(
    "statement", ["-- nothing", "-- :=", "axiom t : 1 = 1", "#check 1", "open Nat", "@["]
)
def test_a_statement_that_states_nothing_is_no_fault_of_a_wrong_proof(
    checker: Checker, core: LeanEnvironment, statement: str, header: str
) -> None:
    above = replace(core, header=f"{core.header}{header}")
    pieces = (f"{statement}\n", "  exact rfl\n")
    report = stated(checker, above, Tier.KERNEL, *pieces, challenge=challenge(above, statement))
    assert judge(report).reason is Reason.BAD_CHALLENGE


@pytest.mark.parametrize("statement", ["def f : Nat := sorry", "example : 1 = 2 := sorry", "axiom f : 1 = 2"])
@pytest.mark.parametrize("answer", ["", "theorem more : True := sorry\n"])
def test_a_statement_that_is_no_theorem_is_no_fault_of_the_proof_whatever_its_header_leaves_open(
    checker: Checker, core: LeanEnvironment, statement: str, answer: str
) -> None:
    header = replace(core, header=f"{core.header}theorem h : True := sorry\n")
    pieces = ("", f"def f : Nat := 1\n{answer}")
    report = stated(checker, header, Tier.KERNEL, *pieces, challenge=challenge(header, statement))
    assert judge(report).reason is Reason.BAD_CHALLENGE


@pytest.mark.parametrize(("axioms", "reason"), [(("propext",), "ok"), ((), "axiom")])
def test_a_run_says_which_axioms_a_proof_may_rest_on(
    checker: Checker, core: LeanEnvironment, axioms: tuple[str, ...], reason: str
) -> None:
    asked = challenge(core, "theorem t (p q : Prop) (h : Iff p q) : p = q := by sorry")
    program = f"{core.header}theorem t (p q : Prop) (h : Iff p q) : p = q := propext h\n"
    check = Check.of(program=program, challenge=asked, assurance=Assurance(axioms=axioms))
    assert judge(checker.check(check, core)).reason == reason


BAD = "theorem t : Nat = 2 := by sorry"


@pytest.mark.parametrize("tier", Tier)
@pytest.mark.parametrize("whole", [False, True])
def test_a_statement_that_does_not_compile_is_no_fault_of_the_proof(
    checker: Checker, core: LeanEnvironment, tier: str, whole: bool
) -> None:
    own = "  exact rfl\n"
    pieces = ("", f"theorem t : Nat = 2 := by\n{own}") if whole else ("theorem t : Nat = 2 := by\n", own)
    report = stated(checker, core, tier, *pieces, challenge=challenge(core, BAD))
    assert judge(report).reason is Reason.BAD_CHALLENGE


NATIVE = tomllib.loads((resources.files("farm_workers.exploits") / "native.toml").read_text())["parts"]
#: Ends Lean without a word, as a fork ends whose image is killed.
SILENT = f"""{NATIVE["elaborator"]}{NATIVE["exit"]}
@[command_elab commandCheat!] def run : CommandElab := fun stx ctx state _ => exit stx
cheat!
theorem t : True := by sorry"""


@pytest.mark.parametrize("tier", [Tier.KERNEL, Tier.AUDIT])
@pytest.mark.parametrize("proof", ["True.intro", "1"])
def test_a_statement_whose_compilation_fails_without_a_word_is_the_farm_s_failure(
    checker: Checker, core: LeanEnvironment, tier: str, proof: str
) -> None:
    unnamed = replace(challenge(core, SILENT), name="")  # so that it is asked about whatever the error is
    report = stated(checker, core, tier, "", f"theorem t : True := {proof}\n", challenge=unnamed)
    assert judge(report).reason is Reason.BOX_FAILED


@pytest.mark.parametrize("tier", Tier)
def test_a_statement_that_a_submission_breaks_is_the_submission_s_fault(
    checker: Checker, core: LeanEnvironment, tier: str
) -> None:
    asked = challenge(core, "theorem t : 1 = 1 := by sorry")
    before = 'notation "1" => Nat\n'
    report = stated(checker, core, tier, "", before, "theorem t : 1 = 1 := by\n", "  rfl\n", challenge=asked)
    assert judge(report).reason in (Reason.ERROR, Reason.STATEMENT_MISMATCH)


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The programs that Lean is given while a test runs."""
    found: list[str] = []
    compiled = LeanRunner.compiled

    def recording(leans: LeanRunner, question: Question) -> Any:
        found.append(question.program)
        return compiled(leans, question)

    monkeypatch.setattr(LeanRunner, "compiled", recording)
    return found


def test_an_error_of_the_proof_does_not_ask_what_the_statement_is(
    checker: Checker, core: LeanEnvironment, given: list[str]
) -> None:
    asked = challenge(core, "theorem t : 1 = 1 := by sorry")
    pieces = ("theorem t : 1 = 1 := by\n", "  exact nothing\n")
    report = stated(checker, core, Tier.KERNEL, *pieces, challenge=asked)
    assert judge(report).reason is Reason.ERROR
    assert len(given) == 1


SKIPPED = "set_option debug.skipKernelTC true in\ntheorem t : 1 = 2 := by decide +kernel"


@pytest.mark.parametrize(("tier", "reason"), [(Tier.KERNEL, Reason.KERNEL), (Tier.AUDIT, Reason.OK)])
def test_only_a_replay_finds_what_the_kernel_was_not_asked_about(
    checker: Checker, core: LeanEnvironment, tier: Tier, reason: Reason
) -> None:
    asked = challenge(core, "theorem t : 1 = 2 := by sorry")
    check = Check.of(program=f"{core.header}{SKIPPED}\n", challenge=asked, assurance=Assurance(tier=tier))
    assert judge(checker.check(check, core)).reason is reason


@pytest.fixture(scope="module")
def plain(core: LeanEnvironment, tmp_path_factory: pytest.TempPathFactory) -> LeanEnvironment:
    """The environment as one whose Lean cannot be forked."""
    return unforked(core, tmp_path_factory.mktemp("unforked"))


@pytest.mark.parametrize(
    ("scripts", "reason"),
    [
        (["exit 0"], "ok"),
        (["echo no; exit 1"], "kernel"),
        (["exit 2"], "box_failed"),
        (["exit 0"] * 3, "ok"),
        (["exit 0", "exit 0", "exit 1"], "kernels_disagree"),
        (["exit 1", "exit 0"], "kernel"),
        (["exit 0", "exit 2"], "box_failed"),
    ],
)
def test_the_checkers_of_an_environment_have_the_last_word_where_lean_is_not_forked(
    checker: Checker, plain: LeanEnvironment, scripts: list[str], reason: str
) -> None:
    guard = 'test -s "{olean}" -a "{module}" = Module || exit 9'
    commands = [("/bin/sh", "-c", f"{guard}; {script}") for script in scripts]
    named = tuple(KernelChecker(name="sh", command=words, visible=()) for words in commands)
    asked = challenge(plain, "theorem t : 1 = 1 := by sorry")
    program = f"{plain.header}theorem t : 1 = 1 := rfl\n"
    check = Check.of(program=program, challenge=asked, assurance=Assurance())
    assert judge(checker.check(check, replace(plain, checkers=named))).reason == reason


def test_with_neither_forks_nor_a_checker_the_tier_kernel_has_no_verdict(
    checker: Checker, plain: LeanEnvironment
) -> None:
    asked = challenge(plain, "theorem t : 1 = 1 := by sorry")
    program = f"{plain.header}theorem t : 1 = 1 := rfl\n"
    check = Check.of(program=program, challenge=asked, assurance=Assurance())
    verdict = judge(checker.check(check, plain))
    assert verdict.outcome is Outcome.JUDGE_ERROR
    assert "no checker" in verdict.detail


def test_a_challenge_is_compiled_once(
    isolation: Any, core: LeanEnvironment, tmp_path: Path, given: list[str]
) -> None:
    statement, program = "theorem t : 1 = 1 := by sorry", "theorem t : 1 = 1 := rfl"
    case = Case(name="plain", statement=statement, program=program)
    with Checker(isolation, home=tmp_path) as checker:
        assert [judged(checker, core, case, Tier.AUDIT).verdict.reason for _ in range(2)] == ["ok", "ok"]
    assert ["sorry" in text for text in given] == [False, True, False]
