"""The seal of what Lean itself compiled, in forks of an image that has imported the core library."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from farm_workers.audit.declarations import MODULE, OLDER_MODULE, Module, opened_module
from farm_workers.audit.names import dotted, parsed
from farm_workers.audit.olean import Name
from farm_workers.audit.terms import Reading, Terms
from farm_workers.binding.description import encoded, shipped
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.replay import command

from farm.assembly.challenge import challenge_to
from farm.judging.assurance import Assurance
from farm.judging.job import Check
from farm.judging.report import Report
from farm.judging.verdict import Outcome, Reason, judge
from farm.limits import Limits
from tests.compiled_modules import HEADER, CompiledModules, compiled_beside
from tests.descriptions import with_older_kernel
from tests.oleans import Writer, box
from tests.processes import PATIENCE, family
from tests.sealing import Image, Sealed
from tests.statements import HONEST, NO_PROOFS, OPEN, PROVED

#: What the core library does not have: the tactic, and what believed the compiler before it left axioms.
NATIVE = """prelude
import Core
import Init.Prelude
namespace Lean.Parser.Tactic
@[extern "native", tactic_parser 1000] opaque nativeDecide : ParserDescr
end Lean.Parser.Tactic
namespace Lean
opaque reduceBool (b : Bool) : Bool := b
opaque reduceNat (n : Nat) : Nat := n
axiom trustCompiler : True
axiom ofReduceBool (a b : Bool) (h : reduceBool a = b) : a = b
axiom ofReduceNat (a b : Nat) (h : reduceNat a = b) : a = b
end Lean
axiom cheat : False
noncomputable abbrev hidden : Nat := sorry
def farther (found : Bool) : Nat → Bool | 0 => found | .succ n => farther found n
inductive Done where
  | ok (value : Lean.Syntax)
  | error (why : Lean.Syntax)
instance : Inhabited Done := ⟨.ok .missing⟩
structure IO.FS.Stream where
  (flush read write getLine : Nat → Done) (putStr : String → Nat → Done) (isTty : Nat → Done)
def done (_ : Nat) : Done := .ok .missing
instance : Inhabited IO.FS.Stream := ⟨done, done, done, done, fun _ => done, done⟩
@[extern "native"] opaque IO.getStdout (now : Nat) : IO.FS.Stream
@[extern "native"] opaque IO.Process.exit {α : Type} (code : Nat) (now : Nat) : Done
@[extern "native"] opaque IO.sleep (ms : Nat) (now : Nat) : Nat
@[extern "native"] opaque IO.FS.writeFile (file content : String) (now : Nat) : Done
def prints (text : String) (now : Nat) : Bool :=
  match (IO.getStdout now).putStr text now with
  | .ok _ => match (IO.getStdout now).flush now with
    | .ok _ => match IO.Process.exit (α := Nat) 0 now with | .ok _ => true | .error _ => false
    | .error _ => false
  | .error _ => false
def exits (code now : Nat) : Bool :=
  match IO.Process.exit (α := Nat) code now with | .ok _ => false | .error _ => true
def sleeps (now : Nat) : Bool := Nat.beq (IO.sleep 1000000 now) 0
@[extern "native"] opaque Lean.mkApp (f a : Nat) : Nat → Nat
def calls_what_is_no_function (n : Nat) : Bool := Nat.beq (Lean.mkApp n n n) 0
def grows (l : List Nat) : Nat → Bool | 0 => false | .succ n => grows (.cons n l) n
def always (_ : Nat) := true
@[implemented_by always] def replaced (_ : Nat) := false
unsafe def hazard : Bool := true
def writes (file : String) (now : Nat) : Bool :=
  match IO.FS.writeFile file "t" now with | .ok _ => true | .error _ => false
"""
Seal = Callable[..., Sealed]


@pytest.fixture(scope="module")
def native(core: LeanEnvironment, tmp_path_factory: pytest.TempPathFactory) -> LeanEnvironment:
    """The environment with a module `Native`, which tests import as a header that has more than the core.

    It imports a module with the name of Lean's own, without which no term is compiled.
    """
    folder = tmp_path_factory.mktemp("native")
    folder.chmod(0o755)  # the process that reads modules as data is another user's
    (folder / "Init").mkdir()
    compiled_beside(folder / "Init" / "Prelude.lean", HEADER, core, folder)
    with_prelude = NATIVE.replace("import Core", "import Core\nimport Init.Prelude")
    compiled_beside(folder / "Native.lean", with_prelude, core, folder)
    path = (*core.lean_path, str(folder))
    return replace(core, digest="native", lean_path=path, visible=(*core.visible, str(folder)), header=MORE)


@pytest.fixture(scope="module")
def compiled_native(compiled: CompiledModules, native: LeanEnvironment) -> CompiledModules:
    """How to get the compiled module of a text that may import `Native`."""
    return replace(compiled, environment=native)


@pytest.fixture(scope="module", params=["newest", "older"])
def image(
    core: LeanEnvironment,
    compiled: CompiledModules,
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Image]:
    """An image of the core library, with the newest functions of the kernel and with older ones."""
    older = tmp_path_factory.mktemp("older") / "description.json"
    older.write_text(encoded(with_older_kernel(shipped(4, 35))))
    description = older if request.param == "older" else None
    found = Image(core.lean[0], core.lean_path, compiled(""), description)
    yield found
    found.close()


@pytest.fixture(scope="module")
def native_image(native: LeanEnvironment, compiled_native: CompiledModules) -> Iterator[Image]:
    """An image that has imported `Native`."""
    found = Image(native.lean[0], native.lean_path, compiled_native("", MORE))
    yield found
    found.close()


@pytest.fixture(scope="module")
def seal(image: Image, compiled: CompiledModules) -> Seal:
    """Compile a submission and its challenge and seal the first."""

    def seal(submission: str, challenge: str | None = None, **order: object) -> Sealed:
        return image.seal(compiled(submission), challenge and compiled(challenge), **order)

    return seal


MORE = "prelude\nimport Native\n"


@pytest.fixture(scope="module")
def seal_native(native_image: Image, compiled_native: CompiledModules) -> Seal:
    """Compile and seal as `seal` does, on top of `Native`."""

    def seal(submission: str, challenge: str | None = None, **order: object) -> Sealed:
        stated = challenge and compiled_native(challenge, MORE)
        return native_image.seal(compiled_native(submission, MORE), stated, **order)

    return seal


@pytest.mark.parametrize(("challenge", "submission"), HONEST)
def test_an_honest_proof_is_accepted(seal: Seal, challenge: str, submission: str) -> None:
    sealed = seal(submission, challenge)
    assert sealed.words == []
    assert sealed["replay"]["accepted"] is True
    assert (sealed["accepted"], sealed["statement"], sealed["trusts"]) == (True, "compared", [])


def test_a_module_without_the_mark_of_the_module_system_is_sealed_and_audited(
    image: Image, compiled: CompiledModules, tmp_path: Path
) -> None:
    """Releases before the module system write such modules; the root is a file's last object."""
    challenge, submission = HONEST[0]
    files = []
    for number, text in enumerate((submission, challenge)):
        content = bytearray(compiled(text).read_bytes()[:-8])
        root = len(content) - 48
        assert int.from_bytes(content[root : root + 8], "little") == MODULE
        content[root : root + 8] = OLDER_MODULE.to_bytes(8, "little")
        files.append(tmp_path / f"{number}.olean")
        files[-1].write_bytes(content)
    into = tmp_path / "sealed.olean"
    sealed = image.seal(*files, into=str(into))
    assert (sealed.words, sealed["accepted"], sealed["replay"]["accepted"]) == ([], True, True)
    with opened_module(into) as module:
        assert module.is_older
    files[0].write_bytes(files[0].read_bytes() + bytes(8))
    assert image.seal(*files)["accepted"] is True
    files[0].write_bytes(files[0].read_bytes()[:-16])
    assert image.seal(*files)["accepted"] is False


@pytest.mark.parametrize(("challenge", "submission", "expected"), NO_PROOFS)
def test_what_is_no_proof_of_the_statement_is_found(
    seal: Seal, challenge: str, submission: str, expected: list[tuple[str, str]]
) -> None:
    sealed = seal(submission, challenge, target="goal")
    assert sealed["accepted"] is (expected == [])
    assert [each for each in sealed.words if each[0] != "unsafe"] == [
        each for each in expected if each[0] != "unsafe"
    ]


def test_what_lean_was_told_not_to_check_is_refused_by_the_kernel(seal: Seal) -> None:
    text = "set_option debug.skipKernelTC true\ntheorem goal : 1 = 2 := by decide +kernel\n"
    sealed = seal(text, "theorem goal : 1 = 2 := sorry\n")
    assert sealed.words == [("kernel", None)]
    assert "(kernel) application type mismatch" in sealed["replay"]["said"]
    believed = seal(text, "theorem goal : 1 = 2 := sorry\n", replay=False)
    assert (believed["accepted"], believed["replay"]) == (True, None)


# Native
DECIDED = "theorem goal : 10 = 10 := by native_decide\n"
ASKED = "theorem goal : 10 = 10 := sorry\n"
#: The axiom as the command `lean` names it, and as a fork of an image does.
AXIOM = "goal._native.native_decide.ax_1_1"
AXIOM_OF_A_FORK = "goal._native.native_decide.ax_1"


def test_native_decide_is_found(seal_native: Seal) -> None:
    sealed = seal_native(DECIDED, ASKED)
    assert sealed.words == [("native_decide", AXIOM_OF_A_FORK)]


def test_native_decide_can_be_allowed_and_is_named(
    native_image: Image, compiled_native: CompiledModules, tmp_path: Path
) -> None:
    fresh = compiled_beside(tmp_path / "Program.lean", MORE + DECIDED, compiled_native.environment)
    for module, axiom in ((fresh, AXIOM), (compiled_native(DECIDED, MORE), AXIOM_OF_A_FORK)):
        sealed = native_image.seal(module, compiled_native(ASKED, MORE), native=True)
        assert sealed.words == []
        assert (sealed["trusts"], sealed["axioms"]) == (["the compiler"], [axiom])


#: The kernel would run `reflected` for the proof that is left out here.
OLD = """set_option debug.skipKernelTC true
def reflected : Bool := decide (10 = 10)
theorem goal : 10 = 10 := of_decide_eq_true (Lean.ofReduceBool reflected true lcProof)
"""


def test_what_believed_the_compiler_before_is_found(seal_native: Seal) -> None:
    sealed = seal_native(OLD, ASKED)
    assert sealed.words[0] == ("native_decide", "Lean.ofReduceBool")


def test_what_believed_the_compiler_before_becomes_an_axiom_where_it_is_allowed(seal_native: Seal) -> None:
    sealed = seal_native(OLD, ASKED, native=True)
    assert sealed.words == []
    assert (sealed["trusts"], sealed["axioms"]) == (["the compiler"], ["reflected._native.of_reduce_bool.ax"])


@pytest.mark.parametrize(
    "text",
    [
        "theorem goal : 10 = 10 := (fun _ => rfl) Lean.ofReduceBool\n",
        "theorem goal : 10 = 10 := (fun _ => rfl) Lean.reduceBool\n",
        "theorem goal : 10 = 10 := (fun _ => rfl) Lean.reduceNat\n",
        "theorem goal : 10 = 10 := (fun _ => rfl) Lean.trustCompiler\n",
        "theorem help (b : Bool) (h : Lean.reduceBool b = true) : b = true := Lean.ofReduceBool b true h\n"
        "theorem goal : 10 = 10 := rfl\n",
    ],
)
def test_a_module_that_makes_a_kernel_run_code_is_not_given_to_it(seal_native: Seal, text: str) -> None:
    sealed = seal_native(text, ASKED, native=True)
    assert {word for word, _ in sealed.words} == {"native_decide"}
    assert sealed["replay"] is None


@pytest.mark.parametrize(
    "text",
    [
        "axiom goal._native.native_decide.ax_1_1 : 10 = 11\n",
        "axiom goal._native.native_decide.ax_1_1 : true = (decide (10 = 11))\n",
        "axiom goal.native.ax_1_1 : decide (10 = 11) = true\n",
    ],
)
def test_an_axiom_of_another_shape_is_not_believed(seal_native: Seal, text: str) -> None:
    name = text.split()[1]
    sealed = seal_native(f"{text}theorem goal : 10 = 10 := (fun _ => rfl) {name}\n", ASKED, native=True)
    assert sealed.words == [("axiom", name)]


RESTS_ON = f"theorem goal : 10 = 10 := (fun _ => rfl) {AXIOM}\n"
#: Axioms that are written by hand in the form of those that Lean makes, with what stands before them.
BY_HAND = {
    "false": ("", "false"),
    "a decision": ("", "decide (1 = 2)"),
    "a function": ("", "(fun b => b) false"),
    "arithmetic of the kernel": ("", "Nat.beq 1 2"),
    "its own definition": ("def no : Bool := false\n", "no"),
    "its own recursion": ("def far : Nat → Bool | 0 => false | .succ n => far n\n", "far 50"),
    "what no kernel evaluates": ("opaque secret : Bool\n", "secret"),
    "another axiom": ("axiom secret : Bool\n", "secret"),
    "what is run in its place": ("def yes := true\n@[implemented_by yes] def no := false\n", "no"),
    "a universe": ("", "(fun (_ : Type u) => false) PUnit.{u + 1}"),
}


@pytest.mark.parametrize(("before", "term"), BY_HAND.values(), ids=BY_HAND.keys())
@pytest.mark.parametrize("replay", [True, False])
def test_an_axiom_that_does_not_evaluate_to_true_is_an_axiom(
    seal_native: Seal, before: str, term: str, replay: bool
) -> None:
    declared, used = (".{u}", ".{0}") if "Type u" in term else ("", "")
    text = f"{before}axiom {AXIOM}{declared} : ({term}) = true\n{RESTS_ON.rstrip()}{used}\n"
    sealed = seal_native(text, ASKED, native=True, replay=replay)
    assert sealed.words == [("axiom", "secret" if before.startswith("axiom") else AXIOM)]
    says = "cannot evaluate" if before.startswith("opaque") else "evaluates to false"
    assert before.startswith("axiom") or says in sealed["findings"][0]["sentence"]
    assert sealed["accepted"] is False


def test_an_axiom_is_not_believed_for_a_theorem_that_has_the_name_of_the_farms_own(seal_native: Seal) -> None:
    mine = f"theorem farm.evaluated_0 : false = true := {AXIOM}\n"
    sealed = seal_native(f"axiom {AXIOM} : false = true\n{mine}{RESTS_ON}", ASKED, native=True)
    assert sealed.words == [("axiom", AXIOM)]


def test_of_two_axioms_the_one_that_is_false_is_found(seal_native: Seal) -> None:
    other = f"axiom other{AXIOM} : ((fun (_ : decide (1 = 1) = true) => false) {AXIOM}) = true\n"
    text = f"axiom {AXIOM} : decide (1 = 1) = true\n{other}{RESTS_ON.replace('(fun', '(fun _ => (fun')}"
    text = text.replace(f"=> rfl) {AXIOM}", f"=> rfl) {AXIOM}) other{AXIOM}")
    assert seal_native(text, ASKED, native=True).words == [("axiom", f"other{AXIOM}")]


def test_what_the_compiler_is_believed_in_the_older_form_is_evaluated_again(seal_native: Seal) -> None:
    false = "theorem goal : 10 = 11 := of_decide_eq_true (Lean.ofReduceBool reflected true lcProof)\n"
    text = f"set_option debug.skipKernelTC true\ndef reflected : Bool := decide (10 = 11)\n{false}"
    sealed = seal_native(text, "theorem goal : 10 = 11 := sorry\n", native=True)
    assert sealed.words == [("axiom", "reflected._native.of_reduce_bool.ax")]


#: Honest uses, each with what it may need.
DECIDED_TOO = {
    "recursion": "def far : Nat → Bool | 0 => true | .succ n => far n\n"
    "theorem goal : far 500 = true := by native_decide\n",
    "an own type": "inductive T where | leaf | node (a b : T)\n"
    "def T.deep : T → Bool | leaf => true | node a _ => a.deep\n"
    "theorem goal : (T.node .leaf .leaf).deep = true := by native_decide\n",
}


@pytest.mark.parametrize("text", DECIDED_TOO.values(), ids=DECIDED_TOO.keys())
def test_an_honest_decision_stays_proved(seal_native: Seal, text: str) -> None:
    sealed = seal_native(text, text.replace("by native_decide", "sorry"), native=True)
    assert (sealed.words, sealed["trusts"], sealed["axioms"]) == ([], ["the compiler"], [AXIOM_OF_A_FORK])


def _resting_on(term: str) -> str:
    """Return a program whose proof rests on an axiom that a term is true."""
    return f"axiom {AXIOM} : {term} = true\n{{}} := (fun _ => rfl) {AXIOM}\n"


CheckNative = Callable[..., Report]
ABOUT_TEN = "theorem goal : 10 = 10"


@pytest.fixture(scope="module")
def check_native(checker: Checker, native: LeanEnvironment) -> CheckNative:
    """Check a program whose header imports `Native`; `{}` in it stands for the statement."""

    def check(statement: str, program: str, limits: Limits | None = None) -> Report:
        asked = Check.of(
            program=MORE + program.replace("{}", statement),
            challenge=challenge_to(MORE, f"{statement} := sorry"),
            assurance=Assurance(native=True),
            **({"limits": limits} if limits else {}),
        )
        return checker.check(asked, native, way="forked")

    return check


#: What compiled code computes in a moment, and the kernel not at all.
_FAR = 2_000_000
HONEST_NATIVE = f"theorem goal : farther true {_FAR} = true", "{} := by native_decide\n"


@pytest.mark.parametrize(
    ("statement", "program", "reason"),
    [
        (*HONEST_NATIVE, Reason.OK),
        (
            "theorem goal : 10 = 10",
            _resting_on(f"farther false {_FAR}"),
            Reason.AXIOM,
        ),
    ],
)
def test_a_term_of_imported_constants_is_evaluated_by_compiled_code(
    check_native: CheckNative, statement: str, program: str, reason: Reason
) -> None:
    report = check_native(statement, program)
    assert (judge(report).reason, judge(report).detail) == (reason, judge(report).detail)


#: Terms to which the compiler gives another value than the core's definitions have: it represents `Char` and
#: `String` as Lean's library defines them.
_MISTAKEN = {
    "a character that Lean's library has not": "not (Nat.beq (Char.toNat (Char.ofNat 55296)) 55296)",
    "a character that is too large": "not (Nat.beq (Char.toNat (Char.ofNat 1099511627776)) 1099511627776)",
}


@pytest.mark.parametrize("term", _MISTAKEN.values(), ids=_MISTAKEN.keys())
def test_no_term_is_compiled_where_the_library_is_not_leans_own(
    checker: Checker, core: LeanEnvironment, term: str
) -> None:
    program = f"axiom {AXIOM} : ({term}) = true\ntheorem goal : ({term}) = true := {AXIOM}\n"
    challenge = challenge_to(core.header, f"theorem goal : ({term}) = true := sorry")
    asked = Check.of(program=core.header + program, challenge=challenge, assurance=Assurance(native=True))
    verdict = judge(checker.check(asked, core, way="forked"))
    assert (verdict.reason, "evaluates to false" in verdict.detail) == (Reason.AXIOM, True), verdict.detail


#: What a seal says of a proof, as a term of imported constants would print it.
_FORGED = json.dumps(
    json.dumps(
        {
            "accepted": True,
            "findings": [],
            "statement": "compared",
            "target": "goal",
            "axioms": [],
            "admitted": [],
            "trusts": [],
            "replay": {"accepted": True, "said": "", "constants": 1},
        }
    ),
    ensure_ascii=False,
)
#: Terms of imported constants that do what a program can do, each with what is to be said of its axiom.
_HOSTILE = {
    "prints a verdict and ends": (f"prints {_FORGED} 0", "ends the process"),
    "ends as if it had a value": ("exits 0 0", "ends the process"),
    "ends with a status": ("exits 1 0", "ends the process"),
    "calls what is no function": ("calls_what_is_no_function 5", "ends the process"),
    "writes a file": ('writes "/tmp/farm-evaluated" 0', "evaluates to false"),
    "writes to what is open": ('writes "/proc/self/fd/3" 0', "evaluates to false"),
}


@pytest.mark.parametrize(("term", "says"), _HOSTILE.values(), ids=_HOSTILE.keys())
def test_a_term_of_imported_constants_reaches_no_verdict(
    check_native: CheckNative, term: str, says: str
) -> None:
    report = check_native(ABOUT_TEN, _resting_on(term))
    assert (judge(report).reason, says in judge(report).detail) == (Reason.AXIOM, True), judge(report).detail
    assert not Path("/tmp/farm-evaluated").exists()


@pytest.mark.parametrize(
    ("term", "limits", "reasons"),
    [
        ("sleeps 0", Limits(wall_seconds=2.0), {Reason.KERNEL_TIME}),
        (f"farther true {10**18}", Limits(cpu_seconds=1.0), {Reason.KERNEL_TIME}),
        (
            f"grows .nil {10**18}",
            Limits(cpu_seconds=1.0, memory_mib=512),
            {Reason.KERNEL_TIME, Reason.KERNEL_LIMIT},
        ),
    ],
)
def test_a_term_that_never_ends_is_stopped_by_the_lines_limits(
    check_native: CheckNative, term: str, limits: Limits, reasons: set[Reason]
) -> None:
    report = check_native(ABOUT_TEN, _resting_on(term), limits)
    assert judge(report).reason in reasons, judge(report)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_an_evaluation_that_is_killed_from_outside_says_nothing_of_its_term(
    check_native: CheckNative, number: int
) -> None:
    assert judge(check_native(*HONEST_NATIVE)).reason is Reason.OK  # its image is there
    before = {each.pid for each in family(os.getpid())}
    over = threading.Event()

    def kill() -> None:
        """Kill each process that a seal has forked: neither itself nor its parent was there before."""
        while not over.is_set():
            for each in family(os.getpid()):
                if before.isdisjoint({each.pid, each.parent}):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(each.pid, number)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        report = check_native(ABOUT_TEN, _resting_on("sleeps 0"), Limits(wall_seconds=30.0 * PATIENCE))
    finally:
        over.set()
        killer.join()
    assert judge(report).reason is Reason.BOX_FAILED, judge(report)


def test_what_is_unsafe_among_the_imports_is_run_by_nothing(check_native: CheckNative) -> None:
    text = f"set_option debug.skipKernelTC true\n{_resting_on('hazard')}"
    assert judge(check_native(ABOUT_TEN, text)).outcome is Outcome.REJECTED


def test_what_imports_run_in_place_of_a_definition_is_believed(check_native: CheckNative) -> None:
    report = check_native("theorem goal : replaced 1 = true", "{} := by native_decide\n")
    assert (judge(report).reason, report.audit and report.audit.trusts) == (Reason.OK, ("the compiler",))


# Sorry.

ANSWER = "noncomputable def answer : Nat := sorry\n"
ABOUT = "theorem goal : answer = answer := {}\n"


def test_an_admitted_helper_is_found_though_nothing_rests_on_it(seal: Seal) -> None:
    sealed = seal("theorem help : 1 = 2 := sorry\n" + PROVED, OPEN)
    assert sealed.words == [("has_sorry", "help")]


def test_a_sorry_of_the_statement_is_the_statements(seal: Seal) -> None:
    sealed = seal(ANSWER + ABOUT.format("rfl"), ANSWER + ABOUT.format("sorry"))
    assert (sealed.words, sealed["statement_has_sorry"]) == ([], True)
    assert sealed["axioms"] == ["sorryAx"]


def test_a_statement_that_is_itself_a_sorry_can_be_proved(seal: Seal) -> None:
    challenge = "theorem goal (h : (sorry : Prop)) : True := sorry\n"
    sealed = seal(challenge.replace("True := sorry", "True := True.intro"), challenge)
    assert (sealed.words, sealed["statement_has_sorry"]) == ([], True)


def test_a_sorry_of_the_statement_under_a_binder_is_no_excuse(seal: Seal) -> None:
    """The statement admits some `p` for a variable `p`; in its proof, `p` is what is to be proved."""
    challenge = "theorem goal (h : (p : Prop) → (sorryAx p true = sorryAx p true) → False) : 1 = 2 := {}\n"
    proof = "(fun (p : Prop) => sorryAx p true) (1 = 2)"
    assert seal(challenge.format(proof), challenge.format("sorry")).words == [("has_sorry", "goal")]


def test_another_sorry_than_the_statements_is_found(seal: Seal) -> None:
    more = "noncomputable def other : Nat := sorry\n"
    sealed = seal(ANSWER + more + ABOUT.format("rfl"), ANSWER + ABOUT.format("sorry"))
    assert sealed.words == [("has_sorry", "other")]


def test_a_sorry_of_the_statement_is_not_one_of_something_else_that_is_called_the_same(seal: Seal) -> None:
    """The statement admits a helper about `P`, which is not what it was there."""
    challenge = "def P : Prop := True\ntheorem help : P := sorry\n" + PROVED
    asked = challenge.replace(PROVED, OPEN)
    assert seal(challenge, asked, target="goal").words == []
    assert seal(challenge.replace("True", "False"), asked, target="goal").words == [("has_sorry", "help")]


#: A part that is false, and the part that is asked for, which follows from it.
PARTS = "theorem part : 1 = 2 := {}\ntheorem goal : 1 = 2 := {}\n"
ASKED_PARTS = PARTS.format("sorry", "sorry")
LEMMA = "theorem lemma_ (p : Prop) : p := sorry\n"
SOLUTION = "abbrev solution : Nat := sorry\n"
#: What a proof rests on: the challenge, the submission, and the names that are told.
OPEN_BELOW = {
    "an earlier part": (ASKED_PARTS, PARTS.format("sorry", "part"), ["part"]),
    "by way of a helper": (
        ASKED_PARTS,
        PARTS.format("sorry", "help").replace("theorem goal", "theorem help : 1 = 2 := part\ntheorem goal"),
        ["part"],
    ),
    "nothing of it": (
        ASKED_PARTS.replace("goal : 1 = 2", "goal : 1 = 1"),
        PARTS.format("sorry", "rfl").replace("goal : 1 = 2", "goal : 1 = 1"),
        [],
    ),
    "two lemmas, one by the other": (
        LEMMA + "theorem part : 1 = 2 := lemma_ _\ntheorem goal : 1 = 2 := sorry\n",
        LEMMA + "theorem part : 1 = 2 := lemma_ _\ntheorem goal : 1 = 2 := part\n",
        ["lemma_"],
    ),
    "what the statement speaks of": (
        SOLUTION + "theorem goal : solution = solution := sorry\n",
        SOLUTION + "theorem goal : solution = solution := Eq.refl solution\n",
        [],
    ),
    "a definition that it does not speak of": (
        SOLUTION + "theorem goal : 1 = 1 := sorry\n",
        SOLUTION + "theorem goal : 1 = 1 := (fun _ => rfl) solution\n",
        ["solution"],
    ),
    "a part about what it speaks of": (
        SOLUTION + "theorem part : solution = 2 := sorry\ntheorem goal : 2 = solution := sorry\n",
        SOLUTION + "theorem part : solution = 2 := sorry\ntheorem goal : 2 = solution := part.symm\n",
        ["part"],
    ),
}


@pytest.mark.parametrize(("challenge", "submission", "names"), OPEN_BELOW.values(), ids=OPEN_BELOW.keys())
def test_what_a_proof_rests_on_that_the_dataset_admits_is_named(
    seal: Seal, challenge: str, submission: str, names: list[str]
) -> None:
    noncomputable = [text.replace("abbrev", "noncomputable abbrev") for text in (submission, challenge)]
    sealed = seal(*noncomputable, target="goal")
    assert (sealed.words, sealed["rests_on_sorry_of"]) == ([], names)
    assert sealed["trusts"] == (["a sorry of the dataset"] if names else [])


def test_an_admitted_axiom_is_told_with_what_rests_on_it(seal: Seal) -> None:
    sealed = seal(OPEN, OPEN, target="goal", axioms=["sorryAx"])
    assert (sealed.words, sealed["rests_on_sorry_of"]) == ([], ["goal"])


#: With all parts required: the submission, and what is found.
ALL_PARTS = {
    "all are proved": ("theorem part : 1 = 1 := rfl\ntheorem goal : 2 = 2 := rfl\n", []),
    "one is left open": (
        "theorem part : 1 = 1 := sorry\ntheorem goal : 2 = 2 := rfl\n",
        [("has_sorry", "part")],
    ),
    "one is not there": ("theorem goal : 2 = 2 := rfl\n", [("target_missing", "part")]),
    "one states something else": (
        "theorem part : 3 = 3 := rfl\ntheorem goal : 2 = 2 := rfl\n",
        [("statement_mismatch", "part")],
    ),
    "one is no theorem": (
        "def part : 1 = 1 := rfl\ntheorem goal : 2 = 2 := rfl\n",
        [("not_a_theorem", "part")],
    ),
    "one rests on an axiom": (
        "axiom cheat : 1 = 1\ntheorem part : 1 = 1 := cheat\ntheorem goal : 2 = 2 := rfl\n",
        [("axiom", "cheat")],
    ),
    "the last rests on one that is proved": (
        "theorem help (n : Nat) : n = n := rfl\ntheorem part : 1 = 1 := help 1\n"
        "theorem goal : 2 = 2 := (fun _ => rfl) part\n",
        [],
    ),
}


@pytest.mark.parametrize(("submission", "expected"), ALL_PARTS.values(), ids=ALL_PARTS.keys())
def test_all_parts_of_a_statement_can_be_required(
    seal: Seal, submission: str, expected: list[tuple[str, str]]
) -> None:
    asked = "theorem part : 1 = 1 := sorry\ntheorem goal : 2 = 2 := sorry\n"
    sealed = seal(submission, asked, parts_from=[1, 0])
    assert sealed.words == expected
    assert sealed["rests_on_sorry_of"] == (["part"] if ("has_sorry", "part") in expected else [])


def test_what_is_left_open_above_the_statement_is_no_part_of_it(seal: Seal) -> None:
    asked = "theorem part : 1 = 1 := sorry\ntheorem goal : 1 = 1 := sorry\n"
    proved = asked.replace("goal : 1 = 1 := sorry", "goal : 1 = 1 := part")
    line = HEADER.count("\n") + 1
    assert seal(proved, asked, parts_from=[line + 1, 0]).words == []
    assert seal(proved, asked, parts_from=[line, 0]).words == [("has_sorry", "part")]


def test_a_statement_may_speak_of_a_part_that_is_proved(seal: Seal) -> None:
    asked = "theorem part : 1 = 1 := sorry\ntheorem goal : part = part := sorry\n"
    proved = "theorem part : 1 = 1 := rfl\ntheorem goal : part = part := rfl\n"
    assert seal(proved, asked, parts_from=[1, 0]).words == []


def test_a_sorry_of_an_import_is_the_imports(seal_native: Seal) -> None:
    about = "theorem goal : hidden = hidden := {}\n"
    sealed = seal_native(about.format("rfl"), about.format("sorry"))
    assert (sealed.words, sealed["statement_has_sorry"]) == ([], False)


# Imports and axioms.


def test_an_imported_axiom_is_found(seal_native: Seal) -> None:
    sealed = seal_native("theorem goal : 10 = 10 := cheat.elim\n", ASKED)
    assert sealed.words == [("axiom", "cheat")]
    assert seal_native("theorem goal : 10 = 10 := cheat.elim\n", ASKED, axioms=["cheat"]).words == []


def test_other_imports_than_the_challenges_are_found(
    native_image: Image, compiled_native: CompiledModules
) -> None:
    sealed = native_image.seal(compiled_native(PROVED, MORE), compiled_native(OPEN))
    assert sealed.words == [("imports_differ", None)]


def test_a_name_of_an_import_cannot_be_declared_again(native_image: Image, compiled: CompiledModules) -> None:
    """The module was compiled without the import that has the name."""
    text = "axiom cheat : 1 = 2\ntheorem goal : 10 = 10 := (fun _ => rfl) cheat\n"
    sealed = native_image.seal(compiled(text), compiled(ASKED), axioms=["cheat"])
    assert ("redeclared", "cheat") in sealed.words


# Without a statement.


def test_a_program_without_a_statement_is_sealed_without_comparison(seal: Seal) -> None:
    sealed = seal(
        "def two : Nat := 2\ntheorem a : two = 2 := rfl\ntheorem b : two = two := rfl\n", imports=["Core"]
    )
    assert sealed.words == []
    assert (sealed["statement"], sealed["target"], sealed["replay"]["constants"]) == ("unchecked", None, 3)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", [("no_theorem", None)]),
        ("def two : Nat := 2\n", [("no_theorem", None)]),
        ("theorem a : 1 = 2 := sorry\n", [("has_sorry", "a")]),
        ("def b : 1 = 2 := sorry\ntheorem a : 1 = 1 := rfl\n", [("has_sorry", "b")]),
        ("axiom b : 1 = 2\ntheorem a : 1 = 1 := rfl\n", [("axiom", "b")]),
        ("axiom propext' : 1 = 2\ntheorem a : 1 = 1 := rfl\n", [("axiom", "propext'")]),
        ("unsafe def a : 1 = 2 := lcProof\n", [("no_theorem", None)]),
        ("set_option debug.skipKernelTC true\ntheorem a : 1 = 2 := by decide +kernel\n", [("kernel", None)]),
    ],
)
def test_what_is_wrong_with_a_program_without_a_statement_is_found(
    seal: Seal, text: str, expected: list[tuple[str, str | None]]
) -> None:
    assert seal(text).words == expected


def test_a_program_without_a_statement_has_the_imports_of_its_header(seal: Seal) -> None:
    assert seal(PROVED, imports=["Core", "More"]).words == [("imports_differ", None)]


# What is written.

RICH = """universe u v
inductive Tree (α : Type u) : Nat → Type u where
  | leaf : Tree α 0
  | node (f : Nat → Tree α 1) (a : α) : Tree α 1
structure Point (α : Type u) where
  mk ::
  x : α
  same : x = x
mutual
inductive Even : Nat → Prop where | zero : Even Nat.zero | succ : Odd n → Even (Nat.succ n)
inductive Odd : Nat → Prop where | succ : Even n → Odd (Nat.succ n)
end
opaque hidden : Nat
unsafe def endless (n : Nat) : Nat := endless n
partial def loop (n : Nat) : Nat := loop n
def double : Nat → Nat | .zero => .zero | .succ n => .succ (.succ (double n))
def big : Nat := 340282366920938463463374607431768211456
def text : String := "tëxt"
def local_ (n : Nat) : Nat := let m := n + 1; have k : Nat := 2; m + k
theorem any {α : Sort u} {β : Sort (max u v)} (f : α → β) (p : Point Nat) : p.1 = p.x := rfl
private theorem lemma : 2 + 3 = 5 := rfl
theorem goal (n : Nat) : n = n := (fun _ => rfl) lemma
"""


def test_the_sealed_module_holds_the_same_constants_and_nothing_else(
    seal: Seal, compiled: CompiledModules, tmp_path: Path
) -> None:
    sealed = seal(RICH, OPEN, into=str(tmp_path / "Sealed.olean"))
    assert sealed.words == []
    with opened_module(compiled(RICH)) as ours, opened_module(tmp_path / "Sealed.olean") as made:
        assert made.imports == ours.imports
        assert dict(made.extensions()) == {}
        left_out = [dotted(name) for name in ours.names.keys() - made.names.keys()]
        assert sorted(left_out) == ["double._unsafe_rec", "endless", "loop._unsafe_rec"]
        one, other = Reading(ours.olean, terms := Terms()), Reading(made.olean, terms)
        for name in made.names:
            assert _content(ours, name, one) == _content(made, name, other)
        assert sealed["replay"]["constants"] == len(made.names)


def _content(module: Module, name: Name, reading: Reading) -> tuple[object, ...]:
    constant = module.constant(name)
    assert constant is not None
    values = [reading.expression(place) for place in constant.expressions()]
    return constant.kind, constant.parameters, constant.relatives(), constant.numbers, constant.safety, values


def test_the_sealed_module_can_be_given_to_another_kernel(
    seal: Seal, core: LeanEnvironment, tmp_path: Path
) -> None:
    file = tmp_path / "Sealed.olean"
    sealed = seal(RICH, OPEN, into=str(file))
    assert hashlib.sha256(file.read_bytes()).hexdigest() == sealed["sealed_sha256"]
    said = subprocess.run(
        command(sys.executable, Path(core.lean[0]), core.lean_path, file),
        env={},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert json.loads(said.stdout) == {"accepted": True, "constants": sealed["replay"]["constants"]}


def test_the_sealed_module_is_the_same_from_every_image(
    seal: Seal, core: LeanEnvironment, compiled: CompiledModules
) -> None:
    module, challenge = compiled(RICH), compiled(OPEN)
    other = Image(core.lean[0], core.lean_path, compiled(""))
    assert other.seal(module, challenge)["sealed_sha256"] == seal(RICH, OPEN)["sealed_sha256"]
    other.close()


def test_what_a_seal_did_is_gone_with_its_process(seal: Seal) -> None:
    false = "set_option debug.skipKernelTC true\ntheorem goal : 1 = 2 := by decide +kernel\n"
    first = seal(PROVED, OPEN)
    assert seal(false, "theorem goal : 1 = 2 := sorry\n").words == [("kernel", None)]
    assert seal(PROVED, OPEN).facts == {**(first.facts or {}), "cpu_ms": pytest.approx(0, abs=60_000)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (RICH, []),
        (OPEN, [("has_sorry", "goal")]),
        (
            "set_option debug.skipKernelTC true\ntheorem goal (n : Nat) : n = n := lcProof\n",
            [("kernel", None)],
        ),
    ],
)
def test_a_seal_needs_no_more_of_the_system_than_memory_and_an_answer(
    seal: Seal, text: str, expected: list[tuple[str, str | None]], tmp_path: Path
) -> None:
    sealed = seal(text, OPEN, axioms=["lcProof"], strict=True, into=str(tmp_path / "Sealed.olean"))
    assert sealed.words == expected


# Modules that Lean would never write.

HELPED = "theorem help : 1 = 1 → 1 = 1 := fun h => h\ntheorem goal (n : Nat) : n = n := (fun _ => rfl) help\n"
Change = Callable[[Module], Iterator[tuple[int, int]]]


@pytest.fixture
def changed(compiled: CompiledModules, tmp_path: Path) -> Callable[[str, Change], Path]:
    """Compile a text and change words of the module."""

    def changed(text: str, change: Change) -> Path:
        data = bytearray(compiled(text).read_bytes())
        with opened_module(bytes(data)) as module:
            for place, word in list(change(module)):
                data[place << 3 : (place << 3) + 8] = word.to_bytes(8, "little")
        (tmp_path / "Changed.olean").write_bytes(data)
        return tmp_path / "Changed.olean"

    return changed


def _value(module: Module, name: str) -> int:
    return module.olean.object(module.names[parsed(name)], 0)


@pytest.mark.parametrize("shift", [0, 40, 44], ids=["hash", "a flag", "loose variables"])
def test_a_forged_word_of_a_term_makes_no_difference(
    shift: int, seal: Seal, image: Image, compiled: CompiledModules, changed: Callable[[str, Change], Path]
) -> None:
    def change(module: Module) -> Iterator[tuple[int, int]]:
        place = module.olean.object(_value(module, "help"), 1) + 4  # behind name, type and body of a function
        yield place, module.olean.words[place] ^ 1 << shift

    sealed = image.seal(changed(HELPED, change), compiled(OPEN))
    honest = seal(HELPED, OPEN)
    assert sealed.words == []
    assert sealed["sealed_sha256"] == honest["sealed_sha256"]
    assert sealed["module_sha256"] != honest["module_sha256"]


def test_a_forged_hash_of_a_name_makes_no_difference(
    seal: Seal, image: Image, compiled: CompiledModules, changed: Callable[[str, Change], Path]
) -> None:
    def change(module: Module) -> Iterator[tuple[int, int]]:
        place = module.olean.object(module.olean.object(_value(module, "help"), 0), 0) + 3
        yield place, module.olean.words[place] ^ 1

    sealed = image.seal(changed(HELPED, change), compiled(OPEN))
    assert (sealed.words, sealed["sealed_sha256"]) == ([], seal(HELPED, OPEN)["sealed_sha256"])


def test_a_forged_flag_that_breaks_a_kernel_does_not_reach_it(
    seal: Seal, image: Image, compiled: CompiledModules, changed: Callable[[str, Change], Path]
) -> None:
    """A kernel that believed that there is no parameter in `Sort v` would take all universes for one."""
    text = "def c.{v} : Sort (v + 1) := Sort v\n" + PROVED

    def change(module: Module) -> Iterator[tuple[int, int]]:
        sort = module.olean.object(_value(module, "c"), 1)
        yield sort + 2, module.olean.words[sort + 2] & ~(1 << 43)

    sealed = image.seal(changed(text, change), compiled(OPEN))
    assert (sealed.words, sealed["sealed_sha256"]) == ([], seal(text, OPEN)["sealed_sha256"])


#: Kinds of objects that have code or a life of their own.
ALIVE = {"closure": 245, "thunk": 251, "task": 252, "reference": 253, "external": 254, "reserved": 255}


@pytest.mark.parametrize("tag", ALIVE.values(), ids=ALIVE)
@pytest.mark.parametrize("part", ["term", "name", "string", "list", "constant"])
def test_an_object_that_is_no_data_is_refused(
    tag: int, part: str, image: Image, compiled: CompiledModules, changed: Callable[[str, Change], Path]
) -> None:
    def change(module: Module) -> Iterator[tuple[int, int]]:
        olean, value = module.olean, _value(module, "help")
        name = olean.object(olean.object(value, 0), 0)
        places = {
            "term": olean.object(value, 1),
            "name": name,
            "string": olean.object(name, 1),
            "list": olean.object(value, 2),
            "constant": value,
        }
        yield places[part], olean.words[places[part]] & ~(0xFF << 56) | tag << 56

    sealed = image.seal(changed(HELPED, change), compiled(OPEN))
    assert (sealed["accepted"], sealed.words) == (False, [("malformed_olean", None)])


@pytest.mark.parametrize(
    ("name", "field"),
    [("Two.one", 4), ("Two.rec", 5), ("Two", 5)],
    ids=["constructor", "recursor", "inductive type"],
)
def test_a_wrong_number_is_refused(
    name: str, field: int, image: Image, compiled: CompiledModules, changed: Callable[[str, Change], Path]
) -> None:
    def change(module: Module) -> Iterator[tuple[int, int]]:
        place = _value(module, name) + 1 + field
        yield place, module.olean.words[place] + 2  # one more

    text = "inductive Two : Type where | one : Nat → Two | two : Two\n" + PROVED
    assert image.seal(changed(text, change), compiled(OPEN)).words == [("kernel", None)]


def test_two_constants_of_one_name_are_found(
    image: Image, compiled: CompiledModules, changed: Callable[[str, Change], Path]
) -> None:
    def change(module: Module) -> Iterator[tuple[int, int]]:
        olean = module.olean
        for place in (olean.object(_value(module, "b"), 0) + 1, *_named(module, "b")):
            yield place, olean.words[olean.object(_value(module, "a"), 0) + 1]

    text = "theorem a : 1 = 1 := rfl\ntheorem b : 1 = 1 := rfl\n" + PROVED
    assert image.seal(changed(text, change), compiled(OPEN)).words == [("redeclared", "a")]


def test_a_definition_of_the_statement_with_another_list_of_its_block_is_another(
    image: Image, compiled: CompiledModules, changed: Callable[[str, Change], Path]
) -> None:
    def change(module: Module) -> Iterator[tuple[int, int]]:
        yield _value(module, "Good") + 4, 1  # the empty list

    common = "def Good : Prop := 1 = 1\n"
    challenge = compiled(common + "theorem goal : Good := sorry\n")
    text = common + "theorem goal : Good := rfl\n"
    assert image.seal(compiled(text), challenge).words == []
    assert image.seal(changed(text, change), challenge).words == [("prerequisite_differs", "Good")]


def _named(module: Module, name: str) -> list[int]:
    """Return the word of the array of names in which a name stands."""
    olean = module.olean
    places = olean.array(olean.object(olean.root, 1), "names")
    return [place for place in places if olean.name(olean.ref(olean.words[place], olean.root)) == (name,)]


def _written(tmp_path: Path, build: Callable[[Writer], int], header: bytes) -> Path:
    """Write a module by hand with one theorem, whose type is what is built."""
    writer = Writer()
    writer.theorem("goal", build(writer), writer.const("True.intro"))
    data = writer.module([writer.imported("Core")])
    (tmp_path / "Made.olean").write_bytes(header + data[80:])
    return tmp_path / "Made.olean"


def test_a_term_too_deep_for_the_kernel_is_a_limit_of_the_kernel(
    image: Image, compiled: CompiledModules, tmp_path: Path
) -> None:
    def deep(writer: Writer) -> int:
        found, negation = writer.const("True"), writer.const("Not")
        for _ in range(100_000):
            found = writer.app(negation, found)
        return found

    made = _written(tmp_path, deep, compiled("").read_bytes()[:80])
    sealed = image.seal(made)
    assert (sealed.words, sealed.status) == ([("kernel_limit", None)], 0)


@pytest.mark.parametrize(
    "build",
    [
        lambda writer: writer.make(0, box((1 << 20) - 1), scalars=bytes(8)),
        lambda writer: writer.make(
            11, writer.name("And"), writer.big(1 << 70), writer.prop(), scalars=bytes(8)
        ),
        lambda writer: writer.bound(7, "x", writer.prop(), writer.prop(), info=4),
        lambda writer: writer.literal(writer.big(5, 1)),
        lambda writer: writer.literal(writer.string(b"\xff"), 1),
    ],
    ids=["a variable that is bound too far out", "a large field", "a binder", "a number", "a text"],
)
def test_a_term_that_lean_cannot_make_is_refused(
    build: Callable[[Writer], int], image: Image, compiled: CompiledModules, tmp_path: Path
) -> None:
    made = _written(tmp_path, build, compiled("").read_bytes()[:80])
    sealed = image.seal(made)
    assert (sealed["accepted"], sealed.words) == (False, [("malformed_olean", None)])


@pytest.mark.parametrize("tag", [1, 2], ids=["free variable", "hole"])
def test_a_variable_that_stands_for_nothing_is_found(
    tag: int, image: Image, compiled: CompiledModules, tmp_path: Path
) -> None:
    def hole(writer: Writer) -> int:
        return writer.make(tag, writer.name("x"), scalars=bytes(8))

    sealed = image.seal(_written(tmp_path, hole, compiled("").read_bytes()[:80]))
    assert sealed.words == [("open_term", "goal")]
