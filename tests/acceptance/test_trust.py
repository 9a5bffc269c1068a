"""What deceives and what only looks like it, checked by real Lean on both tiers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from farm.challenge import Challenge, challenge_of
from farm.job import FAST, STRICT, TIERS, Limits
from farm.manifest import Entry
from farm.policy import Policy, Screen
from farm.verdict import Outcome, Report, Verdict, judge
from workers.checker import Checker
from workers.environments import LeanEnvironment

CASES = Path(__file__).parent.parent / "cases" / "trust"
LIMITS = Limits(wall_seconds=20.0)


def cases(name: str) -> list[Any]:
    lines = (CASES / name).read_text(encoding="utf-8").splitlines()
    return [pytest.param(case := json.loads(line), id=case["case"]) for line in lines]


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


def checked(
    checker: Checker, core: LeanEnvironment, case: dict[str, Any], tier: str
) -> tuple[Report, Verdict]:
    report = checker.check(
        core.header + case["program"] + "\n",
        core,
        LIMITS,
        screen=Screen(policy=Policy.parse(case.get("policy", []))),
        tier=tier,
        challenge=challenge(core, case["statement"]),
    )
    return report, judge(report)


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("case", cases("rejected.jsonl"))
def test_what_deceives_is_found_out(
    checker: Checker, core: LeanEnvironment, case: dict[str, Any], tier: str
) -> None:
    _, verdict = checked(checker, core, case, tier)
    assert (verdict.reason, verdict.detail) == (case[tier], verdict.detail)
    assert verdict.outcome is not Outcome.PROVED


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("case", cases("proved.jsonl"))
def test_what_is_honest_is_proved(
    checker: Checker, core: LeanEnvironment, case: dict[str, Any], tier: str
) -> None:
    report, verdict = checked(checker, core, case, tier)
    assert (verdict.outcome, verdict.detail) == (Outcome.PROVED, "Lean accepted the program.")
    # The whole program was submitted: even on the fast tier its statement is compared.
    assert report.audit is not None
    assert report.audit["accepted"] is True
    assert report.audit["not_checked"] == []


def test_a_statement_that_the_farm_wrote_needs_no_audit_on_the_fast_tier(
    checker: Checker, core: LeanEnvironment
) -> None:
    stated = challenge(core, "theorem t : 1 = 1 := by sorry")
    program = f"{core.header}theorem t : 1 = 1 := by\n  exact rfl\n"
    screen = Screen(policy=Policy(), submitted=((program.index("  exact"), len(program)),))
    fast = checker.check(program, core, LIMITS, screen=screen, tier=FAST, challenge=stated)
    strict = checker.check(program, core, LIMITS, screen=screen, tier=STRICT, challenge=stated)
    assert [judge(each).outcome for each in (fast, strict)] == [Outcome.PROVED] * 2
    assert (fast.way, fast.audit) == ("resident", None)
    assert strict.audit is not None


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
    stated = challenge(core, "theorem t : 1 = 2 := by sorry")
    middle = "theorem t : 1 = 2 := by"
    program = core.header + before + middle + after + "\n"
    end = len(core.header + before)
    screen = Screen(policy=Policy(), submitted=((len(core.header), end), (end + len(middle), len(program))))
    report = checker.check(program, core, LIMITS, screen=screen, tier=FAST, challenge=stated)
    assert judge(report).outcome is Outcome.REJECTED
    assert judge(report).reason in ("statement_mismatch", "error")


def test_a_challenge_is_compiled_once(isolation: Any, core: LeanEnvironment, tmp_path: Path) -> None:
    case = {"statement": "theorem t : 1 = 1 := by sorry", "program": "theorem t : 1 = 1 := rfl"}
    with Checker(isolation, home=tmp_path) as checker:
        checked(checker, core, case, STRICT)
        kept = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*") if file.is_file()}
        assert sorted({file.name for file in kept}) == ["Module.olean", "axioms", "names"]
        checked(checker, core, case, STRICT)
        assert {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*") if file.is_file()} == kept
