"""Theorems below all of their file, with real Lean: their proofs, and who is to blame for what."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import KernelChecker, LeanEnvironment

from farm.assembly.challenge import challenge_to
from farm.assembly.program import AssemblyOptions, assemble
from farm.judging.assurance import Assurance
from farm.judging.job import Check, candidates_of
from farm.judging.report import Report
from farm.judging.tiers import Tier
from farm.judging.verdict import Outcome, Reason, judge
from farm.limits import Limits
from farm.manifest.entry import Entry
from tests.commands import Command, lines, verdicts, write
from tests.contexts import MODULES, shop, theorems
from tests.farms import Quiet, a_worker
from tests.reports import audited
from tests.toolchains import toolchain

WAYS = ("forked", "cold")
HEADER = "prelude\nimport Core\n\n"
CONTEXT = f"""{HEADER}namespace Shop

def total : Nat → Nat
  | .zero => .zero
  | .succ n => .succ (total n)

def Good (n : Nat) : Prop := n = 0

class Pick (n : Nat) where
  out : Nat

instance : Pick 1 := ⟨1⟩

theorem same (n : Nat) : n = n := rfl

"""
ADMITTED = f"{CONTEXT}theorem total_same (n : Nat) : total n = n := sorry\n\n"
#: Takes a moment, whoever asks for it.
SLOW = f"{CONTEXT}theorem slow : Nat.gcd (3 ^ 2500000) (5 ^ 1700000) = 1 := by decide +kernel\n\n"
STATEMENT = "theorem goal (n : Nat) : n = n"
FALSE = "theorem goal : (1 : Nat) = 2"


def check_of(
    context: str,
    statement: str,
    answer: str,
    *,
    tier: Tier = Tier.KERNEL,
    limits: Limits = Limits(),  # noqa: B008 - it is frozen
    options: AssemblyOptions = AssemblyOptions(),  # noqa: B008 - so is this
) -> Check:
    line = Entry(
        path="",
        line=1,
        name="goal",
        header="",
        context=context,
        formal_statement=statement,
        generation=f"```lean4\n{answer}\n```",
        predicted_proof="",
    )
    made = assemble(line, options)
    return Check(
        candidates=candidates_of(made, challenge_to("", statement, context)),
        assurance=Assurance(tier=tier),
        limits=limits,
        context_end=made[0].context_end,
    )


Ask = Callable[..., Report]


@pytest.fixture
def ask(checker: Checker, core: LeanEnvironment) -> Ask:
    """Check an answer to a statement below a context."""

    def asked(context: str, statement: str, answer: str, *, way: str | None = None, **more: object) -> Report:
        return checker.check(check_of(context, statement, answer, **more), core, way=way)  # type: ignore[arg-type]

    return asked


def worth(report: Report) -> tuple[Outcome, Reason]:
    verdict = judge(report)
    return verdict.outcome, verdict.reason


PROOFS = {
    "tactics": (CONTEXT, STATEMENT, ":= by\n  exact same n"),
    "a statement with its joint": (CONTEXT, f"{STATEMENT} := by", "  exact same n"),
    "a term": (CONTEXT, STATEMENT, "same n"),
    "a whole theorem": (CONTEXT, STATEMENT, f"{STATEMENT} := same n"),
    "a theorem that ends the namespace": (CONTEXT, STATEMENT, f"{STATEMENT} := same n\n\nend Shop"),
    "the whole file": (CONTEXT, STATEMENT, f"{CONTEXT}{STATEMENT} := same n\n\nend Shop"),
    "a doc comment at the end": (f"{CONTEXT}/-- All is itself. -/\n", STATEMENT, ":= same n"),
    "attributes at the end": (
        f"{CONTEXT}@[reducible, inline] ",
        "def one : Nat := 1\ntheorem goal : one = 1",
        ":= rfl",
    ),
    "an open in": (f"{CONTEXT}open Nat in\n", STATEMENT, ":= same n"),
    "a helper below a doc comment": (
        f"{CONTEXT}/-- All is itself. -/\n",
        STATEMENT,
        f"theorem help (n : Nat) : n = n := rfl\n\n{STATEMENT} := help n",
    ),
    "no line end": (CONTEXT.rstrip(), STATEMENT, ":= same n"),
    "equations": (
        CONTEXT,
        "theorem goal : ∀ n : Nat, total n = n",
        "| .zero => rfl\n| .succ n => congrArg Nat.succ (goal n)",
    ),
    "fields": (CONTEXT, "theorem goal : True ∧ True", "where\n  left := trivial\n  right := trivial"),
    "a where below the proof": (CONTEXT, STATEMENT, ":= aux n\nwhere aux (k : Nat) : k = k := rfl"),
    "a lemma that is admitted": (ADMITTED, "theorem goal (n : Nat) : total n = n", ":= total_same n"),
    "a section that is open": (
        f"{CONTEXT}section\nvariable (m : Nat)\n",
        "theorem goal : m = m",
        ":= same m",
    ),
}


#: Where a fork cuts the text in two, each in its own way; a fresh Lean reads it as one.
JOINTS = ["tactics", "the whole file", "a doc comment at the end", "attributes at the end", "an open in"]


@pytest.mark.parametrize(
    ("name", "way"),
    [*((name, "forked") for name in PROOFS), *((name, way) for name in JOINTS for way in WAYS[1:])],
)
def test_a_proof_below_its_context_is_one(ask: Ask, name: str, way: str) -> None:
    report = ask(*PROOFS[name], way=way)
    assert worth(report) == (Outcome.PROVED, Reason.OK), report
    assert audited(report).statement == "compared"


WRONG = {
    "a wrong proof": (CONTEXT, FALSE, ":= rfl", Reason.ERROR),
    "a sorry": (CONTEXT, FALSE, ":= sorry", Reason.HAS_SORRY),
    "a sorry below an admitted lemma": (ADMITTED, FALSE, ":= sorry", Reason.HAS_SORRY),
    "a sorry in a helper": (
        ADMITTED,
        FALSE,
        f"theorem help : (1 : Nat) = 2 := sorry\n{FALSE} := help",
        Reason.HAS_SORRY,
    ),
    "a sorry on the context's last line": (f"{ADMITTED.rstrip()} ", FALSE, ":= sorry", Reason.HAS_SORRY),
}


@pytest.mark.parametrize("tier", Tier)
@pytest.mark.parametrize(("context", "statement", "answer", "reason"), WRONG.values(), ids=WRONG)
def test_what_is_no_proof_is_told_as_what_it_is(
    ask: Ask, context: str, statement: str, answer: str, reason: Reason, tier: Tier
) -> None:
    report = ask(context, statement, answer, tier=tier)
    assert worth(report) == (Outcome.REJECTED, reason), report


def test_a_sorry_right_behind_the_context_is_the_proofs(ask: Ask) -> None:
    """The last command of the context and the theorem stand on one line."""
    context = f"{CONTEXT}example : (1 : Nat) = 2 := sorry "
    for tier in Tier:
        report = ask(context, FALSE, ":= sorry", tier=tier)
        assert worth(report) == (Outcome.REJECTED, Reason.HAS_SORRY), report


def test_an_admitted_lemma_is_told_of_and_is_no_fault_of_the_proof(ask: Ask) -> None:
    statement, answer = "theorem goal (n : Nat) : total n = n", ":= total_same n"
    audit = audited(ask(ADMITTED, statement, answer))
    assert (audit.statement_has_sorry, audit.axioms) == (True, ("sorryAx",))
    assert worth(ask(ADMITTED, statement, answer, tier=Tier.LEAN)) == (Outcome.PROVED, Reason.OK)


def test_hundreds_of_warnings_of_a_context_hide_no_error_of_the_proof(ask: Ask) -> None:
    admitted = "".join(
        f"theorem left{number} : total {number} = {number} := sorry\n" for number in range(250)
    )
    report = ask(f"{CONTEXT}{admitted}\n", FALSE, ":= rfl", tier=Tier.LEAN)
    assert worth(report) == (Outcome.REJECTED, Reason.ERROR), report


FAULTY = {
    "an error": (f"{CONTEXT}theorem bad : (1 : Nat) = 2 := rfl\n\n", "(line 19 of the context)"),
    "an unknown module": ("prelude\nimport Core\nimport No.Such\n\n", "No"),
    "an end that is early": (f"{CONTEXT}#exit\n", "context"),
    "a comment that is not closed": (f"{CONTEXT}/- open\n", ""),
    "a namespace that is not there": (f"{CONTEXT}end Nowhere\n", "of the context"),
}


ANSWERS = [":= same n", ":= by repeat rw [Nat.add_comm]", ":= sorry", "no proof"]


@pytest.mark.parametrize(
    ("tier", "answer"), [*((Tier.KERNEL, answer) for answer in ANSWERS), (Tier.LEAN, ANSWERS[0])]
)
@pytest.mark.parametrize(("context", "said"), FAULTY.values(), ids=FAULTY)
def test_a_fault_of_the_context_is_the_datasets_whatever_the_proof(
    ask: Ask, context: str, said: str, answer: str, tier: Tier
) -> None:
    verdict = judge(ask(context, STATEMENT, answer, tier=tier))
    assert (verdict.outcome, verdict.reason) == (Outcome.JUDGE_ERROR, Reason.BAD_CHALLENGE), verdict
    assert said in verdict.detail


@pytest.mark.parametrize("way", WAYS)
def test_the_time_of_a_context_is_charged_to_no_proof(
    checker: Checker, core: LeanEnvironment, way: str
) -> None:
    """A context that takes longer than the limits: what proves the theorem in time is a proof."""
    alone = checker.check(Check.of(program=SLOW), core, way=way).run
    limits = Limits(wall_seconds=0.8 * alone.wall_seconds, cpu_seconds=0.8 * alone.cpu_seconds)
    environment = dataclasses.replace(core, digest=f"slow context, {way}")

    def checked(answer: str) -> Report:
        return checker.check(check_of(SLOW, STATEMENT, answer, limits=limits), environment, way=way)

    assert worth(checked(":= same n")) == (Outcome.PROVED, Reason.OK)
    endless = checked(":= by\n  first | repeat rw [Nat.add_comm] | skip\n  exact same n\n" + _ENDLESS)
    assert judge(endless).outcome is Outcome.TIMEOUT, endless
    assert endless.run.wall_seconds >= min(limits.wall_seconds, limits.cpu_seconds)


_ENDLESS = "theorem endless (a b c : Nat) : a + b + c = c + b + a := by\n  repeat rw [Nat.add_comm]"


#: Lean believes the theorem at once; the kernel takes a moment to check it.
UNCHECKED = SLOW.replace("theorem slow", "set_option debug.skipKernelTC true in\ntheorem slow")


def test_the_time_of_sealing_a_context_is_charged_to_no_proof(
    checker: Checker, core: LeanEnvironment
) -> None:
    slow = checker.check(Check.of(program=SLOW), core).run
    limits = Limits(wall_seconds=0.6 * slow.wall_seconds, cpu_seconds=0.6 * slow.cpu_seconds)
    below = check_of(UNCHECKED, STATEMENT, ":= same n", limits=limits)
    assert worth(checker.check(below, core)) == (Outcome.PROVED, Reason.OK)
    own = UNCHECKED.removeprefix(CONTEXT)
    beside = check_of(CONTEXT, STATEMENT, f"{own}{STATEMENT} := same n", limits=limits)
    assert worth(checker.check(beside, core)) == (Outcome.TIMEOUT, Reason.KERNEL_TIME)


def test_a_context_that_does_not_end_is_the_datasets_fault(
    checker: Checker, core: LeanEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    soon = Limits(wall_seconds=2.0, cpu_seconds=2.0)
    monkeypatch.setattr("farm_workers.checking.contexts.FIRST_LOAD", soon)
    check = check_of(f"{CONTEXT}{_ENDLESS}\n\n", STATEMENT, ":= same n")
    for _ in range(2):  # it is remembered
        verdict = judge(checker.check(check, core))
        assert (verdict.outcome, verdict.reason) == (Outcome.JUDGE_ERROR, Reason.BAD_CHALLENGE), verdict


def test_a_second_program_has_what_is_left_apart_from_the_context(ask: Ask) -> None:
    answer = f"variable (h : False)\ninclude h\n{STATEMENT} := same n"
    report = ask(SLOW, STATEMENT, answer, limits=Limits(wall_seconds=3.0, cpu_seconds=3.0))
    assert (*worth(report), report.candidate) == (Outcome.PROVED, Reason.OK, 1), report


def test_a_second_program_has_as_much_left_where_a_second_kernel_reads_whole_modules(
    checker: Checker, core: LeanEnvironment
) -> None:
    alone = checker.check(Check.of(program=SLOW), core).run
    limits = Limits(wall_seconds=0.8 * alone.wall_seconds, cpu_seconds=0.8 * alone.cpu_seconds)
    accepting = KernelChecker(name="other", command=("/bin/sh", "-c", "true"), visible=())
    environment = dataclasses.replace(core, digest="context, two kernels", checkers=(accepting,))
    answer = f"variable (h : False)\ninclude h\n{STATEMENT} := same n"
    report = checker.check(check_of(SLOW, STATEMENT, answer, limits=limits), environment)
    assert (*worth(report), report.candidate) == (Outcome.PROVED, Reason.OK, 1), report
    assert report.audit is not None
    assert report.audit.second is not None


#: Programs that would prove what is false by what they do to the context: each a statement and an answer.
BAD = "theorem goal : Good 1"
EXPLOITS = {
    "the definition again": (BAD, f"def Good (n : Nat) : Prop := n = n\n{BAD} := rfl"),
    "the namespace ended, and the definition again": (
        BAD,
        f"end Shop\nnamespace Shop\ndef Good (n : Nat) : Prop := n = n\n{BAD} := rfl",
    ),
    "a definition outside that shadows": (
        BAD,
        f"end Shop\ndef Good (n : Nat) : Prop := n = n\n{BAD} := rfl\nnamespace Shop",
    ),
    "a deeper namespace": (
        BAD,
        f"namespace Deep\ndef Good (n : Nat) : Prop := n = n\n{BAD} := rfl\nend Deep",
    ),
    "a namespace of the theorem's name": (
        BAD,
        f"namespace goal\ndef Good (n : Nat) : Prop := n = n\nend goal\nopen goal in\n{BAD} := rfl",
    ),
    "what is opened": (
        BAD,
        f"namespace A\ndef Good (n : Nat) : Prop := n = n\nend A\nopen A\n{BAD} := rfl",
    ),
    "another theorem of the name": (BAD, "end Shop\ntheorem goal : True := trivial"),
    "the theorem in another namespace": (
        BAD,
        "theorem Other.goal : True := trivial\ntheorem goal : True := trivial",
    ),
    "the proof, then another theorem": (
        BAD,
        ":= sorry\n\nend Shop\nnamespace Other\ntheorem goal : True := trivial",
    ),
    "a local notation": (BAD, f'local notation "Good" => fun (_ : Nat) => True\n{BAD} := trivial'),
    "a notation for the number": (FALSE, f'local notation "2" => 1\n{FALSE} := rfl'),
    "a notation for equality": (
        FALSE,
        f'local infix:50 (priority := high) " = " => fun _ _ => True\n{FALSE} := trivial',
    ),
    "macro_rules for equality": (FALSE, f"macro_rules | `($_ = $_) => `(True)\n{FALSE} := trivial"),
    "a macro for the number": (FALSE, f'macro (priority := high) "2" : term => `(1)\n{FALSE} := rfl'),
    "an instance of a literal": (
        FALSE,
        f"instance (priority := high) : OfNat Nat 2 := ⟨1⟩\n{FALSE} := rfl",
    ),
    "an attribute that makes an instance": (
        "theorem goal : Pick.out 1 = 2",
        "def cheat : Pick 1 := ⟨2⟩\nattribute [instance] cheat\ntheorem goal : Pick.out 1 = 2 := rfl",
    ),
    "a local instance": (
        "theorem goal : Pick.out 1 = 2",
        "local instance (priority := high) : Pick 1 := ⟨2⟩\ntheorem goal : Pick.out 1 = 2 := rfl",
    ),
    "an assumption": (BAD, f"variable (h : False)\ninclude h\n{BAD} := h.elim"),
    "an axiom": (BAD, f"axiom cheat : Good 1\n{BAD} := cheat"),
    "an option that keeps the kernel away": (
        BAD,
        f"set_option debug.skipKernelTC true in\n{BAD} := (rfl : (1 : Nat) = 1)",
    ),
    "an option that binds names": (
        BAD,
        "end Shop\nset_option autoImplicit true\ntheorem Shop.goal : Good 1 → Good 1 := id",
    ),
    "an end in the middle": (BAD, ":= by\n  skip\n#exit"),
    "a proof that is cut off by a comment": (BAD, ":= /- "),
    "an admitted lemma of its own": (BAD, f"theorem cheat : Good 1 := sorry\n{BAD} := cheat"),
    "an unsafe theorem": (BAD, f"unsafe def cheat : Good 1 := cheat\n{BAD} := cheat"),
    "a private theorem": (BAD, f"private {BAD} := sorry"),
    "an empty proof": (BAD, ""),
    "an instance made from a lemma of the context": (
        "theorem goal : total 1 = 2",
        "attribute [local simp] total_same\ntheorem goal : total 1 = 2 := total_same 1",
    ),
}


@pytest.mark.parametrize(("statement", "answer"), EXPLOITS.values(), ids=EXPLOITS)
def test_a_proof_that_changes_what_the_context_means_proves_nothing(
    checker: Checker, core: LeanEnvironment, statement: str, answer: str
) -> None:
    ways = [
        AssemblyOptions(strip_theorem_from_proof=strip, restate_formal_statement=restate)
        for strip, restate in ((True, True), (False, True), (False, False))
    ]
    checks = [check_of(CONTEXT, statement, answer, options=options) for options in ways]
    checks.append(check_of(ADMITTED, statement, answer))
    for nth, check in enumerate(checks):
        if check in checks[:nth]:  # another way made the same of the answer
            continue
        report = checker.check(check, core)
        assert judge(report).outcome is Outcome.REJECTED, report


# A project of several files.


@pytest.fixture(scope="module")
def project(core: LeanEnvironment, tmp_path_factory: pytest.TempPathFactory) -> LeanEnvironment:
    """The project, compiled."""
    return shop(core, tmp_path_factory.mktemp("shop"))


@pytest.fixture
def worker(
    quiet: Quiet, core: LeanEnvironment, project: LeanEnvironment, tmp_path: Path
) -> Iterator[Command]:
    """A farm with a worker that serves the project."""
    file = tmp_path / "farm.toml"
    folders = ", ".join(f'"{each}"' for each in project.lean_path)
    made = toolchain(tmp_path / "toolchain", core)
    file.write_text(made.table("shop", f"lean_path = [{folders}]", r'header = "prelude\nimport Core"'))
    with a_worker(quiet, tmp_path / "worker", FARM_ENVIRONMENTS=str(file), FARM_ISOLATION="cgroup+bwrap"):
        yield quiet.farm


def test_every_theorem_of_a_project_is_proved_below_its_file(
    checker: Checker, project: LeanEnvironment
) -> None:
    found = list(theorems())
    assert len(found) == 8
    for line in found:
        context, statement, answer = (
            str(line[name]) for name in ("context", "formal_statement", "generation")
        )
        report = checker.check(check_of(context, statement, answer[8:-4]), project)
        assert worth(report) == (Outcome.PROVED, Reason.OK), (line, report)


def test_lines_of_a_project_go_through_a_whole_farm(worker: Command, tmp_path: Path) -> None:
    found = [line | {"environment": "shop"} for line in theorems()]
    wrong = [line | {"generation": "```lean\n:= sorry\n```"} for line in found]
    path = write(tmp_path / "shop.jsonl", *found, *wrong)
    said = worker("submit", path, "--tier", "lean", seconds=120.0)
    assert said.returncode == 0, said.stderr
    proved, admitted = ("proved", "ok"), ("rejected", "has_sorry")
    assert verdicts(path) == [proved] * len(found) + [admitted] * len(wrong)
    first = lines(path)[0]
    assert first["predicted_proof"].startswith(first["context"] + first["formal_statement"])
    assert len(MODULES) == 3
