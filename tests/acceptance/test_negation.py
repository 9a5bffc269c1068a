"""Negations: proofs that a statement is false, from manifests and over HTTP, and tricks against them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from farm_workers.checking.asked import check_of
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import LeanEnvironment

from farm.assembly.challenge import challenge_to
from farm.assembly.negation import begin_of_negation, negation_of
from farm.judging.assurance import Assurance
from farm.judging.report import Report
from farm.judging.verdict import Outcome, judge
from farm.limits import Limits
from farm.manifest.entry import Entry
from tests.commands import HEADER, Command

FALSE = "theorem t (p : Prop) : p := by"
TRUE = "theorem t (p : Prop) (h : p) : p := by"
DISPROOF = "intro h\nexact h False"


def judged(checker: Checker, core: LeanEnvironment, statement: str, answer: str, above: str = "") -> Report:
    negation = negation_of("" if above else HEADER, statement, above)
    assert negation
    entry = Entry(
        path="",
        line=1,
        name="t",
        header="",
        context=negation.context,
        formal_statement=negation.formal_statement,
        generation=f"```lean4\n{answer}\n```",
        predicted_proof="",
    )
    return checker.check(check_of(entry, Limits(wall_seconds=20.0), Assurance()), core)


@pytest.mark.parametrize(
    ("statement", "answer"),
    [
        (FALSE, DISPROOF),
        ("theorem t : ∀ p : Prop, p := by", DISPROOF),
        ("theorem t {p : Prop} : p := by", "intro h\nexact @h False"),
        ("namespace A\nvariable (p : Prop)\ntheorem t : p := by", DISPROOF),
        ("theorem «a b» (p : Prop) : p := by", DISPROOF),
        ("theorem negation (p : Prop) : p := by", DISPROOF),
        ("theorem negation' (p : Prop) : p := by", DISPROOF),
        ("theorem A.t (p : Prop) : p :=", DISPROOF),
        ("theorem t (a b : Nat) : a = b := by", "intro h\nexact Nat.noConfusion (h 0 1)"),
        ("theorem t.{u} (α : Type u) (h : α → False) : False := by", "intro h\nexact h PEmpty nofun"),
    ],
)
def test_a_false_statement_is_disproved(
    checker: Checker, core: LeanEnvironment, statement: str, answer: str
) -> None:
    found = judge(judged(checker, core, statement, answer))
    assert found.outcome is Outcome.PROVED, found.detail


#: What proves no negation: it uses the admitted theorem, proves something else, or is wrong.
TRICKS = {
    "a true statement": (TRUE, DISPROOF),
    "sorry": (FALSE, "sorry"),
    "another statement of that name": (
        FALSE,
        "theorem negation : ¬ (∀ p : Prop, p → p → False) := fun h => h True trivial trivial",
    ),
    "another theorem that is negated": (
        TRUE,
        "namespace B\ntheorem t (p : Prop) : p := sorry\n"
        "theorem negation : ¬ type_of% @t := fun h => h False\nend B",
    ),
    "type_of% of something else": (
        TRUE,
        "local macro_rules | `(type_of% $_) => `(False)\ntheorem negation : ¬ type_of% @t := fun h => h",
    ),
    "a negation of another meaning": (
        TRUE,
        "def Not (p : Prop) : Prop := True\ntheorem negation : ¬ False := trivial",
    ),
}


@pytest.mark.parametrize(("statement", "answer"), TRICKS.values(), ids=TRICKS)
def test_no_trick_disproves_a_statement(
    checker: Checker, core: LeanEnvironment, statement: str, answer: str
) -> None:
    assert judge(judged(checker, core, statement, answer)).outcome is not Outcome.PROVED


@pytest.mark.parametrize("answer", ["intro h\nexact t False", "exact absurd t (fun h => h False)"])
def test_a_disproof_that_uses_the_admitted_theorem_says_so(
    checker: Checker, core: LeanEnvironment, answer: str
) -> None:
    report = judged(checker, core, FALSE, answer)
    assert report.rests_on_sorry_of == ("t",)


def test_a_statement_below_a_context_is_negated_there(checker: Checker, core: LeanEnvironment) -> None:
    above = f"{HEADER}\ndef All : Prop := ∀ p : Prop, p\n"
    report = judged(checker, core, "theorem t : All := by", DISPROOF, above)
    assert judge(report).outcome is Outcome.PROVED


@pytest.mark.parametrize("statement", ["", "  \n", "example : False := by", "-- nothing\n"])
def test_what_names_no_theorem_has_no_negation(statement: str) -> None:
    assert negation_of(HEADER, statement) is None


def test_a_name_that_is_taken_costs_no_time_to_avoid() -> None:
    found = negation_of(f"{HEADER}-- negation{chr(39) * 1_000_000}\n", FALSE)
    assert found
    name = found.formal_statement.split()[1]
    assert name not in found.context
    assert len(name) < 40


def test_a_manifest_of_negations_is_searched_and_judged(farm: Command, tmp_path: Path) -> None:
    problems, negations = tmp_path / "problems.jsonl", tmp_path / "negations.jsonl"
    rows = [
        {"name": name, "header": HEADER, "formal_statement": text, "generation": "rfl", "source": "mine"}
        for name, text in {
            "false": FALSE,
            "true": TRUE,
            "scope": f"variable (h : False)\ninclude h\n{TRUE}",
        }.items()
    ]
    problems.write_text("".join(json.dumps(each) + "\n" for each in rows))
    said = farm("submit", "--disprove", "--dry-run", problems, "-o", negations, "--json")
    assert (said.returncode, json.loads(said.stdout)["lines"]) == (0, 3), said.stderr
    written = [json.loads(each) for each in negations.read_text().splitlines()]
    assert [(each["name"], each["negates"], each["source"]) for each in written] == [
        ("false.negation", 1, "mine"),
        ("true.negation", 2, "mine"),
        ("scope.negation", 3, "mine"),
    ]
    assert all("generation" not in each and "header" not in each for each in written)
    refused = farm("submit", "--disprove", "--dry-run", problems, "-o", negations)
    assert (refused.returncode, "is there already; add --force" in refused.stderr) == (2, True)
    answers = [{**each, "generation": DISPROOF} for each in written]
    answers[2]["generation"] = "exact h.elim"
    negations.write_text("".join(json.dumps(each) + "\n" for each in answers))
    assert farm("submit", negations, "--wait").returncode == 3  # of the third line Lean makes no negation
    status = [json.loads(each)["proof_status"] for each in negations.read_text().splitlines()]
    assert status == ["completed", "error", "judge_error"]


def test_a_statement_without_a_name_is_refused_with_its_line(farm: Command, tmp_path: Path) -> None:
    problems = tmp_path / "problems.jsonl"
    lines = [{"header": HEADER, "formal_statement": each} for each in (FALSE, "example : False := by")]
    problems.write_text("".join(json.dumps(each) + "\n" for each in lines))
    said = farm("submit", "--disprove", "--dry-run", problems, "-o", tmp_path / "out.jsonl")
    assert (said.returncode, ":2: " in said.stderr) == (2, True), said.stderr
    assert not (tmp_path / "out.jsonl").exists()


@pytest.mark.parametrize(
    ("statement", "above"),
    [
        (FALSE, ""),
        ("theorem «a b» (p : Prop) : p", ""),
        ("theorem negation : False -- a comment", ""),
        (FALSE, f"{HEADER}\n/-- About t. -/"),
        (FALSE, f"{HEADER}\nnamespace A\nopen A in"),
    ],
)
def test_a_challenge_and_that_of_its_negation_determine_each_other(statement: str, above: str) -> None:
    header = "" if above else HEADER
    stated, negation = challenge_to(header, statement, above), negation_of(header, statement, above)
    assert stated
    assert negation
    plain = challenge_to("", negation.formal_statement, negation.context)
    assert replace(negation.challenge, negates=0) == plain
    program = negation.challenge.program
    assert program[: begin_of_negation(program)] == stated.program
    assert negation.challenge.negates == len(stated.program)
