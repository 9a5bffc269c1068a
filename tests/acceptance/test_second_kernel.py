"""An environment's checker as a second kernel: asked about what a seal has accepted."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from farm_workers.box.bubblewrap import python
from farm_workers.checking import seals
from farm_workers.checking.canary import examine, require_sound
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import KernelChecker, LeanEnvironment
from farm_workers.exploits.corpus import Case, judged, read

from farm.assembly.challenge import Challenge
from farm.documents import decoded, encoded
from farm.errors import FarmError
from farm.judging.assurance import Assurance
from farm.judging.audit import Audit, Replay
from farm.judging.job import Check
from farm.judging.report import Report
from farm.judging.tiers import Tier
from farm.judging.verdict import Outcome, Reason, judge
from farm.limits import Limits
from tests.reports import audited

STATEMENT = "theorem t : 1 = 1 := sorry\n"
PROOF = "theorem t : 1 = 1 := rfl\n"
#: For the kernel only: Lean is told not to ask it.
SKIPPED = "set_option debug.skipKernelTC true in\ntheorem t : 1 = 2 := by decide +kernel\n"
LIMITS = Limits(wall_seconds=20.0)


def saying(core: LeanEnvironment, *scripts: str) -> LeanEnvironment:
    """Return the environment with programs for the shell as its checkers: other, then other 2, ..."""
    names = ["other", *(f"other {number}" for number in range(2, len(scripts) + 1))]
    others = [
        KernelChecker(name=name, command=("/bin/sh", "-c", script), visible=())
        for name, script in zip(names, scripts, strict=True)
    ]
    return replace(core, digest=f"with {scripts}", checkers=tuple(others))


@pytest.fixture
def replayed(core: LeanEnvironment) -> LeanEnvironment:
    """The environment with the farm's replay as another program that reads compiled modules."""
    return replace(core, digest="replayed", checkers=(replayer(core),))


def replayer(core: LeanEnvironment) -> KernelChecker:
    (replay,) = core.checkers
    return replace(replay, name="other", is_ours=False)


def checked(
    checker: Checker,
    environment: LeanEnvironment,
    program: str = PROOF,
    statement: str = STATEMENT,
    limits: Limits = LIMITS,
    tier: Tier = Tier.KERNEL,
) -> Report:
    asked = Challenge(program=environment.header + statement, name="t")
    check = Check(
        program=environment.header + program, limits=limits, challenge=asked, assurance=Assurance(tier=tier)
    )
    return checker.check(check, environment)


def test_what_both_kernels_accept_is_proved_and_says_so(checker: Checker, replayed: LeanEnvironment) -> None:
    report = checked(checker, replayed)
    verdict = judge(report)
    assert (verdict.reason, verdict.detail) == (Reason.OK, "The kernel and other accepted the module.")
    assert report.audit is not None
    first, second = report.audit.replay, report.audit.second
    assert first == Replay(accepted=True, constants=first.constants if first else 0)
    assert (second and second.accepted, second and second.checker) == (True, "other")
    *_, one, two = report.audit.words
    assert (one, two.partition(": {")[0]) == ("replay: accepted by the kernel", "replay: accepted by other")


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case.name) for case in read() if case.is_honest and not case.kind]
)
def test_every_honest_program_is_proved_by_both(
    checker: Checker, replayed: LeanEnvironment, case: Case
) -> None:
    found = judged(checker, replayed, case, Tier.KERNEL)
    assert (found.verdict.outcome, found.verdict.detail) == (Outcome.PROVED, found.verdict.detail)
    second = audited(found.report).second
    assert second is not None
    assert second.accepted


def test_the_second_kernel_is_given_the_sealed_module(checker: Checker, core: LeanEnvironment) -> None:
    report = checked(checker, saying(core, "test {module} = Module && sha256sum < {olean}"))
    assert judge(report).reason is Reason.OK
    audit = audited(report)
    assert audit.second is not None
    assert audit.second.said.split()[0] == audit.sealed_sha256 != audit.module_sha256


def test_what_the_kernels_disagree_about_is_a_failure_of_the_farm(
    checker: Checker, core: LeanEnvironment
) -> None:
    report = checked(checker, saying(core, "echo t is no theorem; exit 1"))
    verdict = judge(report)
    assert (verdict.outcome, verdict.reason) == (Outcome.JUDGE_ERROR, Reason.KERNELS_DISAGREE)
    assert verdict.detail == "The kernel accepted the module, but other rejected it: t is no theorem"
    audit = audited(report)
    assert len(audit.module_sha256 or "") == len(audit.sealed_sha256 or "") == 64
    assert list(audit.words)[-2:] == [
        "replay: accepted by the kernel",
        "replay: rejected by other: t is no theorem",
    ]


NO = "echo t is no theorem; exit 1"


@pytest.mark.parametrize(
    ("scripts", "reason", "detail", "asked"),
    [
        (["exit 0", "exit 0", "exit 0"], Reason.OK, "The kernel and other and other 2 and other 3", 3),
        (["exit 0", "exit 0", NO], Reason.KERNELS_DISAGREE, "but other 3 rejected it: t is no theorem", 3),
        (["exit 0", NO, "exit 2"], Reason.KERNELS_DISAGREE, "but other 2 rejected it: t is no theorem", 2),
        ([NO, "exit 0"], Reason.KERNELS_DISAGREE, "but other rejected it: t is no theorem", 1),
        (["exit 0", "exit 2"], Reason.BOX_FAILED, "status 2", 0),
    ],
)
def test_every_checker_of_a_list_must_accept(
    checker: Checker, core: LeanEnvironment, scripts: list[str], reason: Reason, detail: str, asked: int
) -> None:
    report = checked(checker, saying(core, *scripts))
    verdict = judge(report)
    assert (verdict.reason, detail in verdict.detail) == (reason, True), verdict.detail
    if asked:
        told = decoded(Audit, json.loads(json.dumps(encoded(audited(report)))))
        assert len(told.others) == asked
        assert [each.checker for each in told.others] == ["other", "other 2", "other 3"][:asked]
        assert len(list(told.words)) == 2 + asked


EXPORTED = Path(__file__).parent.parent / "exported.py"


@pytest.fixture
def exporting(core: LeanEnvironment) -> LeanEnvironment:
    """The environment with a checker that reads exports."""
    words = (python(), "-I", str(EXPORTED), "{export}")
    reader = KernelChecker(name="reader", command=words, visible=(EXPORTED,), reads_export=True)
    return replace(core, digest="exporting", checkers=(reader,))


def test_a_checker_of_exports_reads_the_proof_with_all_that_it_rests_on(
    checker: Checker, exporting: LeanEnvironment
) -> None:
    program = "theorem t (p q : Prop) (h : p ∧ q) : q ∧ p := ⟨h.2, h.1⟩\n"
    statement = "theorem t (p q : Prop) (h : p ∧ q) : q ∧ p := sorry\n"
    report = checked(checker, exporting, program, statement)
    assert judge(report).detail == "The kernel and reader accepted the module.", judge(report)
    (found,) = audited(report).others
    assert int(found.said.split()[0]) > 5


def test_a_checker_of_exports_is_fit_if_it_refuses_false(
    checker: Checker, exporting: LeanEnvironment
) -> None:
    assert examine(exporting, checker).wrong == ()


def test_each_checker_of_a_list_has_to_refuse_a_proof_of_false(
    checker: Checker, core: LeanEnvironment, replayed: LeanEnvironment
) -> None:
    (kernel,) = replayed.checkers
    credulous = replace(saying(core, "exit 0").checkers[0], name="credulous")
    both = replace(replayed, digest="one of two", checkers=(kernel, credulous))
    (wrong,) = examine(both, checker).wrong
    assert wrong.startswith("refused by the checker credulous (forked) came out as ok: ")


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"program": SKIPPED, "statement": "theorem t : 1 = 2 := sorry\n"}, Reason.KERNEL),
        ({"statement": "theorem t : 2 = 2 := sorry\n"}, Reason.STATEMENT_MISMATCH),
        ({"tier": Tier.AUDIT}, Reason.OK),
    ],
)
def test_the_second_kernel_is_asked_about_nothing_but_what_the_first_accepts(
    checker: Checker, core: LeanEnvironment, asked: dict[str, Any], reason: Reason
) -> None:
    report = checked(checker, saying(core, "exit 2"), **asked)
    assert judge(report).reason is reason
    assert audited(report).second is None


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("while :; do :; done", Reason.KERNEL_TIME),
        ("echo deep recursion was detected; exit 1", Reason.KERNEL_LIMIT),
        ("exit 2", Reason.BOX_FAILED),
        ("kill -SEGV $$", Reason.BOX_FAILED),
        ("exec /no/such/kernel", Reason.BOX_FAILED),
    ],
)
def test_a_second_kernel_without_an_answer_proves_nothing(
    checker: Checker, core: LeanEnvironment, script: str, reason: Reason
) -> None:
    report = checked(checker, saying(core, script), limits=Limits(wall_seconds=3.0))
    assert judge(report).reason is reason, judge(report)


def test_a_second_kernel_that_does_not_exist_proves_nothing(checker: Checker, core: LeanEnvironment) -> None:
    gone = KernelChecker(name="gone", command=("/no/such/kernel", "{module}"), visible=())
    verdict = judge(checked(checker, replace(core, digest="gone", checkers=(gone,))))
    assert verdict.reason is Reason.BOX_FAILED


def test_what_the_seal_wrote_counts_only_when_it_is_what_it_told_of(
    checker: Checker, core: LeanEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = seals._moved
    monkeypatch.setattr(seals, "_moved", lambda file: moved(file) + b"\0")
    verdict = judge(checked(checker, saying(core, "exit 0")))
    assert (verdict.reason, "another module" in verdict.detail) == (Reason.BOX_FAILED, True)


def test_what_the_seal_wrote_is_bounded(
    checker: Checker, core: LeanEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seals, "FILE_BYTES", 100)
    verdict = judge(checked(checker, saying(core, "exit 0")))
    assert (verdict.reason, "wrote more" in verdict.detail) == (Reason.BOX_FAILED, True)


def test_the_canaries_live_where_there_is_a_second_kernel(
    checker: Checker, replayed: LeanEnvironment
) -> None:
    examined = examine(replayed, checker)
    assert (examined.wrong, examined.canaries) == ((), 13)


def test_the_first_replay_of_an_environments_imports_is_the_canaries_and_takes_the_time_of_no_proof(
    checker: Checker, replayed: LeanEnvironment
) -> None:
    (kernel,) = replayed.checkers
    # Longer than the proof below may take, and only of a module that imports what the header does.
    script = 'sleep 4; grep -q Core "$0" || exit 2; exec "$@"'
    slow = replace(kernel, command=("/bin/sh", "-c", script, "{olean}", *kernel.command))
    environment = replace(replayed, digest="slow", checkers=(slow,))
    assert examine(environment, checker).wrong == ()
    report = checked(checker, environment, limits=Limits(wall_seconds=3.0))
    assert judge(report).reason is Reason.KERNEL_TIME


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ("exit 0", "refused by the checker (forked) came out as ok: The kernel accepted the module"),
        ("exit 1", "replayed (forked) came out as kernels_disagree: "),
        ("exit 2", "box_failed: The box failed: the checker could not judge the compiled module (status 2)"),
    ],
)
def test_an_environment_with_a_checker_that_is_none_is_not_fit_to_judge(
    checker: Checker, core: LeanEnvironment, script: str, found: str
) -> None:
    with pytest.raises(FarmError) as error:
        require_sound(saying(core, script), checker)
    assert found in str(error.value)
    assert "audit = false" not in str(error.value)


def test_a_checker_that_never_ends_is_unfit_after_its_time(
    checker: Checker, core: LeanEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("farm_workers.checking.canary._CHECKER_SECONDS", 2.0)
    wrong = " ".join(examine(saying(core, "exec sleep 1000"), checker).wrong)
    assert "replayed (forked)" in wrong
    assert "refused by the checker (forked)" in wrong
    assert "kernel_time" in wrong
