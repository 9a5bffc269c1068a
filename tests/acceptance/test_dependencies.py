"""What proofs rest on behind their imports: the axioms and sorries of a library, on real Lean."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
from collections.abc import Collection
from contextlib import ExitStack
from pathlib import Path

import pytest
from farm_workers.audit.declarations import whole
from farm_workers.audit.library import read
from farm_workers.audit.names import dotted
from farm_workers.audit.olean import Name
from farm_workers.box.isolation import Isolation
from farm_workers.checking.asked import check_of
from farm_workers.checking.checker import Checker
from farm_workers.checking.dependencies import Dependencies
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.lean.way import COLD, FORKED

from farm.judging.assurance import Assurance
from farm.judging.report import Report
from farm.judging.verdict import Reason, judge
from farm.limits import Limits
from farm.manifest.entry import Entry
from farm.task import Task
from tests.bench.checks.bare import launched
from tests.dependencies import packed
from tests.processes import PATIENCE
from tests.reports import audited
from tests.statements import HONEST

HEADER = "prelude\nimport Library.Top\n"
#: A library whose declarations rest on axioms and sorries, directly and behind others.
LIBRARY = {
    "Library.Base": """prelude
import Core
theorem admitted (n : Nat) : n = 7 := sorry
axiom postulate : (0 : Nat) = 1
axiom Choice.{u} (α : Sort u) : α
private theorem hidden (n : Nat) : n = 7 := admitted n
theorem by_hidden (n : Nat) : n = 7 := hidden n
inductive Odd : Nat → Prop where
  | one : Odd 1
  | by_false (n : Nat) (h : postulate = postulate) : Odd n
class Pointed (α : Type) where
  point : α
  other : α → α
opaque obscure : Nat := (fun (_ : (0 : Nat) = 1) => 0) postulate
def holds (n : Nat) (_ : n = 7 := admitted n) : Nat := n
""",
    # Lean writes such a module in several files; what proves `shown` is in the last one.
    "Library.Parts": """module
prelude
set_option genCtorIdx false
public inductive Parted : Prop where
  | intro : Parted
public axiom granted (p : Prop) : p
theorem secret (p : Prop) : p := granted p
public theorem shown (p : Prop) : p := secret p
public theorem parted : Parted := Parted.intro
""",
    "Library.Top": """prelude
import Library.Base
import Library.Parts
instance pointed : Pointed Nat := ⟨0, fun n => n⟩
theorem further (n : Nat) : n = 7 := by_hidden n
theorem wrong : (0 : Nat) = 1 := postulate
theorem clean (n : Nat) : n = n := rfl
def odd_three (h : postulate = postulate) : Odd 3 := Odd.by_false 3 h
theorem obscured : obscure = obscure := rfl
theorem speaks_of_it : holds 7 = holds 7 := rfl
""",
}


def compiled(core: LeanEnvironment, folder: Path, texts: dict[str, str]) -> None:
    """Compile modules into a folder, in their order."""
    for name, text in texts.items():
        file = folder.joinpath(*name.split(".")).with_suffix(".olean")
        file.parent.mkdir(parents=True, exist_ok=True)
        source = file.with_suffix(".lean")
        source.write_text(text)
        said = subprocess.run(
            launched([*core.lean, "-j1", "-R", str(folder), "-o", str(file), str(source)]),
            env={"PATH": os.defpath, "LEAN_PATH": ":".join([*core.lean_path, str(folder)])},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert said.returncode == 0, said.stdout


@pytest.fixture(scope="module")
def library(core: LeanEnvironment, tmp_path_factory: pytest.TempPathFactory) -> LeanEnvironment:
    """The core library with another one on it."""
    folder = tmp_path_factory.mktemp("library")
    folder.chmod(0o755)
    compiled(core, folder, LIBRARY)
    return dataclasses.replace(
        core, name="library", digest="library", lean_path=(*core.lean_path, str(folder))
    )


def checked(
    checker: Checker,
    environment: LeanEnvironment,
    statement: str,
    answer: str,
    way: str = FORKED,
    **how: object,
) -> Report:
    """Check a proof; `how` are a context and fields of a line's task."""
    context = str(how.pop("context", ""))
    entry = Entry(
        path="",
        line=1,
        name="t",
        header="" if context else HEADER,
        context=context,
        formal_statement=statement and f"{statement} := by",
        generation=f"exact {answer}" if statement else answer,
        predicted_proof="",
        task=Task.of(how),
    )
    check = check_of(entry, Limits(wall_seconds=20 * PATIENCE), Assurance())
    return checker.check(check, environment, way=way)


def printed(library: LeanEnvironment, folder: Path, text: str, names: list[str]) -> list[set[str]]:
    """Return the axioms that Lean itself prints for each name behind a text."""
    source = folder / "Printed.lean"
    source.write_text(text + "".join(f"#print axioms _root_.{name}\n" for name in names))
    said = subprocess.run(
        launched([*library.lean, "-j1", "--json", str(source)]),
        env={"PATH": os.defpath, "LEAN_PATH": ":".join(library.lean_path)},
        capture_output=True,
        text=True,
        timeout=120 * PATIENCE,
        check=False,
    )
    messages = [json.loads(line)["data"] for line in said.stdout.splitlines()][-len(names) :]
    told = [message.partition("depends on axioms: [")[2].rpartition("]")[0] for message in messages]
    pairs = zip(told, messages, strict=True)
    assert [message for each, message in pairs if not each and "does not depend" not in message] == []
    return [set(filter(None, each.replace("\n", " ").replace(" ", "").split(","))) for each in told]


def test_every_constant_rests_on_the_axioms_that_lean_prints(
    library: LeanEnvironment, tmp_path: Path
) -> None:
    contents = read([Path(folder) for folder in library.lean_path])
    assert contents.unread == {}
    below = {
        name: {dotted(axiom) for axiom in contents.sets[number].axioms}
        for name, number in contents.constants.items()
        if all(isinstance(part, str) for part in name) and "«" not in dotted(name)
    }
    assert len(below) > 0.9 * len(contents.constants)
    # A constant is asked about in its own module: of an imported one Lean remembers what it found when it
    # came to it by way of another, which can be too little.
    left = {*below}
    for module, text in [*LIBRARY.items(), ("Core", HEADER)]:
        told = sorted(name for name in left if module == "Core" or name in names_of(library, module))
        left -= {*told}
        lean = printed(library, tmp_path, text, list(map(dotted, told)))
        assert [below[name] for name in told] == lean, module


def names_of(library: LeanEnvironment, module: str) -> Collection[Name]:
    """Return the names that a module of the library declares."""
    with ExitStack() as files:
        file = Path(library.lean_path[-1]).joinpath(*module.split(".")).with_suffix(".olean")
        return [*whole(files, file).names]


EXTENSIONAL = "theorem t (p q : Nat → Prop) (h : ∀ n, p n = q n) : p = q"
ODD = "theorem t (h : postulate = postulate) : Odd 3"
#: Proofs, the axioms that they rest on, and the reason of their verdicts, with the constant that is named.
PROOFS = [
    ("theorem t (n : Nat) : n = n", "clean n", (), Reason.OK, None),
    (
        "theorem t (p q : Nat → Prop) (h : ∀ n, p n = q n) : p = q",
        "funext h",
        ("Quot.sound",),
        Reason.OK,
        None,
    ),
    ("theorem t : (0 : Nat) = 7", "further 0", ("sorryAx",), Reason.HAS_SORRY, "admitted"),
    ("theorem t : holds 7 = holds 7", "rfl", ("sorryAx",), Reason.HAS_SORRY, "admitted"),
    ("theorem t : (0 : Nat) = 1", "wrong", ("postulate",), Reason.AXIOM, "postulate"),
    (
        "theorem t (h : postulate = postulate) : Odd 3",
        "odd_three h",
        ("postulate",),
        Reason.AXIOM,
        "postulate",
    ),
    ("theorem t : obscure = obscure", "rfl", ("postulate",), Reason.AXIOM, "postulate"),
    ("theorem t : Parted", "parted", (), Reason.OK, None),
    ("theorem t : Parted", "shown Parted", ("granted",), Reason.AXIOM, "granted"),
]


@pytest.mark.parametrize("way", [FORKED, COLD])
def test_a_proof_rests_on_the_axioms_and_sorries_of_its_imports(
    checker: Checker, library: LeanEnvironment, way: str
) -> None:
    for statement, answer, axioms, reason, name in PROOFS:
        report = checked(checker, library, statement, answer, way)
        found = audited(report)
        named = found.decisive.name if found.decisive else None
        assert (found.axioms, judge(report).reason, named) == (axioms, reason, name), (statement, answer)
        assert found.not_checked == ()


def test_axioms_are_allowed_by_name_wherever_they_stand(checker: Checker, library: LeanEnvironment) -> None:
    reasons = {
        ("propext",): Reason.AXIOM,
        ("Quot.sound",): Reason.OK,
    }
    for axioms, reason in reasons.items():
        report = checked(checker, library, EXTENSIONAL, "funext h", axioms=list(axioms))
        assert (judge(report).reason, audited(report).axioms) == (reason, ("Quot.sound",))
    named = checked(checker, library, "theorem t : (0 : Nat) = 1", "wrong", axioms=["postulate"])
    assert judge(named).reason is Reason.OK


def test_choice_behind_an_imported_theorem_is_told(checker: Checker, library: LeanEnvironment) -> None:
    statement = "theorem t (α : Type) (h : Nonempty α) : (Classical.ofNonempty : α) = Classical.ofNonempty"
    assert audited(checked(checker, library, statement, "rfl")).uses_choice is True


def test_an_environment_may_permit_the_sorries_of_its_library(
    checker: Checker, library: LeanEnvironment
) -> None:
    lenient = dataclasses.replace(library, permits_library_sorries=True)
    for way in (FORKED, COLD):
        report = checked(checker, lenient, "theorem t : (0 : Nat) = 7", "further 0", way)
        verdict = judge(report)
        assert (verdict.outcome, report.trusts) == ("proved", ("a sorry of the library",))
        assert "trusts a sorry of the library" in verdict.detail
        assert audited(report).library_sorries == ("admitted",)
    assert judge(checked(checker, lenient, "theorem t : (0 : Nat) = 1", "wrong")).reason is Reason.AXIOM


def test_a_context_adds_what_its_own_imports_rest_on(checker: Checker, library: LeanEnvironment) -> None:
    context = (
        f"{HEADER}\ntheorem mine : (0 : Nat) = 7 := further 0\n\ntheorem other : (0 : Nat) = 7 := mine\n\n"
        "theorem fair (p q : Nat → Prop) (h : ∀ n, p n = q n) : p = q := funext h\n\n"
    )
    answers = {"other": (("sorryAx",), Reason.HAS_SORRY), "clean 0": ((), Reason.OK)}
    for _ in range(2):  # the second time in a fork of an image that has read the context
        for answer, (axioms, reason) in answers.items():
            statement = f"theorem t : (0 : Nat) = {'7' if answer == 'other' else '0'}"
            report = checked(checker, library, statement, answer, context=context)
            assert (judge(report).reason, audited(report).axioms) == (reason, axioms)
        fair = checked(checker, library, EXTENSIONAL, "fair p q h", context=context, axioms=["propext"])
        assert (judge(fair).reason, audited(fair).axioms) == (Reason.AXIOM, ("Quot.sound",))


def test_an_axiom_behind_an_import_can_be_forbidden(checker: Checker, library: LeanEnvironment) -> None:
    report = checked(checker, library, EXTENSIONAL, "funext h", forbid=["Quot.sound"])
    verdict = judge(report)
    assert (verdict.reason, audited(report).decisive.name) == (Reason.FORBIDDEN, "Quot.sound")
    assert "by way of funext" in verdict.detail
    assert judge(checked(checker, library, EXTENSIONAL, "funext h", forbid=["propext"])).reason is Reason.OK


def test_declarations_list_what_they_rest_on_behind_imports(
    checker: Checker, library: LeanEnvironment
) -> None:
    statement, answer, *_ = PROOFS[2]
    declared = audited(checked(checker, library, statement, answer, declarations=True)).declarations
    assert declared is not None
    assert [(each.axioms, each.rests_on, each.verdict) for each in declared] == [
        (("sorryAx",), ("admitted",), "rests_on_open")
    ]


def test_honest_programs_rest_on_the_axioms_that_lean_prints(
    checker: Checker, library: LeanEnvironment, tmp_path: Path
) -> None:
    programs = [submission for _, submission in HONEST] + [
        f"{statement} := by exact {answer}\n" for statement, answer, *_ in PROOFS
    ]
    text = HEADER + "".join(
        f"namespace P{number}\n{program}end P{number}\n" for number, program in enumerate(programs)
    )
    report = checked(checker, library, "", f"```lean4\n{text}\n```", declarations=True)
    declared = audited(report).declarations
    assert declared is not None
    told = {each.name: set(each.axioms) for each in declared if not each.name.startswith("_private")}
    assert len(told) > len(programs)
    assert list(told.values()) == printed(library, tmp_path, text, list(told))


def test_a_table_is_made_once_and_again_when_it_is_damaged(
    isolation: Isolation, library: LeanEnvironment, tmp_path: Path
) -> None:
    tables = Dependencies(isolation, tmp_path)
    file = tables.of(library)
    made = file.stat().st_ino
    assert tables.of(library) == Dependencies(isolation, tmp_path).of(library) == file
    assert file.stat().st_ino == made
    content = file.read_bytes()
    other = packed(read([Path(library.lean_path[0])]), "other")
    for damaged in (content[:-8], content[:-1] + bytes([content[-1] ^ 1]), b"", other):
        file.write_bytes(damaged)
        assert tables.of(library).read_bytes() == content
    file.unlink()
    assert tables.of(library).read_bytes() == content


def test_what_the_table_lacks_is_a_failure_of_the_farm(
    isolation: Isolation, library: LeanEnvironment, tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = tmp_path_factory.mktemp("changed")
    folder = home / "library"
    shutil.copytree(library.lean_path[-1], folder)
    home.chmod(0o755)
    path = (*library.lean_path[:-1], str(folder))
    changed = dataclasses.replace(library, digest="changed", lean_path=path)
    # The module is torn while the table is made, and whole when Lean imports it.
    base = folder / "Library" / "Base.olean"
    content = base.read_bytes()
    base.write_bytes(content[:5000])
    Dependencies(isolation, home).of(changed)
    base.write_bytes(content)
    with Checker(isolation, home=home) as checker:
        for way in (FORKED, COLD):
            verdict = judge(checked(checker, changed, "theorem t : (0 : Nat) = 7", "further 0", way))
            assert (verdict.outcome, verdict.reason) == ("judge_error", Reason.BOX_FAILED), verdict.detail
            assert (
                "the axioms below by_hidden: these modules could not be read: Library.Base: "
                in verdict.detail
            )
            assert "Build the environment's modules again" in verdict.detail
            fair = judge(checked(checker, changed, "theorem t (n : Nat) : n = n", "rfl", way))
            assert fair.reason is Reason.OK
