"""What a model writes before its theorem, with real Lean: kept where it leaves the statement as it was."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import LeanEnvironment

from farm.assembly.challenge import challenge_to
from farm.assembly.program import AssemblyOptions, assemble
from farm.judging.assurance import Assurance
from farm.judging.job import Check, candidates_of
from farm.judging.report import Report
from farm.judging.verdict import Outcome, Reason, judge
from farm.limits import Limits
from farm.manifest.entry import Entry
from tests.commands import HEADER, Command, lines, write

STATEMENT = "theorem goal (n : Nat) : n = n := by"
PROOF = f"{STATEMENT}\n  exact rfl"
#: The dataset's own definition, which a model may shadow.
GOOD = "def Good (n : Nat) : Prop := n = 0"
STATED = "theorem goal : Good 0 := by"
#: It says nothing of its type, which Lean adds unless it is told not to.
BOUND = "theorem goal (a : α) : a = a := by"
#: A helper that takes a moment, whichever program it stands in.
SLOW = "theorem slow : Nat.gcd (3 ^ 2000000) (5 ^ 1400000) = 1 := by decide +kernel"

CHANGES = {
    "a variable that the theorem would take": ("", STATEMENT, f"variable (h : False)\ninclude h\n{PROOF}"),
    "a variable of the type's name": ("", STATEMENT, f"variable (Nat : Type)\n{PROOF}"),
    "what is opened makes a name ambiguous": (
        GOOD,
        STATED,
        f"namespace A\ndef Good (n : Nat) : Prop := n = n\nend A\nopen A in\n{STATED}\n  exact rfl",
    ),
    "an option": ("", BOUND, f"set_option autoImplicit false\n{BOUND}\n  exact rfl"),
    "an option for the theorem": ("", BOUND, f"set_option autoImplicit false in\n{BOUND}\n  exact rfl"),
    "a notation that reads the statement otherwise": (
        "",
        STATEMENT,
        f'local notation "Nat" => Bool\n{PROOF}',
    ),
}
KEEPS = {
    "a variable that nothing uses": f"variable (m : Nat)\n{PROOF}",
    "a variable of a helper": (
        f"variable (m : Nat)\ntheorem help : m = m := rfl\n{STATEMENT}\n  exact help n"
    ),
    "what is opened": f"namespace A\ntheorem help (n : Nat) : n = n := rfl\nend A\nopen A in\n"
    f"{STATEMENT}\n  exact help n",
    "an option": f"set_option maxRecDepth 2000 in\n{PROOF}",
    "a notation of the proof": f'local notation "same" => rfl\nopen Nat in\n{STATEMENT}\n  exact same',
}
FALSE = "theorem goal : (1 : Nat) = 2 := by"
CHEATS = {
    "an assumption": ("", f"variable (h : False)\ninclude h\n{FALSE}\n  exact h.elim"),
    "a notation for the goal": ("", f'local notation "2" => 1\n{FALSE}\n  exact rfl'),
    "a notation for the type": ("", f'notation "Nat" => PUnit\n{FALSE}\n  exact rfl'),
    "a notation for equality": (
        "",
        f'local infix:50 (priority := high) " = " => fun _ _ => True\n{FALSE}\n  exact True.intro',
    ),
    "a namespace that shadows the goal": (
        "def Good (n : Nat) : Prop := n = 1",
        f"namespace A\ndef Good (_ : Nat) : Prop := True\nend A\nopen A\n{STATED}\n  exact True.intro",
    ),
    "a namespace around the theorem": (
        "def Good (n : Nat) : Prop := n = 1",
        f"namespace A\ndef Good (_ : Nat) : Prop := True\n{STATED}\n  exact True.intro\nend A",
    ),
    "an instance that makes one of two": (
        "",
        f"instance (priority := high) : OfNat Nat 2 := ⟨1⟩\n{FALSE}\n  exact rfl",
    ),
    "a local instance in a section": (
        "",
        f"section\nlocal instance (priority := high) : OfNat Nat 2 := ⟨1⟩\n{FALSE}\n  exact rfl\nend",
    ),
    "an option that keeps the kernel away": (
        "",
        f"set_option debug.skipKernelTC true in\n{FALSE}\n  exact (rfl : (1 : Nat) = 1)",
    ),
}


def entry(declared: str, statement: str, answer: str) -> Entry:
    return Entry(
        path="",
        line=1,
        name="goal",
        header=f"{HEADER}{declared}\n\n",
        formal_statement=statement,
        generation=f"```lean4\n{answer}\n```",
        predicted_proof="",
    )


def check_of(line: Entry, limits: Limits = Limits()) -> Check:  # noqa: B008 - it is frozen
    made = assemble(line, AssemblyOptions())
    return Check(
        candidates=candidates_of(made, challenge_to(line.header, line.formal_statement)),
        assurance=Assurance(),
        limits=limits,
    )


def worth(report: Report) -> tuple[str, str, int]:
    verdict = judge(report)
    return verdict.outcome, verdict.reason, report.candidate


@pytest.mark.parametrize(("declared", "statement", "answer"), CHANGES.values(), ids=CHANGES)
def test_what_changes_the_statement_is_left_out(
    checker: Checker, core: LeanEnvironment, declared: str, statement: str, answer: str
) -> None:
    report = checker.check(check_of(entry(declared, statement, answer)), core)
    assert worth(report) == (Outcome.PROVED, Reason.OK, 1), report


@pytest.mark.parametrize("answer", KEEPS.values(), ids=KEEPS)
def test_what_leaves_the_statement_as_it_was_is_kept(
    checker: Checker, core: LeanEnvironment, answer: str
) -> None:
    check = check_of(entry("", STATEMENT, answer))
    assert len(check.candidates) > 1
    assert worth(checker.check(check, core)) == (Outcome.PROVED, Reason.OK, 0)


@pytest.mark.parametrize(("declared", "answer"), CHEATS.values(), ids=CHEATS)
def test_what_would_make_the_goal_trivial_proves_nothing(
    checker: Checker, core: LeanEnvironment, declared: str, answer: str
) -> None:
    report = checker.check(check_of(entry(declared, STATED if declared else FALSE, answer)), core)
    assert judge(report).outcome is Outcome.REJECTED, report


def test_an_error_of_the_proof_itself_is_not_tried_again(checker: Checker, core: LeanEnvironment) -> None:
    check = check_of(entry("", STATEMENT, f"variable (m : Nat)\n{STATEMENT}\n  exact True.intro"))
    assert len(check.candidates) > 1
    assert worth(checker.check(check, core)) == (Outcome.REJECTED, Reason.ERROR, 0)


def test_both_programs_share_the_limits_of_one_check(checker: Checker, core: LeanEnvironment) -> None:
    """Each program alone would end well in the time that both are too long for."""
    answer = f"{SLOW}\nvariable (h : False)\ninclude h\n{STATEMENT}\n  first | exact h.elim | exact rfl"
    check = check_of(entry("", STATEMENT, answer), Limits(wall_seconds=600.0, cpu_seconds=600.0))
    first = checker.check(dataclasses.replace(check, candidates=check.candidates[:1]), core)
    assert judge(first).reason is Reason.STATEMENT_MISMATCH
    assert worth(checker.check(check, core)) == (Outcome.PROVED, Reason.OK, 1)
    limits = dataclasses.replace(check.limits, cpu_seconds=1.5 * first.run.cpu_seconds)
    both = checker.check(dataclasses.replace(check, limits=limits), core)
    assert worth(both) == (Outcome.TIMEOUT, Reason.CPU_LIMIT, 1)


def test_a_line_tells_the_program_that_counted_and_places_in_the_models_text(
    farm: Command, tmp_path: Path
) -> None:
    generation = f"So:\n```lean4\nvariable (h : False)\ninclude h\n{STATEMENT}\n  exact h.elim\n```"
    line = {"name": "goal", "header": HEADER, "formal_statement": STATEMENT, "generation": generation}
    path = write(tmp_path / "a.jsonl", line, line | {"generation": generation.replace("h.elim", "rfl")})
    assert farm("submit", path).returncode == 0
    wrong, proved = lines(path)
    assert [each["farm"]["preamble"] for each in (wrong, proved)] == ["farm", "farm"]
    assert [each["farm"]["verdict"] for each in (wrong, proved)] == ["rejected", "proved"]
    assert wrong["predicted_proof"] == f"{HEADER}{STATEMENT}\n  exact h.elim"
    assert wrong["farm"]["messages"][0]["in"] == {"field": "generation", "line": 6, "column": 8}
