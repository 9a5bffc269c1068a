"""Contexts that are read once for all their proofs, with real Lean: the verdicts, and what is shared."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from farm_workers.box.isolation import Isolation
from farm_workers.checking.checker import Checker
from farm_workers.checking.contexts import Contexts
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.exploits.corpus import Case, asked, one_of_each, read

from farm.judging.assurance import Assurance
from farm.judging.job import Candidate, Check
from farm.judging.report import Report
from farm.judging.tiers import Tier
from farm.judging.verdict import Outcome, Reason, judge
from farm.lean_text.header import header_end
from farm.limits import Limits
from tests.acceptance.test_contexts import (
    ADMITTED,
    CONTEXT,
    EXPLOITS,
    FALSE,
    HEADER,
    PROOFS,
    STATEMENT,
    WRONG,
    check_of,
)
from tests.process_memory import rewrite, started
from tests.processes import PATIENCE, eventually, process
from tests.reports import audited

#: What stands above the theorem, for programs that have nothing there.
_ABOVE = "\ndef above : Nat := 1\n\ntheorem above_is_one : above = 1 := rfl\n\n"
TRICKS = [case for case in read() if case.runs_code and not case.is_honest]
ONE_OF_EACH = one_of_each(TRICKS)


#: Processes of other checkers, which were there before the test's own.
_OTHERS: set[int] = set()


@pytest.fixture
def failures(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What has kept checks from sharing their contexts, filled in as it happens."""
    found: list[str] = []
    noted = Contexts.failed

    def failed(self: Contexts, question: object, error: Exception) -> None:
        found.append(str(error))
        noted(self, question, error)  # type: ignore[arg-type]

    monkeypatch.setattr(Contexts, "failed", failed)
    return found


@pytest.fixture
def sharing(isolation: Isolation, tmp_path: Path) -> Iterator[Checker]:
    """A checker that has judged nothing."""
    if isolation.namespaces is None:
        pytest.skip("without namespaces no context is shared")
    _OTHERS.clear()
    _OTHERS.update(each.pid for each in started())
    with Checker(isolation, home=tmp_path / "sharing", concurrency=2) as found:
        yield found


@pytest.fixture(scope="module")
def unshared(isolation: Isolation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checker]:
    """A checker that reads the context in every check."""
    home = tmp_path_factory.mktemp("unshared")
    with Checker(isolation, home=home, concurrency=2, share_contexts=False) as found:
        yield found


def told(report: Report) -> tuple[object, ...]:
    """Return what people are told of a check."""
    keys = ("accepted", "axioms", "statement_has_sorry", "target", "trusts", "rests_on_sorry_of")
    facts = [getattr(report.audit, key, None) for key in keys]
    verdict = judge(report)
    return verdict.outcome, verdict.reason, verdict.detail, report.answer.messages, report.candidate, *facts


CASES = {**PROOFS, **{name: case[:3] for name, case in WRONG.items()}}
#: They are rejected by what the kernel and the audit see, which the tier `lean` does without.
EXPLOITED = {name: (CONTEXT, *case) for name, case in EXPLOITS.items()}


@pytest.mark.parametrize(
    ("tier", "cases"), [(Tier.KERNEL, CASES | EXPLOITED), (Tier.LEAN, CASES)], ids=["kernel", "lean"]
)
def test_a_shared_context_changes_no_verdict(
    sharing: Checker,
    unshared: Checker,
    core: LeanEnvironment,
    failures: list[str],
    tier: Tier,
    cases: dict[str, tuple[str, str, str]],
) -> None:
    checks = {name: check_of(*case, tier=tier) for name, case in cases.items()}
    for name, check in checks.items():
        assert told(sharing.check(check, core)) == told(unshared.check(check, core)), name
    assert failures == []


def test_parts_are_required_of_the_statement_and_not_of_the_context(
    sharing: Checker, unshared: Checker, core: LeanEnvironment, failures: list[str]
) -> None:
    statement = "theorem first (n : Nat) : n = n := sorry\n\ntheorem goal (n : Nat) : total n = n"
    half = check_of(ADMITTED, statement, ":= total_same n")
    proved = half.program.replace("n = n := sorry\n\ntheorem goal", "n = n := rfl\n\ntheorem goal")
    whole = replace(half, candidates=(replace(half.candidates[0], program=proved),))
    for check, reason in ((half, Reason.HAS_SORRY), (whole, Reason.OK)):
        assert judge(sharing.check(check, core)).reason is Reason.OK
        required = replace(check.assurance or Assurance(), requires_all_parts=True)
        for checker in (sharing, unshared):
            report = checker.check(replace(check, assurance=required), core)
            assert judge(report).reason is reason, report
            assert report.rests_on_sorry_of[-1:] == ("Shop.total_same",)
    assert failures == []


def test_axioms_and_sorries_of_the_context_are_told_as_if_it_stood_in_the_module(
    sharing: Checker, unshared: Checker, core: LeanEnvironment, failures: list[str]
) -> None:
    context = (
        f"{ADMITTED}theorem by_ext (p q : Prop) (h : p ↔ q) : p = q := propext h\n\n"
        "theorem further (p q : Prop) (h : p ↔ q) : q = p := (by_ext p q h).symm\n\n"
        "unsafe def loose : Nat := 1\n\n"
    )
    answers = {
        "by two lemmas": (
            "theorem goal (p q : Prop) (h : p ↔ q) : q = p",
            ":= further p q h",
            ("propext",),
            (),
        ),
        "by an admitted one": (
            "theorem goal (n : Nat) : total n = n",
            ":= total_same n",
            ("sorryAx",),
            ("Shop.total_same",),
        ),
        "by itself": ("theorem goal : (1 : Nat) = 1", ":= rfl", (), ()),
    }
    for name, (statement, answer, axioms, admitted) in answers.items():
        check = check_of(context, statement, answer)
        report = sharing.check(check, core)
        assert told(report) == told(unshared.check(check, core)), name
        assert (audited(report).axioms, report.rests_on_sorry_of) == (axioms, admitted)
        narrow = replace(check, assurance=replace(check.assurance, axioms=()))  # type: ignore[type-var]
        assert told(sharing.check(narrow, core)) == told(unshared.check(narrow, core)), name
    assert failures == []


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ("axiom all_are_one (n : Nat) : n = 1\n\n", "axiom"),
        ("#exit\n\n", "end"),
    ],
)
def test_a_context_that_cannot_be_shared_is_read_by_each_check(
    sharing: Checker, unshared: Checker, core: LeanEnvironment, failures: list[str], more: str, why: str
) -> None:
    for answer in (":= same n", ":= by rw [all_are_one n]"):
        check = check_of(f"{CONTEXT}{more}", STATEMENT, answer)
        assert told(sharing.check(check, core)) == told(unshared.check(check, core))
    assert failures != []
    assert all(why in each for each in failures), failures


def test_a_context_is_read_once_for_all_proofs(
    sharing: Checker, core: LeanEnvironment, failures: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    images = []
    monkeypatch.setattr(Contexts, "reading", lambda *_: pytest.fail("a check reads the context itself"))
    for number in range(3):
        report = sharing.check(check_of(CONTEXT, STATEMENT, f":= same n -- {number}"), core)
        assert judge(report).reason is Reason.OK
        images.append(_images())
    assert images == [images[0]] * 3
    assert failures == []


def _below(case: Case, core: LeanEnvironment) -> Check:
    """Return the check of a case, with the same two declarations above all that it says."""
    check = asked(core, case, Tier.KERNEL)
    assert check.challenge is not None
    program, stated = (
        text[: header_end(text)] + _ABOVE + text[header_end(text) :]
        for text in (check.program, check.challenge.program)
    )
    end = header_end(program) + len(_ABOVE)
    challenge = replace(check.challenge, program=stated, context_end=end)
    below = Candidate(program=program, challenge=challenge)
    return replace(check, candidates=(below,), context_end=end)


def _line(number: int, core: LeanEnvironment, *, honest: bool) -> tuple[Check, Reason]:
    """Return an honest or a false line, and what must come of it."""
    stated = f"theorem t : {number} + 0 = {number + (not honest)}"
    case = Case(
        name=stated,
        kind="line",
        statement=f"{stated} := by sorry",
        program=f"{stated} := by exact rfl\n",
        seconds=30.0 * PATIENCE,
    )
    return _below(case, core), Reason.OK if honest else Reason.ERROR


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    "cases", [ONE_OF_EACH, pytest.param(TRICKS, marks=pytest.mark.long)], ids=["one of each class", "all"]
)
def test_tricks_change_no_other_verdict_below_the_same_context(
    sharing: Checker, core: LeanEnvironment, cases: list[Case]
) -> None:
    def reason(check: Check) -> Reason:
        return judge(sharing.check(check, core)).reason

    with ThreadPoolExecutor(2) as threads:
        tricks, lines = [], []
        for number, case in enumerate(cases):
            tricks.append((case.name, threads.submit(sharing.check, _below(case, core), core)))
            for honest in (True, False):
                check, expected = _line(number, core, honest=honest)
                lines.append((threads.submit(reason, check), expected))
        assert [found.result() for found, _ in lines] == [expected for _, expected in lines]
        assert [name for name, found in tricks if judge(found.result()).outcome is Outcome.PROVED] == []


def _images() -> dict[str, int]:
    """Return the process that has read a context, the one that has its module, and the one of the header.

    The first is in a namespace of its own, whose process 1 is a keeper; the third has forked the others.
    """
    own = [each for each in started() if each.pid not in _OTHERS]
    images = [each.pid for each in own if "farm_workers.images.serve" in each.command]
    numbers = {pid: _told(pid, "NSpid") for pid in images}
    parents = {pid: _told(pid, "PPid")[0] for pid in images}
    (context,) = (
        pid
        for pid, parent in parents.items()
        if parent in numbers and len(numbers[pid]) > len(numbers[parent]) and numbers[pid][-1] > 1
    )
    header = parents[context]
    (module,) = (
        pid
        for pid, parent in parents.items()
        if parent == header and len(numbers[pid]) == len(numbers[header])
    )
    return {"context": context, "module": module, "header": header}


def _told(pid: int, key: str) -> list[int]:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return next([*map(int, line.split()[1:])] for line in lines if line.startswith(f"{key}:"))


@pytest.mark.parametrize("kind", ["context", "module", "header"])
def test_an_image_that_is_killed_is_made_again(
    sharing: Checker, core: LeanEnvironment, failures: list[str], kind: str
) -> None:
    killed = set()
    for number in range(3):
        report = sharing.check(check_of(CONTEXT, STATEMENT, f":= same n -- {number}"), core)
        assert judge(report).reason is Reason.OK
        pid = _images()[kind]
        assert pid not in killed
        killed.add(pid)
        os.kill(pid, signal.SIGKILL)
        eventually(lambda pid=pid: not Path(f"/proc/{pid}").exists())  # type: ignore[misc]
    assert failures == []


def test_what_ends_badly_in_a_shared_image_is_judged_alone(
    sharing: Checker, core: LeanEnvironment, failures: list[str]
) -> None:
    """The image is not ready in time."""
    slow = f"{HEADER}theorem slow : Nat.gcd (3 ^ 2500000) (5 ^ 1700000) = 1 := by decide +kernel\n\n"
    check = check_of(slow, "theorem goal : True", ":= trivial", limits=Limits(wall_seconds=60.0 * PATIENCE))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("farm_workers.images.image._READING_SECONDS", 0.01)
        assert judge(sharing.check(check, core)).reason is Reason.OK
    assert len(failures) == 1
    wrong = check_of(CONTEXT, FALSE, ":= rfl")
    assert judge(sharing.check(wrong, core)).reason is Reason.ERROR


#: What a statement means that uses it is in the memory of the image that has read the context.
WORD = f'{CONTEXT}local notation "word" => "genuine-word"\n\n' + "".join(
    f"theorem same{each} (n : Nat) : n = n := rfl\n\n" for each in range(4)
)


@pytest.mark.skipif(os.geteuid() != 0, reason="writes to the memory of a process that cannot be dumped")
def test_what_is_written_to_the_memory_of_a_contexts_image_changes_no_statement(
    sharing: Checker, core: LeanEnvironment
) -> None:
    def said(word: str) -> Report:
        return sharing.check(check_of(WORD, f'theorem goal : word = "{word}"', ":= rfl"), core)

    assert judge(said("genuine-word")).reason is Reason.OK
    assert rewrite(_images()["context"], b'"genuine-word"\0', b'"forgery-word"\0')
    report = said("forgery-word")
    assert judge(report).outcome is Outcome.REJECTED, report
    assert audited(report).accepted is False  # to Lean in that image it was true


def test_a_context_is_shared_still_after_proofs_that_lost_their_image(
    sharing: Checker, core: LeanEnvironment, failures: list[str]
) -> None:
    """More often than a context may fail by itself."""
    limits = Limits(wall_seconds=1.0, cpu_seconds=10.0)

    def endless(number: int) -> Reason:
        answer = f":= by\n  repeat rw [Nat.add_comm] -- {number}"
        statement = "theorem goal (a b c : Nat) : a + b + c = c + b + a"
        return judge(sharing.check(check_of(CONTEXT, statement, answer, limits=limits), core)).reason

    sharing.check(check_of(CONTEXT, STATEMENT, ":= same n"), core)
    for number in range(4):
        image = _images()["context"]
        with ThreadPoolExecutor(1) as thread:
            verdict = thread.submit(endless, number)
            eventually(lambda image=image: [each for each in started() if each.parent == image])  # type: ignore[misc]
            os.kill(image, signal.SIGKILL)
            assert verdict.result() is Reason.WALL_LIMIT
        eventually(lambda image=image: process(image) is None)  # type: ignore[misc]
        assert (
            judge(sharing.check(check_of(CONTEXT, STATEMENT, f":= same n -- {number}"), core)).reason
            is Reason.OK
        )
    assert failures == []


#: What a proof's own programs do until they are killed.
HARM = {
    "forks": "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do (while :; do /bin/true; done) & done",
    "stops everything": "kill -STOP -1",
    "stops its image": "for i in $(seq 2 400); do kill -STOP $i; done; while :; do sleep 1; done",
}


@pytest.mark.parametrize("harm", HARM.values(), ids=HARM)
def test_killing_what_a_proof_has_started_adds_nothing_to_its_time(
    sharing: Checker, core: LeanEnvironment, failures: list[str], harm: str
) -> None:
    (spawning,) = (case for case in TRICKS if case.name == "a program that kills its own Lean")
    program = spawning.program.replace("kill -9 $PPID", harm).replace("pause 1000", "pause 60000")
    check = _below(replace(spawning, program=program), core)
    limits = replace(check.limits, wall_seconds=1.0, cpu_seconds=100.0)
    sharing.check(_line(1, core, honest=True)[0], core)
    report = sharing.check(replace(check, limits=limits), core)
    assert judge(report).reason is Reason.WALL_LIMIT, report
    assert judge(sharing.check(_line(2, core, honest=True)[0], core)).reason is Reason.OK
    assert failures == []
