"""The audit of what Lean itself compiled: honest proofs pass, and everything else is found by its word."""

from __future__ import annotations

import contextlib
import itertools
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from farm_workers.audit.audit import Rules, audit, left_open
from farm_workers.audit.declarations import ConstantKind, Safety, opened_module
from farm_workers.audit.findings import Findings
from farm_workers.audit.imports import Index, index
from farm_workers.audit.library import read
from farm_workers.audit.names import dotted, parsed
from farm_workers.audit.olean import MalformedOlean
from farm_workers.environments.lean_environment import LeanEnvironment

from tests.compiled_modules import HEADER, CompiledModules, compiled_beside
from tests.dependencies import packed, table_of
from tests.statements import HONEST, NO_PROOFS, OPEN, PROVED

WORKERS = Path(__file__).parents[2] / "workers"
ON_PATH = f"import sys; sys.path.insert(0, {str(WORKERS)!r})"
Judge = Callable[..., Findings]


@pytest.fixture(scope="module")
def library(core: LeanEnvironment) -> Index:
    return index(path for folder in core.lean_path for path in Path(folder).glob("*.olean"))


@pytest.fixture(scope="module")
def judge(core: LeanEnvironment, compiled: CompiledModules, library: Index) -> Judge:
    """Compile two texts and audit the first by the second."""
    dependencies = table_of(core.lean_path).below

    def judge(submission: str | Path, challenge: str, target: str | None = "goal") -> Findings:
        module = compiled(submission) if isinstance(submission, str) else submission
        with opened_module(module) as ours, opened_module(compiled(challenge)) as theirs:
            rules = Rules(
                is_imported=library.names.__contains__,
                is_imported_axiom=library.axioms.__contains__,
                dependencies=dependencies,
            )
            return audit(ours, theirs, None if target is None else parsed(target), rules)

    return judge


def found(findings: Findings) -> list[tuple[str, str | None]]:
    return [(each.word.value, each.name and dotted(each.name)) for each in findings.findings]


@pytest.mark.parametrize(("challenge", "submission"), HONEST)
def test_an_honest_proof_is_accepted(judge: Judge, challenge: str, submission: str) -> None:
    findings = judge(submission, challenge, None)
    assert found(findings) == []
    assert findings.not_checked == ()


@pytest.mark.parametrize(("challenge", "submission", "expected"), NO_PROOFS)
def test_what_is_no_proof_of_the_statement_is_found(
    judge: Judge, challenge: str, submission: str, expected: list[tuple[str, str]]
) -> None:
    assert found(judge(submission, challenge)) == expected


def test_other_imports_are_found(judge: Judge, core: LeanEnvironment, tmp_path: Path) -> None:
    compiled_beside(tmp_path / "Other.lean", f"{HEADER}theorem other : True := True.intro\n", core)
    importing = f"{HEADER}import Other\n{PROVED}"
    findings = judge(compiled_beside(tmp_path / "Program.lean", importing, core, tmp_path), OPEN)
    assert found(findings) == [("imports_differ", None)]
    assert findings.findings[0].sentence == (
        "The module imports Core, Other, the challenge Core; modifiers and order count."
    )


def test_a_kernel_primitive_declared_again_is_found(
    judge: Judge, core: LeanEnvironment, tmp_path: Path
) -> None:
    text = "axiom Nat : Type\naxiom True : Prop\naxiom True.intro : True\ntheorem goal : True := True.intro\n"
    findings = judge(compiled_beside(tmp_path / "Program.lean", f"prelude\n{text}", core), OPEN)
    words = [word for word, _ in found(findings)]
    assert {"imports_differ", "kernel_primitive", "redeclared", "axiom", "statement_mismatch"} <= set(words)


def test_another_toolchain_is_found(compiled: CompiledModules) -> None:
    ours, theirs = compiled(PROVED).read_bytes(), compiled(OPEN).read_bytes()
    theirs = theirs[:7] + b"4.34.0" + theirs[13:]
    with opened_module(ours) as submission, opened_module(theirs) as challenge:
        assert found(audit(submission, challenge, ("goal",))) == [("toolchain_differs", None)]


def test_a_file_of_the_module_system_is_not_supported(core: LeanEnvironment, tmp_path: Path) -> None:
    text = "module\nprelude\npublic theorem goal : ∀ (p : Prop), p → p := fun _ h => h\n"
    path = compiled_beside(tmp_path / "Program.lean", text, core)
    parts = [path, *path.parent.glob("*.olean.*")]
    assert len(parts) == 3
    for part in parts:
        with opened_module(part) as module:
            assert found(audit(module, None, ("goal",))) == [("unsupported", None)]


def test_without_a_challenge_the_report_says_what_was_not_checked(compiled: CompiledModules) -> None:
    with opened_module(compiled(OPEN)) as module:
        findings = audit(module, None, ("goal",))
        assert found(findings) == [("has_sorry", "goal")]
        assert len(findings.not_checked) == 4
        assert found(audit(module, None, None)) == [("bad_challenge", None)]


def test_a_challenge_without_the_target_is_a_bad_one(judge: Judge) -> None:
    assert found(judge(PROVED, "theorem other : True := sorry\n")) == [("bad_challenge", "goal")]


def test_extension_entries_are_listed_and_what_they_change(judge: Judge) -> None:
    text = "instance : OfNat Nat 7 := ⟨8⟩\n@[reducible] def two : Nat := 2\nattribute [simp] two\n"
    findings = judge(text + PROVED, OPEN)
    assert found(findings) == []
    changes = {dotted(name): what for name, what, _ in findings.influences}
    assert changes["Lean.Meta.instanceExtension"] == "instance"
    assert changes["reducibilityCore"] == "reducibility"
    assert changes["Lean.Meta.simpExtension"] == "simplification"
    assert dict(findings.extensions)[parsed("Lean.Meta.instanceExtension")] == 1


KINDS = """\
universe u
axiom ax.{w} (α : Sort (max 1 w)) : α
opaque hidden : Nat
unsafe def bad : Nat := 3
partial def loop (n : Nat) : Nat := loop n
inductive T (α : Type u) : Nat → Type u where
  | a : α → T α 0
  | b (f : Nat → T α 1) : T α 1
private theorem secret : True := True.intro
"""


def test_every_kind_of_constant_is_read(compiled: CompiledModules) -> None:
    with opened_module(compiled(KINDS)) as module:

        def facts(text: str) -> tuple[object, ...]:
            constant = module.constant(parsed(text))
            assert constant is not None, text
            return constant.kind, constant.safety, constant.numbers

        assert facts("ax") == (ConstantKind.AXIOM, Safety.SAFE, ())
        assert facts("hidden") == (ConstantKind.OPAQUE, Safety.SAFE, ())
        assert facts("bad") == (ConstantKind.DEFINITION, Safety.UNSAFE, ())
        assert facts("loop._unsafe_rec") == (ConstantKind.DEFINITION, Safety.PARTIAL, ())
        assert facts("T") == (ConstantKind.INDUCTIVE, Safety.SAFE, (1, 1, 0, True, True))
        assert facts("T.b") == (ConstantKind.CONSTRUCTOR, Safety.SAFE, (1, 1, 1))
        assert facts("T.rec") == (ConstantKind.RECURSOR, Safety.SAFE, (1, 1, 1, 2, False))
        assert facts("_private._stdin.0.secret") == (ConstantKind.THEOREM, Safety.SAFE, ())
        recursor, axiom = module.constant(parsed("T.rec")), module.constant(parsed("ax"))
        assert recursor is not None
        assert axiom is not None
        assert [dotted(rule.constructor) for rule in recursor.rules] == ["T.a", "T.b"]
        assert axiom.parameters == (("w",),)


def test_a_constant_with_the_tag_of_another_kind_is_refused(compiled: CompiledModules) -> None:
    """An axiom and a constant of quotients have the same fields: the tag alone tells them apart."""
    original = compiled(KINDS + PROVED).read_bytes()
    with opened_module(original) as module:
        assert found(audit(module, None, parsed("goal"))) == []
        tags = [place << 3 | 7 for place in module.names.values()]
    believed = []
    for tag, kind in itertools.product(tags, range(len(ConstantKind))):
        if original[tag] == kind:
            continue
        changed = original[:tag] + bytes([kind]) + original[tag + 1 :]
        with contextlib.suppress(MalformedOlean), opened_module(changed) as module:
            if not audit(module, None, parsed("goal")).findings:
                believed.append((tag, kind))
    assert len(tags) > 25
    assert believed == []


def test_all_of_the_core_library_can_be_read(core: LeanEnvironment, library: Index) -> None:
    with opened_module(Path(core.lean_path[0]) / "Core.olean") as module:
        kinds = {constant.kind for constant in map(module.constant, module.names) if constant is not None}
        assert kinds == set(ConstantKind)
        assert left_open(module) == []
    assert parsed("Quot.sound") in library.axioms
    assert parsed("Nat.add") in library.names


def _run(*words: str | Path) -> tuple[int, dict[str, object]]:
    start = f"{ON_PATH}; from farm_workers.audit.__main__ import main; main()"
    said = subprocess.run(
        [sys.executable, "-I", "-S", "-c", start, *map(str, words)],
        capture_output=True,
        timeout=30,
        check=False,
    )
    return said.returncode, json.loads(said.stdout or "{}")


def test_the_process_answers_in_json_and_by_its_status(
    core: LeanEnvironment, compiled: CompiledModules, library: Index, tmp_path: Path
) -> None:
    for name, names in (("names", library.names), ("axioms", library.axioms)):
        (tmp_path / name).write_text("\n".join(sorted(map(dotted, names))), encoding="utf-8")
    (tmp_path / "table").write_bytes(packed(read(list(map(Path, core.lean_path)))))
    known = ("--imported", tmp_path / "names", "--imported-axioms", tmp_path / "axioms")
    known = (*known, "--dependencies", tmp_path / "table")
    honest, open_ = compiled(PROVED), compiled(OPEN)
    status, said = _run(honest, "--challenge", open_, *known)
    assert (status, said["accepted"], said["target"], said["not_checked"]) == (0, True, "goal", [])
    status, said = _run(open_, "--challenge", open_, "--target", "goal", *known)
    assert (status, said["accepted"], said["axioms"]) == (1, False, ["sorryAx"])
    status, _ = _run(open_, "--challenge", open_, "--axioms", "sorryAx", *known)
    assert status == 0
    parts = compiled("theorem part : True := sorry\n" + OPEN)
    half = compiled("theorem part : True := sorry\n" + PROVED)
    stated = (half, "--challenge", parts, "--target", "goal", *known)
    assert [_run(*stated)[0], _run(*stated, "--parts-from", "1:0")[0]] == [0, 1]
    (tmp_path / "torn").write_bytes(honest.read_bytes()[:2000])
    status, said = _run(tmp_path / "torn")
    assert (status, [each["word"] for each in said["findings"]]) == (4, ["malformed_olean"])
    assert _run(tmp_path / "none")[0] == 2
    assert _run(honest, "--target", "..")[0] == 2


def test_the_audit_needs_nothing_but_itself() -> None:
    start = (
        f"{ON_PATH}; import farm_workers.audit.__main__, farm_workers.audit.imports; "
        "print([name for name in sys.modules if name.split('.')[0] in ('farm', 'farm_workers')])"
    )
    said = subprocess.run(
        [sys.executable, "-I", "-S", "-c", start], capture_output=True, text=True, check=True
    )
    taken = set(eval(said.stdout))
    assert {"farm_workers.audit.audit", "farm_workers.audit.olean"} < taken
    assert {name for name in taken if not name.startswith("farm_workers.audit.")} == {
        "farm_workers",
        "farm_workers.audit",
    }
