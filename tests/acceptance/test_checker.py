"""One program through Lean in a box to a verdict, on real Lean."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from farm_workers.box import once as box
from farm_workers.box.copy import as_file
from farm_workers.box.isolation import Isolation
from farm_workers.checking import seals
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.images.fork import Fork
from farm_workers.images.forking import watched
from farm_workers.lean.way import Question

from farm.assembly.challenge import challenge_to
from farm.judging.assurance import Assurance
from farm.judging.job import Check
from farm.judging.report import Execution, Report
from farm.judging.verdict import Outcome, Reason, judge
from farm.limits import Limits
from tests.oleans import Writer

CASES = Path(__file__).parents[1] / "cases" / "verdict"
PROGRAM = "prelude\nimport Core\ntheorem t : True := True.intro\n"


@pytest.mark.parametrize("way", ["forked", "cold"])
@pytest.mark.parametrize(
    "case", sorted(CASES.glob("*/*")), ids=lambda case: f"{case.parent.name}/{case.name}"
)
def test_a_case_gets_its_verdict(checker: Checker, core: LeanEnvironment, case: Path, way: str) -> None:
    expected = json.loads((case / "expected.json").read_text())
    limits = dataclasses.replace(Limits(), **expected.get("limits", {}))
    check = Check.of(program=(case / "program.lean").read_text(), limits=limits, assurance=Assurance())
    report = checker.check(check, core, way=way)
    verdict = judge(report)
    assert (verdict.outcome, verdict.reason, verdict.proof_status) == (
        case.parent.name,
        expected["reason"],
        expected["proof_status"],
    ), report


def test_where_no_checker_is_named_the_kernel_answers_in_an_image_of_lean(
    checker: Checker, core: LeanEnvironment
) -> None:
    alone = dataclasses.replace(core, digest="without a checker", checkers=())
    report = checker.check(Check.of(program=PROGRAM, assurance=Assurance()), alone, way="cold")
    assert (report.way, judge(report).reason) == ("cold", Reason.OK)


@pytest.mark.parametrize("stated", [False, True])
def test_a_seal_that_is_killed_from_outside_is_no_fault_of_the_proof(
    checker: Checker, core: LeanEnvironment, monkeypatch: pytest.MonkeyPatch, stated: bool
) -> None:
    def killed(fork: Fork, *others: Any) -> Execution:
        os.kill(fork.pid, signal.SIGKILL)
        return watched(fork, *others)

    asked = challenge_to(core.header, "theorem t : True := by") if stated else None
    check = Check.of(program=PROGRAM, assurance=Assurance(), challenge=asked)
    with monkeypatch.context() as patch:
        patch.setattr(seals, "watched", killed)
        verdict = judge(checker.check(check, core, way="forked"))
    assert (verdict.outcome, verdict.reason) == (Outcome.JUDGE_ERROR, Reason.BOX_FAILED)
    assert judge(checker.check(check, core, way="forked")).reason is Reason.OK


def test_a_seal_that_runs_out_of_time_before_the_kernel_is_asked_says_so(
    checker: Checker, core: LeanEnvironment
) -> None:
    """The kernel would refuse this module at once; to read it takes longer than the limit."""
    writer = Writer()
    term = writer.const("True.intro")
    for _ in range(200_000):
        term = writer.app(term, term)
    writer.theorem("t", writer.const("True"), term)
    module = writer.module([writer.imported("Core")])
    limits = Limits(wall_seconds=0.1, cpu_seconds=0.1)
    question = Question.of(PROGRAM, core, limits, box.never)
    with as_file(module) as file, pytest.raises(seals.KernelLimit, match=r"audit_(wall|cpu)"):
        checker._sealing._seals.seal(
            seals.Sealable(
                module=file, challenge=None, stated=PROGRAM, assurance=Assurance(), question=question
            )
        )


def test_where_lean_cannot_be_forked_parts_are_told_and_no_axiom_is_believed_for_its_form(
    checker: Checker, core: LeanEnvironment
) -> None:
    """An option that no image takes has the module audited in a box, by a process without Lean."""
    unforked = dataclasses.replace(core, digest="unforked", lean=(*core.lean, "-M4096"))
    stated = "theorem a (p : Prop) : p := sorry\n\ntheorem b (p : Prop) : p"
    by_part = f"{core.header}{stated} := a p\n"
    by_axiom = by_part.replace(":= a p", ":= (Bool.false_ne_true b._native.native_decide.ax_1).elim")
    by_axiom = by_axiom.replace("theorem b", "axiom b._native.native_decide.ax_1 : false = true\ntheorem b")
    challenge = challenge_to(core.header, f"{stated} := by")

    def asked(program: str, **how: Any) -> Report:
        check = Check.of(program=program, challenge=challenge, assurance=Assurance(**how))
        return checker.check(check, unforked)

    told = asked(by_part)
    assert (judge(told).reason, told.rests_on_sorry_of) == (Reason.OK, ("a",))
    assert told.audit is not None
    assert told.audit.sealed_sha256 is None
    assert judge(asked(by_part, requires_all_parts=True)).reason is Reason.HAS_SORRY
    refused = judge(asked(by_axiom, native=True))
    assert (refused.reason, "cannot be evaluated again" in refused.detail) == (Reason.AXIOM, True)


def test_every_outcome_but_a_failure_of_the_farm_has_a_case() -> None:
    of_tasks = {Outcome.DISPROVED, Outcome.PARTIAL, Outcome.STATED}
    assert {case.name for case in CASES.iterdir()} == set(Outcome) - {Outcome.JUDGE_ERROR, *of_tasks}


def test_messages_have_positions_in_the_program(checker: Checker, core: LeanEnvironment) -> None:
    report = checker.check(Check.of(program="prelude\nimport Core\ntheorem ω : True :=\n  ωω\n"), core)
    assert [(m.severity, m.line, m.column, m.end_column) for m in report.answer.messages] == [
        ("error", 4, 2, 4)
    ]


@pytest.mark.parametrize("character", ["\0", "\ud800"])
def test_text_that_lean_cannot_take_is_rejected_without_running_it(
    checker: Checker, core: LeanEnvironment, character: str
) -> None:
    report = checker.check(Check.of(program=f"{PROGRAM}-- {character}"), core)
    assert judge(report).reason is Reason.INVALID_TEXT


def test_the_facts_of_a_check_are_measured(
    checker: Checker, core: LeanEnvironment, isolation: Isolation
) -> None:
    report = checker.check(Check.of(program=PROGRAM), core)
    assert report.run.exit_status == 0
    assert report.run.cpu_seconds > 0
    assert report.run.wall_seconds > 0
    assert report.run.isolation == isolation.name


def test_a_cancelled_check_ends_and_is_no_verdict_about_the_proof(
    checker: Checker, core: LeanEnvironment
) -> None:
    endless = (CASES / "timeout" / "endless_instances" / "program.lean").read_text()
    cancel = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        check = Check.of(program=endless, limits=Limits(wall_seconds=60))
        checking = pool.submit(checker.check, check, core, cancelled=cancel.is_set)
        cancel.set()
        assert judge(checking.result(30)).outcome is Outcome.JUDGE_ERROR


def test_checks_run_side_by_side(checker: Checker, core: LeanEnvironment) -> None:
    wrong = "prelude\nimport Core\ntheorem t : False := True.intro\n"
    with ThreadPoolExecutor(4) as pool:
        reports = pool.map(lambda text: checker.check(Check.of(program=text), core), [PROGRAM, wrong] * 4)
        assert [judge(r).reason for r in reports] == [Reason.OK, Reason.ERROR] * 4


@pytest.mark.parametrize("content", [None, b"", b"olean", b"x" * 4096])
def test_missing_and_corrupt_modules_are_the_farms_fault(
    checker: Checker, core: LeanEnvironment, tmp_path: Path, content: bytes | None
) -> None:
    if content is not None:
        (tmp_path / "Core.olean").write_bytes(content)
    broken = dataclasses.replace(core, digest="broken", lean_path=(str(tmp_path),))
    verdict = judge(checker.check(Check.of(program=PROGRAM), broken))
    assert (verdict.outcome, verdict.reason) == (Outcome.JUDGE_ERROR, Reason.BAD_ENVIRONMENT)


def test_a_lean_that_is_not_there_is_the_farms_fault(checker: Checker, core: LeanEnvironment) -> None:
    broken = dataclasses.replace(core, digest="none", lean=("/no/such/lean",))
    verdict = judge(checker.check(Check.of(program=PROGRAM), broken))
    assert (verdict.outcome, verdict.reason) == (Outcome.JUDGE_ERROR, Reason.BOX_FAILED)
