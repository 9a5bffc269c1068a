"""An environment's checker as a second kernel: asked about what a seal has accepted."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from farm_workers.box.bubblewrap import python
from farm_workers.checking import seals
from farm_workers.checking.canary import examine, require_sound
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import KernelChecker, LeanEnvironment
from farm_workers.exploits.corpus import Case, judged, one_of_each, read

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


Saying = Callable[..., LeanEnvironment]


@pytest.fixture(scope="module")
def saying(core: LeanEnvironment) -> Iterator[Saying]:
    """How to get the environment with programs for the shell as its checkers: other, then other 2, ...

    The commands are the same each time, so that one image serves all environments with as many checkers.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)  # the user of a box without namespaces is another one

        def saying(*scripts: str) -> LeanEnvironment:
            others = []
            for number, script in enumerate(scripts, 1):
                file = folder / f"{number}.sh"
                file.write_text(script)
                called = "other" if number == 1 else f"other {number}"
                command = ("/bin/sh", str(file), "{module}", "{olean}")
                others.append(KernelChecker(name=called, command=command, visible=(file,)))
            return replace(core, digest=f"with {len(others)} checkers", checkers=tuple(others))

        yield saying


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
    check = Check.of(
        program=environment.header + program, limits=limits, challenge=asked, assurance=Assurance(tier=tier)
    )
    return checker.check(check, environment)


@pytest.mark.newcomer
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


ALL_HONEST = [case for case in read() if case.is_honest]


@pytest.mark.parametrize(
    "cases",
    [
        pytest.param(one_of_each(ALL_HONEST), id="one of each class"),
        pytest.param(ALL_HONEST, id="all", marks=pytest.mark.long),
    ],
)
def test_honest_programs_are_accepted_by_both(
    checker: Checker, replayed: LeanEnvironment, cases: list[Case]
) -> None:
    for case in cases:
        found = judged(checker, replayed, case, Tier.KERNEL)
        assert found.is_right, (case.name, found.verdict)
        second = audited(found.report).second
        assert second is not None, case.name
        assert second.accepted, case.name


def test_the_second_kernel_is_given_the_sealed_module(checker: Checker, saying: Saying) -> None:
    report = checked(checker, saying("test $1 = Module && sha256sum < $2"))
    assert judge(report).reason is Reason.OK
    audit = audited(report)
    assert audit.second is not None
    assert audit.second.said.split()[0] == audit.sealed_sha256 != audit.module_sha256


def test_what_the_kernels_disagree_about_is_a_failure_of_the_farm(checker: Checker, saying: Saying) -> None:
    report = checked(checker, saying("echo t is no theorem; exit 1"))
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
    checker: Checker, saying: Saying, scripts: list[str], reason: Reason, detail: str, asked: int
) -> None:
    report = checked(checker, saying(*scripts))
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
    checker: Checker, saying: Saying, replayed: LeanEnvironment
) -> None:
    (kernel,) = replayed.checkers
    credulous = replace(saying("exit 0").checkers[0], name="credulous")
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
    checker: Checker, saying: Saying, asked: dict[str, Any], reason: Reason
) -> None:
    report = checked(checker, saying("exit 2"), **asked)
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
    checker: Checker, saying: Saying, script: str, reason: Reason
) -> None:
    report = checked(checker, saying(script), limits=Limits(wall_seconds=3.0))
    assert judge(report).reason is reason, judge(report)


def test_a_second_kernel_that_does_not_exist_proves_nothing(checker: Checker, core: LeanEnvironment) -> None:
    gone = KernelChecker(name="gone", command=("/no/such/kernel", "{module}"), visible=())
    verdict = judge(checked(checker, replace(core, digest="gone", checkers=(gone,))))
    assert verdict.reason is Reason.BOX_FAILED


def test_what_the_seal_wrote_counts_only_when_it_is_what_it_told_of(
    checker: Checker, saying: Saying, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = seals._moved
    monkeypatch.setattr(seals, "_moved", lambda file: moved(file) + b"\0")
    verdict = judge(checked(checker, saying("exit 0")))
    assert (verdict.reason, "another module" in verdict.detail) == (Reason.BOX_FAILED, True)


def test_what_the_seal_wrote_is_bounded(
    checker: Checker, saying: Saying, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seals, "FILE_BYTES", 100)
    verdict = judge(checked(checker, saying("exit 0")))
    assert (verdict.reason, "wrote more" in verdict.detail) == (Reason.BOX_FAILED, True)


def test_the_first_replay_of_an_environments_imports_is_the_canaries_and_takes_the_time_of_no_proof(
    checker: Checker, replayed: LeanEnvironment
) -> None:
    (kernel,) = replayed.checkers
    # Longer than the proof below may take, and only of a module that imports what the header does.
    script = 'sleep 4; grep -q Core "$0" || exit 2; exec "$@"'
    slow = replace(kernel, command=("/bin/sh", "-c", script, "{olean}", *kernel.command))
    environment = replace(replayed, digest="slow", checkers=(slow,))
    examined = examine(environment, checker)
    assert (examined.wrong, examined.canaries) == ((), 13)
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
    checker: Checker, saying: Saying, script: str, found: str
) -> None:
    with pytest.raises(FarmError) as error:
        require_sound(saying(script), checker)
    assert found in str(error.value)
    assert "audit = false" not in str(error.value)


def test_a_checker_that_never_ends_is_unfit_after_its_time_and_is_not_asked_again(
    checker: Checker, saying: Saying, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("farm_workers.checking.canary._CHECKER_SECONDS", 2.0)
    wrong = " ".join(examine(saying("exec sleep 1000"), checker).wrong)
    assert "judging it again" not in caplog.text
    assert "replayed (forked)" in wrong
    assert "refused by the checker (forked)" in wrong
    assert "kernel_time" in wrong
