"""The seal of what Lean itself compiled, in forks of an image that has imported the core library."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sealing import Image, Sealed
from statements import HONEST, NO_PROOFS, OPEN, PROVED

from workers.bench.bare import launched
from workers.environments import LeanEnvironment

HEADER = "prelude\nimport Core\n"
#: What the core library does not have: the tactic, and what believed the compiler before it left axioms.
NATIVE = """prelude
import Core
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
"""
Compile = Callable[..., Path]
Seal = Callable[..., Sealed]


@pytest.fixture(scope="module")
def native(core: LeanEnvironment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a module `Native`, which the tests import as a header that has more than the core."""
    folder = tmp_path_factory.mktemp("native")
    _compiled(core, folder / "Native.lean", NATIVE, core.lean_path)
    return folder


@pytest.fixture(scope="module")
def compile_(core: LeanEnvironment, native: Path, tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """Compile a text to a module, always called `Program`: private names contain the module's."""

    def compile_(text: str, header: str = HEADER) -> Path:
        source = tmp_path_factory.mktemp("program") / "Program.lean"
        return _compiled(core, source, header + text, (*core.lean_path, str(native)))

    return compile_


def _compiled(core: LeanEnvironment, source: Path, text: str, path: tuple[str, ...]) -> Path:
    source.write_text(text)
    said = subprocess.run(
        launched([*core.lean, "-j1", "-o", str(source.with_suffix(".olean")), str(source)]),
        cwd=source.parent,
        env={"PATH": os.defpath, "LEAN_PATH": ":".join(path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert said.returncode == 0, said.stdout
    return source.with_suffix(".olean")


@pytest.fixture(scope="module")
def image(core: LeanEnvironment, compile_: Compile) -> Iterator[Image]:
    """An image of the core library."""
    found = Image(core.lean[0], core.lean_path, compile_(""))
    yield found
    found.close()


@pytest.fixture(scope="module")
def native_image(core: LeanEnvironment, compile_: Compile, native: Path) -> Iterator[Image]:
    """An image that has imported `Native`."""
    found = Image(core.lean[0], (*core.lean_path, str(native)), compile_("", MORE))
    yield found
    found.close()


@pytest.fixture(scope="module")
def seal(image: Image, compile_: Compile) -> Seal:
    """Compile a submission and its challenge and seal the first."""

    def seal(submission: str, challenge: str | None = None, **order: object) -> Sealed:
        return image.seal(compile_(submission), challenge and compile_(challenge), **order)

    return seal


MORE = "prelude\nimport Native\n"


@pytest.fixture(scope="module")
def seal_native(native_image: Image, compile_: Compile) -> Seal:
    """Compile and seal as `seal` does, on top of `Native`."""

    def seal(submission: str, challenge: str | None = None, **order: object) -> Sealed:
        stated = challenge and compile_(challenge, MORE)
        return native_image.seal(compile_(submission, MORE), stated, **order)

    return seal


@pytest.mark.parametrize(("challenge", "submission"), HONEST)
def test_an_honest_proof_is_accepted(seal: Seal, challenge: str, submission: str) -> None:
    sealed = seal(submission, challenge)
    assert sealed.words == []
    assert sealed["replay"]["accepted"] is True
    assert (sealed["accepted"], sealed["statement"], sealed["trusts"]) == (True, "compared", [])


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
AXIOM = "goal._native.native_decide.ax_1_1"


def test_native_decide_is_found(seal_native: Seal) -> None:
    sealed = seal_native(DECIDED, ASKED)
    assert sealed.words == [("native_decide", AXIOM)]


def test_native_decide_can_be_allowed_and_is_named(seal_native: Seal) -> None:
    sealed = seal_native(DECIDED, ASKED, native=True)
    assert sealed.words == []
    assert (sealed["trusts"], sealed["axioms"]) == (["the compiler"], [AXIOM])


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


def test_a_sorry_of_an_import_is_the_imports(seal_native: Seal) -> None:
    about = "theorem goal : hidden = hidden := {}\n"
    sealed = seal_native(about.format("rfl"), about.format("sorry"))
    assert (sealed.words, sealed["statement_has_sorry"]) == ([], False)


# Imports and axioms.


def test_an_imported_axiom_is_found(seal_native: Seal) -> None:
    sealed = seal_native("theorem goal : 10 = 10 := cheat.elim\n", ASKED)
    assert sealed.words == [("axiom", "cheat")]
    assert seal_native("theorem goal : 10 = 10 := cheat.elim\n", ASKED, axioms=["cheat"]).words == []


def test_other_imports_than_the_challenges_are_found(native_image: Image, compile_: Compile) -> None:
    sealed = native_image.seal(compile_(PROVED, MORE), compile_(OPEN))
    assert sealed.words == [("imports_differ", None)]


def test_a_name_of_an_import_cannot_be_declared_again(native_image: Image, compile_: Compile) -> None:
    """The module was compiled without the import that has the name."""
    text = "axiom cheat : 1 = 2\ntheorem goal : 10 = 10 := (fun _ => rfl) cheat\n"
    sealed = native_image.seal(compile_(text), compile_(ASKED), axioms=["cheat"])
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
