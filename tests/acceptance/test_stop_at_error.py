"""Checks that end at the first error: same rewards, less time, and other candidates are still tried."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from farm_workers.checking.asked import check_of
from farm_workers.checking.candidates import Settling
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.exploits.corpus import Case, asked, one_of_each, read

from farm.judging.assurance import Assurance
from farm.judging.job import Check
from farm.judging.report import Message, Report
from farm.judging.tiers import Tier
from farm.judging.verdict import Outcome, Reason, judge
from farm.limits import Limits
from farm.manifest.entry import Entry
from tests.commands import HEADER, Command
from tests.counted import calls

CASES = Path(__file__).parents[1] / "cases" / "verdict"
STATEMENT = "theorem swap (p q : Prop) (h : p ∧ q) : q ∧ p := by"
#: Steps that take Lean a while, below a step that fails.
SLOW = "Nat.rec (motive := fun _ => Nat) 0 (fun _ x => Nat.add x 1) (400 + {n}) = 400 + {n} := by decide"
TAIL = "\n".join(f"  have k{n} : {SLOW.format(n=n)}" for n in range(20))
EARLY = f"  have e : q := by exact h.1\n{TAIL}\n  exact ⟨h.2, h.1⟩"
CLIMBS = """class Climbs (n : Nat) where
  x : Nat
instance climb (n : Nat) [Climbs (Nat.succ n)] : Climbs n := Climbs.mk 0
set_option maxRecDepth 100000000
set_option synthInstance.maxHeartbeats 0
set_option synthInstance.maxSize 100000000
set_option maxHeartbeats 0
"""


def line(generation: str, statement: str = STATEMENT) -> Check:
    entry = Entry(
        path="",
        line=1,
        name="swap",
        header=HEADER,
        formal_statement=statement,
        generation=generation,
        predicted_proof="",
    )
    return check_of(entry, Limits(wall_seconds=20.0), Assurance(tier=Tier.KERNEL))


def both(checker: Checker, core: LeanEnvironment, check: Check) -> tuple[Report, Report]:
    """Return the reports of a check to its end, and of one that is stopped at an error."""
    return checker.check(check, core), checker.check(replace(check, stop_at_error=True), core)


def test_less_than_half_of_the_time_is_spent_on_answers_that_fail_early(
    checker: Checker, core: LeanEnvironment
) -> None:
    whole, stopped = zip(*(both(checker, core, line(EARLY)) for _ in range(3)), strict=True)
    for each in (*whole, *stopped):
        assert (judge(each).reason, judge(each).error_kind) == (Reason.ERROR, "type_mismatch")
    spent = [sorted(each.run.cpu_seconds for each in one)[1] for one in (whole, stopped)]
    assert spent[1] < spent[0] / 2


@pytest.mark.parametrize("answer", [f"{TAIL}\n  exact ⟨h.2, h.1⟩", "exact ⟨h.2, h.1⟩"])
def test_a_proof_is_sealed_as_without_it(checker: Checker, core: LeanEnvironment, answer: str) -> None:
    whole, stopped = both(checker, core, line(answer))
    for each in (whole, stopped):
        assert (judge(each).reason, each.tier, each.audit is not None) == (Reason.OK, Tier.KERNEL, True)
    assert whole.audit
    assert stopped.audit
    assert stopped.audit.module_sha256 == whole.audit.module_sha256


def test_an_error_before_an_endless_step_is_an_error_and_no_timeout(
    checker: Checker, core: LeanEnvironment
) -> None:
    wrong, endless = "theorem a : True := Nowhere.intro", "theorem b : True := (inferInstance : Climbs 0)"
    program = f"{HEADER}{wrong}\n{CLIMBS}{endless}\n"
    check = Check.of(program=program, limits=Limits(wall_seconds=2.0), assurance=Assurance())
    whole, stopped = both(checker, core, check)
    assert (judge(whole).outcome, judge(stopped).reason) == (Outcome.TIMEOUT, Reason.ERROR)


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in one_of_each(read())])
def test_no_verdict_of_the_corpus_differs(checker: Checker, core: LeanEnvironment, case: Case) -> None:
    check = asked(core, case, Tier.KERNEL)
    if case.before:
        checker.check(Check.of(program=f"{core.header}{case.before}\n", assurance=Assurance()), core)
    found = judge(checker.check(replace(check, stop_at_error=True), core))
    # A program that takes its own errors back is rejected for them, whatever else is wrong with it.
    assert found.reason is Reason.ERROR or found.reason in case.reasons(Tier.KERNEL), found.detail
    assert (found.outcome is Outcome.PROVED) == ("ok" in case.reasons(Tier.KERNEL))


@pytest.mark.parametrize(
    "name", ["error", "error_and_sorry", "sorry_as_error", "syntax_error", "unknown_module"]
)
def test_no_reason_of_a_plain_case_differs(checker: Checker, core: LeanEnvironment, name: str) -> None:
    check = Check.of(program=(CASES / "rejected" / name / "program.lean").read_text(), assurance=Assurance())
    whole, stopped = both(checker, core, check)
    assert judge(stopped).reason is judge(whole).reason


@pytest.mark.parametrize("name", ["heartbeats", "heartbeats_of_instance_search"])
def test_a_limit_of_lean_s_own_stops_nothing(checker: Checker, core: LeanEnvironment, name: str) -> None:
    check = Check.of(program=(CASES / "timeout" / name / "program.lean").read_text(), assurance=Assurance())
    whole, stopped = both(checker, core, check)
    assert judge(stopped) == judge(whole)
    assert judge(stopped).outcome is Outcome.TIMEOUT


#: Answers whose first candidate fails and whose last one is a proof.
RESCUED = {
    "a wrong text above the proof": f"import Nowhere\n{STATEMENT}\n  exact ⟨h.2, h.1⟩",
    "another statement": "theorem swap (p q : Prop) (h : p ∧ q) : p := by\n  exact ⟨h.2, h.1⟩",
    "a lemma that fails above the proof": f"theorem no : False := nothing\n{STATEMENT}\n  exact ⟨h.2, h.1⟩",
    "indentation that was lost": "exact ⟨h.2,\nh.1⟩",
}


@pytest.mark.parametrize("answer", RESCUED.values(), ids=RESCUED)
def test_another_candidate_is_tried_all_the_same(
    checker: Checker, core: LeanEnvironment, answer: str
) -> None:
    whole, stopped = both(checker, core, line(f"```lean4\n{answer}\n```"))
    assert judge(stopped).outcome is judge(whole).outcome
    assert stopped.candidate == whole.candidate


def test_a_proof_that_needs_its_memory_is_proved_within_the_same_limit(
    checker: Checker, core: LeanEnvironment
) -> None:
    """Lean keeps its states where a check stops at an error, which takes memory of its own."""
    steps = "\n".join(f"  have k{n} : {SLOW.format(n=n % 40)}" for n in range(120))
    check = line(f"{steps}\n  exact ⟨h.2, h.1⟩")
    whole = checker.check(check, core)
    most = whole.run.peak_memory_kib // 1024 + 8
    tight = replace(check, limits=replace(check.limits, memory_mib=most))
    for report in (whole, *both(checker, core, tight)):
        assert judge(report).outcome is Outcome.PROVED, judge(report)


def test_many_errors_cost_the_worker_little(checker: Checker, core: LeanEnvironment) -> None:
    """Errors above the proof leave another candidate to try, so each of them is looked at."""
    above = "".join(f"theorem no{n} : False := nothing\n" for n in range(400))
    check = line(f"```lean4\n{above}{STATEMENT}\n  exact ⟨h.2, h.1⟩\n```")
    whole, stopped = both(checker, core, check)
    assert judge(stopped).outcome is judge(whole).outcome
    settling = Settling(check)
    errors = [each for each in whole.answer.messages if each.severity == "error"] or [_error(4)]
    made = [calls(lambda: settling(errors[0])).total() for _ in range(500)]
    assert max(made) < 100


def _error(line_: int) -> Message:
    return Message(severity="error", kind="", text="no", line=line_, column=0, end_line=None, end_column=None)


def test_a_printed_error_is_no_error(checker: Checker, core: LeanEnvironment) -> None:
    place = {"line": 3, "column": 0}
    printed = json.dumps({"severity": "error", "data": "no", "pos": place, "endPos": None, "kind": ""})
    program = f"{HEADER}#print {json.dumps(printed)}\ntheorem a : True := True.intro\n"
    whole, stopped = both(checker, core, Check.of(program=program, assurance=Assurance()))
    assert (judge(whole).outcome, judge(stopped).outcome) == (Outcome.PROVED, Outcome.PROVED)


def test_a_run_stops_at_errors_when_it_is_told_to(farm: Command, tmp_path: Path) -> None:
    manifest = tmp_path / "answers.jsonl"
    row = {"name": "swap", "header": HEADER, "formal_statement": STATEMENT}
    two = EARLY.replace("exact ⟨h.2, h.1⟩", "have f : q := by exact h.1\n  exact ⟨h.2, h.1⟩")
    lines = [{**row, "generation": each} for each in (two, "exact ⟨h.2, h.1⟩", "sorry")]
    told = {}
    for flags in ([], ["--stop-at-error"]):
        manifest.write_text("".join(json.dumps(each) + "\n" for each in lines))
        said = farm("submit", manifest, "--wait", *flags)
        assert said.returncode == 0, said.stderr
        told[bool(flags)] = [json.loads(each) for each in manifest.read_text().splitlines()]
    for one, other in zip(told[False], told[True], strict=True):
        assert (one["proof_status"], one["farm"]["reason"]) == (
            other["proof_status"],
            other["farm"]["reason"],
        )
    errors = [len(each[0]["farm"]["messages"]) for each in (told[False], told[True])]
    assert errors == [2, 1]
