"""What deceives and what only looks like it, checked by real Lean on every tier."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from farm.assurance import FAST, GOLD, STRICT, TIERS, Assurance
from farm.challenge import Challenge, challenge_of
from farm.job import Check, Limits
from farm.manifest import Entry
from farm.policy import Policy
from farm.verdict import Outcome, Reason, Report, judge
from workers.checker import Checker
from workers.environments import KernelChecker, LeanEnvironment
from workers.exploits.corpus import Case, judged, read

LIMITS = Limits(wall_seconds=20.0)


def cases(*, honest: bool) -> list[Any]:
    found = (case for case in read() if case.is_honest is honest and not case.is_class)
    return [pytest.param(case, id=case.name) for case in found]


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
    found = challenge_of(entry)
    assert found is not None
    return found


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("case", cases(honest=False))
def test_what_deceives_is_found_out(checker: Checker, core: LeanEnvironment, case: Case, tier: str) -> None:
    found = judged(checker, core, case, tier)
    assert found.verdict.reason in case.reasons(tier), found.verdict.detail
    assert found.is_right


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("case", cases(honest=True))
def test_what_is_honest_is_proved(checker: Checker, core: LeanEnvironment, case: Case, tier: str) -> None:
    found = judged(checker, core, case, tier)
    assert (found.verdict.outcome, found.verdict.detail) == (Outcome.PROVED, "Lean accepted the program.")
    audit = found.report.audit
    if audit is not None:
        assert audit["accepted"] is True
        assert audit["not_checked"] == []
    # Where the whole program was submitted, its statement is compared even on the fast tier.
    assert audit is not None or (tier == FAST and case.answer)


def stated(checker: Checker, core: LeanEnvironment, tier: str, *pieces: str, challenge: Challenge) -> Report:
    """Check a program made of pieces that are the farm's and the submission's own in turn."""
    program, spans = core.header, []
    for place, piece in enumerate(pieces):
        if place % 2:
            spans.append((len(program), len(program) + len(piece)))
        program += piece
    check = Check(
        program=program,
        limits=LIMITS,
        submitted=tuple(spans),
        challenge=challenge,
        assurance=Assurance(tier=tier),
    )
    return checker.check(check, core)


def test_a_statement_that_the_farm_wrote_needs_no_audit_on_the_fast_tier(
    checker: Checker, core: LeanEnvironment
) -> None:
    asked = challenge(core, "theorem t : 1 = 1 := by sorry")
    pieces = ("theorem t : 1 = 1 := by\n", "  exact rfl\n")
    fast, strict = (stated(checker, core, tier, *pieces, challenge=asked) for tier in (FAST, STRICT))
    assert [judge(each).outcome for each in (fast, strict)] == [Outcome.PROVED] * 2
    assert (fast.way, fast.audit, fast.accepted_first) == ("resident", None, False)
    assert strict.audit is not None


@pytest.mark.parametrize("before", ["theorem helper : 2 = 2 := rfl\n", "#check Nat\n"])
def test_what_a_submission_says_before_the_statement_is_looked_at_twice(
    checker: Checker, core: LeanEnvironment, before: str
) -> None:
    asked = challenge(core, "theorem t : 1 = 1 := by sorry")
    pieces = ("", before, "theorem t : 1 = 1 := by\n", "  exact rfl\n")
    report = stated(checker, core, FAST, *pieces, challenge=asked)
    assert judge(report).outcome is Outcome.PROVED
    assert report.accepted_first
    assert report.audit is not None


def test_a_comment_before_the_statement_changes_nothing(checker: Checker, core: LeanEnvironment) -> None:
    asked = challenge(core, "theorem t : 1 = 1 := by sorry")
    pieces = ("", "-- first\n/- second -/\n", "theorem t : 1 = 1 := by\n", "  exact rfl\n")
    assert stated(checker, core, FAST, *pieces, challenge=asked).audit is None


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
    report = stated(checker, core, FAST, "", before, "theorem t : 1 = 2 := by", f"{after}\n", challenge=asked)
    assert judge(report).outcome is Outcome.REJECTED
    assert judge(report).reason in ("statement_mismatch", "error")


def test_what_has_no_statement_says_what_was_not_checked(checker: Checker, core: LeanEnvironment) -> None:
    check = Check(program=f"{core.header}theorem t : 1 = 1 := rfl\n", assurance=Assurance())
    report = checker.check(check, core)
    assert judge(report).outcome is Outcome.PROVED
    assert report.audit is not None
    assert report.audit["accepted"] is None
    assert report.audit["not_checked"] != []


def test_what_is_confirmed_is_audited_and_what_is_not_is_told_apart(
    checker: Checker, core: LeanEnvironment
) -> None:
    asked = challenge(core, "theorem t : 1 = 2 := by sorry")
    program = f"{core.header}theorem t : 1 = 1 := rfl\n"
    twice = Assurance(confirm=STRICT)
    wrong = checker.check(Check(program=program, challenge=asked, assurance=twice), core)
    assert (wrong.accepted_first, judge(wrong).reason) == (True, "statement_mismatch")
    right = challenge(core, "theorem t : 1 = 1 := by sorry")
    sound = checker.check(Check(program=program, challenge=right, assurance=twice), core)
    assert (sound.accepted_first, judge(sound).outcome) == (True, Outcome.PROVED)
    failed = checker.check(
        Check(program=f"{program}theorem u : 1 = 2 := rfl\n", challenge=right, assurance=twice), core
    )
    assert (failed.accepted_first, judge(failed).outcome) == (False, Outcome.REJECTED)


@pytest.mark.parametrize(("axioms", "reason"), [(("propext",), "ok"), ((), "axiom")])
def test_a_run_says_which_axioms_a_proof_may_rest_on(
    checker: Checker, core: LeanEnvironment, axioms: tuple[str, ...], reason: str
) -> None:
    asked = challenge(core, "theorem t (p q : Prop) (h : Iff p q) : p = q := by sorry")
    program = f"{core.header}theorem t (p q : Prop) (h : Iff p q) : p = q := propext h\n"
    check = Check(program=program, challenge=asked, assurance=Assurance(tier=STRICT, axioms=axioms))
    assert judge(checker.check(check, core)).reason == reason


BAD = "theorem t : Nat = 2 := by sorry"


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("whole", [False, True])
def test_a_statement_that_does_not_compile_is_no_fault_of_the_proof(
    checker: Checker, core: LeanEnvironment, tier: str, whole: bool
) -> None:
    own = "  exact rfl\n"
    pieces = ("", f"theorem t : Nat = 2 := by\n{own}") if whole else ("theorem t : Nat = 2 := by\n", own)
    report = stated(checker, core, tier, *pieces, challenge=challenge(core, BAD))
    assert judge(report).reason is Reason.BAD_CHALLENGE


@pytest.mark.parametrize("tier", TIERS)
def test_a_statement_that_a_submission_breaks_is_the_submission_s_fault(
    checker: Checker, core: LeanEnvironment, tier: str
) -> None:
    asked = challenge(core, "theorem t : 1 = 1 := by sorry")
    before = 'notation "1" => Nat\n'
    report = stated(checker, core, tier, "", before, "theorem t : 1 = 1 := by\n", "  rfl\n", challenge=asked)
    assert judge(report).reason in (Reason.ERROR, Reason.STATEMENT_MISMATCH)


def test_an_error_of_the_proof_does_not_ask_what_the_statement_is(
    isolation: Any, core: LeanEnvironment, tmp_path: Path
) -> None:
    asked = challenge(core, "theorem t : 1 = 1 := by sorry")
    pieces = ("theorem t : 1 = 1 := by\n", "  exact nothing\n")
    with Checker(isolation, home=tmp_path) as own:
        report = stated(own, core, FAST, *pieces, challenge=asked)
    assert judge(report).reason is Reason.ERROR
    assert not (tmp_path / "strict").exists()


SKIPPED = "set_option debug.skipKernelTC true in\ntheorem t : 1 = 2 := by decide +kernel"


@pytest.mark.parametrize("tier", TIERS)
def test_what_names_a_skipped_kernel_is_replayed_or_rejected(
    checker: Checker, core: LeanEnvironment, tier: str
) -> None:
    asked = challenge(core, "theorem t : 1 = 2 := by sorry")
    policy = Policy.parse(["option=off"])
    check = Check(
        program=f"{core.header}{SKIPPED}\n", challenge=asked, assurance=Assurance(tier=tier, policy=policy)
    )
    assert judge(checker.check(check, core)).reason is Reason.KERNEL
    if tier != GOLD:  # which is refused there
        assert judge(checker.check(check, replace(core, checker=None))).reason is Reason.POLICY
    if tier == FAST:
        assert judge(checker.check(replace(check, challenge=None), core)).reason is Reason.POLICY


@pytest.mark.parametrize("tier", TIERS)
def test_an_honest_proof_that_names_a_skipped_kernel_is_replayed(
    checker: Checker, core: LeanEnvironment, tier: str
) -> None:
    asked = challenge(core, "theorem t : 1 = 1 := by sorry")
    pieces = ("theorem t : 1 = 1 := by\n", "  exact rfl -- no debug.skipKernelTC\n")
    report = stated(checker, core, tier, *pieces, challenge=asked)
    assert judge(report).outcome is Outcome.PROVED
    assert report.audit is not None
    assert report.audit["replay"]["accepted"] is True


def test_only_a_replay_finds_what_the_kernel_was_not_asked_about(
    checker: Checker, core: LeanEnvironment
) -> None:
    asked = challenge(core, "theorem t : 1 = 2 := by sorry")
    unseen = replace(core, checker=None)  # and a policy that lets everything pass
    assurance = Assurance(tier=STRICT, policy=Policy.parse(["option=off", "hidden=off"]))
    check = Check(program=f"{core.header}{SKIPPED}\n", challenge=asked, assurance=assurance)
    assert judge(checker.check(check, unseen)).reason is Reason.OK


@pytest.mark.parametrize(
    ("script", "reason"), [("exit 0", "ok"), ("echo no; exit 1", "kernel"), ("exit 2", "box_failed")]
)
def test_the_checker_of_an_environment_has_the_last_word(
    checker: Checker, core: LeanEnvironment, script: str, reason: str
) -> None:
    words = ("/bin/sh", "-c", f'test -s "{{olean}}" -a "{{module}}" = Module || exit 9; {script}')
    own = replace(core, checker=KernelChecker(name="sh", command=words, visible=()))
    asked = challenge(core, "theorem t : 1 = 1 := by sorry")
    program = f"{core.header}theorem t : 1 = 1 := rfl\n"
    check = Check(program=program, challenge=asked, assurance=Assurance(confirm=GOLD))
    assert judge(checker.check(check, own)).reason == reason


def test_gold_without_a_checker_is_no_verdict(checker: Checker, core: LeanEnvironment) -> None:
    asked = challenge(core, "theorem t : 1 = 1 := by sorry")
    program = f"{core.header}theorem t : 1 = 1 := rfl\n"
    check = Check(program=program, challenge=asked, assurance=Assurance(tier=GOLD))
    verdict = judge(checker.check(check, replace(core, checker=None)))
    assert verdict.outcome is Outcome.JUDGE_ERROR
    assert "no checker" in verdict.detail


def test_a_challenge_is_compiled_once(isolation: Any, core: LeanEnvironment, tmp_path: Path) -> None:
    statement, program = "theorem t : 1 = 1 := by sorry", "theorem t : 1 = 1 := rfl"
    case = Case(name="plain", statement=statement, program=program)
    with Checker(isolation, home=tmp_path) as checker:
        judged(checker, core, case, STRICT)
        kept = {file: file.stat().st_mtime_ns for file in (tmp_path / "strict").glob("*/*")}
        assert sorted({file.name for file in kept}) == ["Module.olean", "axioms", "imports", "names"]
        judged(checker, core, case, STRICT)
        assert {file: file.stat().st_mtime_ns for file in (tmp_path / "strict").glob("*/*")} == kept
