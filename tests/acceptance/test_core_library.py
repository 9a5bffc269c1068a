"""What the embedded core library carries, and that it cannot be turned against the kernel."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import LeanEnvironment

from farm.assembly.challenge import challenge_to
from farm.assembly.program import AssemblyOptions, assemble
from farm.judging.assurance import Assurance
from farm.judging.job import Check
from farm.judging.report import Report
from farm.judging.verdict import Reason, judge
from farm.limits import Limits
from farm.manifest.entries import read
from farm.manifest.entry import Entry

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "workers" / "farm_workers" / "environments" / "core" / "Core.lean"
PROGRAMS = sorted(Path(__file__).with_name("core").glob("*.lean"))
QUICKSTART = ROOT / "examples" / "quickstart.jsonl"
EXPECTED = map(json.loads, QUICKSTART.with_suffix(".expected.jsonl").read_text().splitlines())
HEADER = "prelude\nimport Core\n"

#: Names that the kernel computes with, whatever they are defined to be (Lean's ``type_checker.cpp``).
KERNEL_NAMES = """
    Nat.zero Nat.succ Nat.add Nat.sub Nat.mul Nat.div Nat.mod Nat.pow Nat.gcd Nat.log2 Nat.beq Nat.ble
    Nat.land Nat.lor Nat.xor Nat.shiftLeft Nat.shiftRight Bool.true Bool.false Char Char.ofNat String
    String.ofList List.nil List.cons Eq Eq.refl Quot Quot.mk Quot.lift Quot.ind eagerReduce
"""


def _expected(program: str) -> list[tuple[int, str, str]]:
    """Read the comments ``-- severity: first words`` as (line, severity, first words)."""
    found = []
    for number, line in enumerate(program.splitlines(), 1):
        comment = re.search(r"-- (error|warning|information): (.*)", line)
        if comment:
            found.append((number, comment[1], comment[2]))
    return found


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_gives_the_messages_in_its_comments_and_no_others(
    checker: Checker, core: LeanEnvironment, path: Path
) -> None:
    program = path.read_text()
    expected = _expected(program)
    report = checker.check(Check.of(program=program), core)
    found = sorted((m.line, m.severity, m.text) for m in report.answer.messages)
    assert [(line, severity) for line, severity, _ in found] == [(n, s) for n, s, _ in expected], report
    assert all(text.startswith(e[2]) for (_, _, text), e in zip(found, expected, strict=True)), found


@pytest.mark.parametrize("name", KERNEL_NAMES.split())
def test_a_name_the_kernel_computes_with_is_taken(checker: Checker, core: LeanEnvironment, name: str) -> None:
    report = checker.check(Check.of(program=f"{HEADER}axiom {name} : Nat\n"), core)
    assert [m.text for m in report.answer.messages] == [f"`{name}` has already been declared"]


def test_the_library_assumes_only_the_axioms_of_lean_itself() -> None:
    declared = set(re.findall(r"^axiom (\S+)", LIBRARY.read_text(), re.MULTILINE))
    assert declared == {"propext", "Classical.choice", "Quot.sound", "sorryAx"}


def test_other_axioms_of_the_library_are_unsafe_so_that_no_theorem_can_use_them() -> None:
    declarations = re.findall(r"^.*\baxiom [\w.«»]+ .*[:{].*$", LIBRARY.read_text(), re.MULTILINE)
    assert all(line.startswith(("axiom ", "unsafe axiom ")) for line in declarations), declarations


@pytest.mark.parametrize(
    "text",
    [
        "def u : Nat := sorry",
        "def u : Nat := by sorry",
        "abbrev u : String := sorry",
        "instance : Inhabited Nat := ⟨sorry⟩",
        "def u (n : Nat) : Nat × Bool := (n, sorry)",
        "def u : Nat → Nat\n  | 0 => 0\n  | _ + 1 => sorry",
        "structure S where\n  n : Nat := sorry",
    ],
)
def test_data_that_is_admitted_is_a_sorry_and_no_error(
    checker: Checker, core: LeanEnvironment, text: str
) -> None:
    program = f"{HEADER}{text}\ntheorem t : 1 = 1 := rfl\n"
    report = checker.check(Check.of(program=program), core)
    assert judge(report).reason is Reason.HAS_SORRY
    assert [message.kind for message in report.answer.messages] == ["hasSorry"]


@pytest.mark.parametrize(
    "text", ["def u : Nat := true", "abbrev u : Nat := by exact true", "def u : Nat := nothing"]
)
def test_an_error_in_data_is_the_only_one(checker: Checker, core: LeanEnvironment, text: str) -> None:
    report = checker.check(Check.of(program=f"{HEADER}{text}\ntheorem t : 1 = 1 := rfl\n"), core)
    (error,) = report.answer.messages
    assert judge(report).reason is Reason.ERROR
    assert "sorryAx" not in error.text


def test_a_statement_may_leave_data_open(checker: Checker, core: LeanEnvironment) -> None:
    stated = "abbrev sol : Nat := sorry\ntheorem t : sol = sol := by"
    check = Check.of(
        program=f"{HEADER}{stated}\n  rfl\n",
        challenge=challenge_to(HEADER, stated),
        assurance=Assurance(),
    )
    report = checker.check(check, core)
    assert judge(report).reason is Reason.OK, judge(report).detail
    assert report.audit is not None
    assert report.audit.statement_has_sorry is True


def test_the_library_compiles_without_a_message(checker: Checker, core: LeanEnvironment) -> None:
    report = checker.check(Check.of(program=LIBRARY.read_text()), core)
    assert (report.run.exit_status, report.answer.messages) == (0, ())


def _judged(entry: Entry, checker: Checker, core: LeanEnvironment) -> tuple[Report, dict[str, str]]:
    program, *_ = assemble(entry, AssemblyOptions())
    report = checker.check(
        Check.of(
            program=program.text,
            limits=Limits(wall_seconds=entry.timeout or 30.0, memory_mib=512),
            submitted=program.submitted,
            challenge=challenge_to(entry.header, entry.formal_statement),
            assurance=Assurance(),
        ),
        core,
    )
    verdict = judge(report)
    return report, {
        "name": entry.name,
        "verdict": verdict.outcome,
        "reason": verdict.reason,
        "proof_status": verdict.proof_status,
    }


@pytest.mark.parametrize(
    ("entry", "expected"),
    list(zip(read(QUICKSTART), EXPECTED, strict=True)),
    ids=lambda value: value.name if isinstance(value, Entry) else "",
)
def test_an_example_gets_the_verdict_written_beside_it(
    checker: Checker, core: LeanEnvironment, entry: Entry, expected: dict[str, str]
) -> None:
    report, judged = _judged(entry, checker, core)
    assert judged == expected, report
