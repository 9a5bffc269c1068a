"""Answers: definitions that a statement leaves open, given by proofs, from manifests and over HTTP."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from farm_workers.checking.asked import check_of
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import LeanEnvironment

from farm.client import Answer, Client
from farm.judging.assurance import Assurance
from farm.judging.audit import ANSWERED
from farm.judging.audit import Answer as Given
from farm.judging.report import Report
from farm.judging.tiers import Tier
from farm.judging.verdict import Verdict, judge
from farm.limits import Limits
from farm.manifest.entry import Entry
from farm.task import Task
from tests.commands import HEADER, Command
from tests.processes import CODE, PATIENCE
from tests.toolchains import unforked
from tests.trainer_service import Served, service

#: True of every number, so that proofs of wrong answers are proofs.
STATEMENT = "abbrev sol : Nat := sorry\ntheorem t (n : Nat) : n = sol ↔ sol = n := by"
ROW = {"header": HEADER, "formal_statement": STATEMENT}


def proof(value: str) -> str:
    return f"abbrev sol : Nat := {value}\ntheorem t (n : Nat) : n = sol ↔ sol = n := ⟨Eq.symm, Eq.symm⟩"


#: What is asked, the value of the answer, and the reason that this gives.
ASKED: list[tuple[Mapping[str, object], str, str]] = [
    ({}, "5", "ok"),
    ({"answers": True}, "2 + 3", "ok"),
    ({"answers": True}, "sorry", "answer_missing"),
    ({"answers": False}, "5", "statement_mismatch"),
    ({"answer_must": "numeral"}, "5", "ok"),
    ({"answer_must": "numeral"}, "2 + 3", "answer_shape"),
    ({"answer_must": {"without": ["HAdd.hAdd"]}}, "2 + 3", "answer_shape"),
    ({"answer_must": {"without": ["HMul.hMul"]}}, "2 + 3", "ok"),
    ({"expected_answer": "5"}, "2 + 3", "ok"),
    ({"expected_answer": {"sol": "4 + 1"}}, "5", "ok"),
    ({"expected_answer": "6"}, "5", "answer_differs"),
    ({"expected_answer": "5", "answer_must": "numeral"}, "2 + 3", "answer_shape"),
    ({"expected_answer": "sorry"}, "5", "bad_challenge"),
    ({"expected_answer": "sol"}, "5", "bad_challenge"),
    ({"expected_answer": "true"}, "5", "bad_challenge"),
    ({"expected_answer": {"other": "5"}}, "5", "bad_challenge"),
    ({}, "let _ : OfNat Nat 5 := ⟨8⟩; 5", "ok"),
]


@pytest.fixture(scope="module")
def served(farm: Command, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with service(farm, tmp_path_factory.mktemp("serve")) as found:
        yield found


def test_a_line_says_what_its_answer_must_be(farm: Command, tmp_path: Path) -> None:
    manifest = tmp_path / "m.jsonl"
    rows = [{**ROW, "predicted_proof": f"{HEADER}{proof(value)}\n", **asked} for asked, value, _ in ASKED]
    manifest.write_text("".join(json.dumps(each) + "\n" for each in rows))
    farm("submit", manifest, "--wait")
    told = [json.loads(each)["farm"] for each in manifest.read_text().splitlines()]
    assert [each["reason"] for each in told] == [reason for *_, reason in ASKED], [e["detail"] for e in told]
    proved = [(each["answers"], each["trusts"]) for each in told if each["reason"] == "ok"]
    plain = {"name": "sol", "text": "5", "type": "Nat", "text_by_submission": False}
    assert proved[0] == ([plain], [ANSWERED])
    assert [each["text"] for each in proved[1][0]] == ["2 + 3"]
    assert proved[1][1] == [ANSWERED]
    assert {tuple(trusts) for _, trusts in proved[2:-1]} == {()}
    differs = next(each for each in told if each["reason"] == "answer_differs")
    assert [each["text"] for each in differs["answers"]] == ["5"]
    (weird,), _ = proved[-1]
    assert (weird["text_by_submission"], weird["text"][:7]) == (True, "let x1 ")


def test_a_run_says_what_answers_must_be(farm: Command, tmp_path: Path) -> None:
    manifest = tmp_path / "m.jsonl"
    plain = {"header": HEADER, "formal_statement": "theorem t : 1 = 1 := by", "generation": "rfl"}
    rows = [{**ROW, "generation": f"```lean4\n{proof('2 + 3')}\n```"}, plain]
    manifest.write_text("".join(json.dumps(each) + "\n" for each in rows))
    for flags, reasons in (
        (["--answers"], ["ok", "ok"]),
        (["--no-answers"], ["ok", "ok"]),
        (["--answer-must", "numeral"], ["answer_shape", "ok"]),
    ):
        farm("submit", manifest, "--wait", *flags)
        told = [json.loads(each)["farm"] for each in manifest.read_text().splitlines()]
        assert [each["reason"] for each in told] == reasons
        # Where nothing may be given, the same proof is tried below the dataset's own sorry.
        assert [each["name"] for each in told[0]["answers"]] == ([] if "--no-answers" in flags else ["sol"])
    for flags, problem in (
        (["--answer-must", "number"], "numerals"),
        (["--answers", "--tier", "lean"], "tier lean"),
    ):
        refused = farm("submit", manifest, *flags)
        assert refused.returncode == 2
        assert problem in refused.stderr


#: Impossible fields, and the problem that the message names.
IMPOSSIBLE: list[tuple[Mapping[str, object], str]] = [
    ({"answers": "yes"}, '"answers": neither true nor false'),
    ({"answers": False, "answer_must": "numeral"}, '"answers": false forbids'),
    ({"answer_must": "number"}, '"answer_must": no form'),
    ({"answer_must": {"without": "x"}}, '"answer_must": not a list'),
    ({"answer_must": {}}, '"answer_must": no form'),
    ({"expected_answer": 5}, '"expected_answer": no text'),
    ({"expected_answer": {"sol": ""}}, '"expected_answer": an answer is no text'),
    ({"expected_answer": "5" * 10_001}, '"expected_answer": it exceeds'),
]


def test_impossible_demands_are_refused_with_their_lines(farm: Command, tmp_path: Path) -> None:
    manifest = tmp_path / "m.jsonl"
    rows = [{**ROW, "generation": proof("5"), **fields} for fields, _ in IMPOSSIBLE]
    rows.append({"header": HEADER, "predicted_proof": f"{HEADER}theorem t : 1 = 1 := rfl", "answers": True})
    manifest.write_text("".join(json.dumps(each) + "\n" for each in rows))
    said = farm("submit", manifest)
    assert said.returncode == 2
    for number, (_, problem) in enumerate(IMPOSSIBLE, 1):
        assert re.search(rf"m.jsonl:{number}: field {problem}", said.stderr), said.stderr
    manifest.write_text(json.dumps(rows[-1]) + "\n")
    assert 'field "answers": this line has no formal_statement' in farm("submit", manifest).stderr


def test_items_are_worth_what_their_answers_are(served: Served) -> None:
    options = served.options
    item = {**ROW, "proof": proof("5")}
    page = (Path(__file__).parents[2] / "docs" / "use" / "tasks.md").read_text()
    with Client(options["url"], token=options["token"], deadline=120 * PATIENCE) as client:
        ruled_too = [item, {**item, "expected_answer": "5"}]
        plain, ruled = client.check_all(ruled_too, accept=["forgeable"])
        accepted = client.check(item, accept=["answer", "forgeable"])
        refused = client.check({**item, "proof": proof("sorry")}, answer_must="numeral")
    assert (plain.verdict, plain.reward, plain.weaker[0]) == ("proved", 0.0, "answer")
    assert (ruled.verdict, ruled.reward, "answer" in ruled.weaker) == ("proved", 1.0, False)
    assert (accepted.reward, accepted.answers) == (1.0, (Answer(name="sol", text="5", type="Nat"),))
    assert (refused.reason, refused.reward, refused.answers) == ("answer_missing", 0.0, ())
    example = re.search(r"## Answers.*?```python\n(.*?)```\n\nprints\n\n((?:    [^\n]*\n)+)", page, re.DOTALL)
    assert example
    environment = {**served.farm.environment, "PYTHONPATH": CODE}
    ran = subprocess.run(
        [sys.executable, "-c", example[1]], capture_output=True, text=True, env=environment, check=False
    )
    assert ran.stdout.splitlines() == [each.strip() for each in example[2].splitlines()], ran.stderr


def judged(
    checker: Checker,
    core: LeanEnvironment,
    value: str,
    task: Task,
    above: str = "",
    tier: str = Tier.KERNEL,
) -> Verdict:
    """Return the verdict on an answer, below a context if there is one."""
    return judge(reported(checker, core, STATEMENT, proof(value), task, above=above, tier=tier))


def reported(
    checker: Checker,
    core: LeanEnvironment,
    statement: str,
    program: str,
    task: Task,
    *,
    above: str = "",
    tier: str = Tier.KERNEL,
) -> Report:
    """Return the report on a program for a statement, below a context if there is one."""
    entry = Entry(
        path="",
        line=1,
        name="t",
        header="" if above else HEADER,
        context=above,
        formal_statement=statement,
        generation="",
        predicted_proof=f"{above or HEADER}{program}\n",
        task=task,
    )
    return checker.check(check_of(entry, Limits(wall_seconds=30.0), Assurance(tier=tier)), core)


ABOVE = f"{HEADER}def five : Nat := 5\ndef unknown : Nat := sorry\n"


def test_answers_are_given_below_a_context_and_not_in_it(checker: Checker, core: LeanEnvironment) -> None:
    for expected, reason in (("five", "ok"), ("unknown", "bad_challenge"), ("six", "bad_challenge")):
        task = Task(expected_answer={"": expected})
        assert judged(checker, core, "five", task, ABOVE).reason == reason
    changed = ABOVE.replace("sorry", "5")
    entry = Entry(
        path="",
        line=1,
        name="t",
        header="",
        context=ABOVE,
        formal_statement="theorem t : 5 ≤ unknown := by",
        generation="",
        predicted_proof=f"{changed}theorem t : 5 ≤ unknown := by decide\n",
    )
    report = checker.check(check_of(entry, Limits(wall_seconds=30.0), Assurance()), core)
    assert judge(report).reason == "statement_mismatch"


def test_a_lean_that_cannot_be_forked_compares_no_values(
    checker: Checker, core: LeanEnvironment, tmp_path: Path
) -> None:
    alone = unforked(core, tmp_path)
    for asked, value, reason in (
        ({}, "5", "ok"),
        ({"answer_must": "numeral"}, "2 + 3", "answer_shape"),
        ({"expected_answer": "5"}, "5", "answer_undecided"),
    ):
        found = judged(checker, alone, value, Task.of(asked), tier=Tier.AUDIT)
        assert found.reason == reason, found.detail


#: Two answers, of which the last theorem speaks of one.
TWO = "abbrev least : Nat := sorry\nabbrev greatest : Nat := sorry\n"
PARTS = TWO + "theorem low : least + 1 = 3 := by sorry\ntheorem high : greatest = 7 := by"
HIGH = "abbrev greatest : Nat := 7\ntheorem high : greatest = 7 := rfl"
BOTH = {"expected_answer": {"least": "2", "greatest": "7"}}
NUMERAL, GIVEN = {"answer_must": "numeral"}, {"answers": True}
#: What is asked, what stands above the last part, and the reason that this gives.
IN_ANOTHER_PART: list[tuple[Mapping[str, object], str, str]] = [
    (BOTH, "abbrev least : Nat := 2", "ok"),
    (BOTH, "abbrev least : Nat := 1 + 1\ntheorem low : least + 1 = 3 := rfl", "ok"),
    (BOTH, "@[implemented_by Nat.pred] def f (n : Nat) : Nat := n\nabbrev least : Nat := f 2", "ok"),
    (BOTH, "abbrev least : Nat := 9", "answer_differs"),
    (BOTH, "abbrev least : Nat := 9\ntheorem low : least + 1 = 10 := rfl", "answer_differs"),
    (BOTH, "abbrev least : Nat := if 1 = 2 then 2 else 3", "answer_differs"),
    (BOTH, "opaque x : Nat := 2\nabbrev least : Nat := x", "answer_undecided"),
    (BOTH, "", "answer_missing"),
    (BOTH, "abbrev least : Nat := sorry", "answer_missing"),
    ({"expected_answer": {"least": "2"}}, "abbrev least : Nat := 9", "answer_differs"),
    ({"expected_answer": {"greatest": "7"}}, "", "answer_missing"),
    (NUMERAL, "abbrev least : Nat := 4 + 5", "answer_shape"),
    (NUMERAL, "def nine : Nat := 9\nabbrev least : Nat := nine", "answer_shape"),
    (NUMERAL, "", "answer_missing"),
    ({"answer_must": {"without": ["Nat.mul"]}}, "abbrev least : Nat := Nat.mul 1 2", "answer_shape"),
    ({"answer_must": {"without": ["Nat.mul"]}}, "abbrev A.least : Nat := 2", "answer_missing"),
    (GIVEN, "", "answer_missing"),
    (GIVEN, "private abbrev least : Nat := 2", "answer_missing"),
    (GIVEN, "unsafe def least : Nat := 2", "answer_missing"),
    (GIVEN, "abbrev least : Bool := true", "statement_mismatch"),
    (GIVEN, "axiom least : Nat", "statement_mismatch"),
    (GIVEN, "opaque least : Nat := 2", "statement_mismatch"),
    (GIVEN, "abbrev least : Nat := (sorry : Nat × Nat).1", "has_sorry"),
    (GIVEN, "axiom x : Nat\nnoncomputable abbrev least : Nat := x", "axiom"),
    ({}, "axiom x : Nat\nnoncomputable abbrev least : Nat := x", "axiom"),
    ({}, "", "ok"),
]


def test_answers_of_all_parts_are_judged(checker: Checker, core: LeanEnvironment) -> None:
    for asked, above, reason in IN_ANOTHER_PART:
        report = reported(checker, core, PARTS, f"{above}\n{HIGH}", Task.of(asked))
        assert judge(report).reason == reason, (asked, above, judge(report).detail)
    report = reported(checker, core, PARTS, f"abbrev least : Nat := 2\n{HIGH}", Task())
    assert report.audit is not None
    assert [(each.name, each.text) for each in report.audit.answers] == [("greatest", "7"), ("least", "2")]


def test_a_part_is_no_place_for_an_answer_that_the_task_forbids(
    checker: Checker, core: LeanEnvironment
) -> None:
    statement = "abbrev sol : Nat := sorry\ntheorem t : 1 = 1 := by"
    for value, reason in (("5", "statement_mismatch"), ("sorry", "ok")):
        program = f"abbrev sol : Nat := {value}\ntheorem t : 1 = 1 := rfl"
        assert judge(reported(checker, core, statement, program, Task(answers=False))).reason == reason


def test_a_sorry_in_the_type_of_an_answer_is_the_datasets(checker: Checker, core: LeanEnvironment) -> None:
    above = "def F (_ : Nat) : Type := Nat\nabbrev sol : F (sorry) := "
    below = "\ntheorem t : sol = sol := "
    for value, reason in (("(5 : Nat)", "ok"), ("(sorry : Nat × Nat).1", "has_sorry")):
        report = reported(checker, core, f"{above}sorry{below}by", f"{above}{value}{below}rfl", Task())
        assert judge(report).reason == reason, judge(report).detail


def test_what_the_type_of_an_answer_speaks_of_is_the_datasets(
    checker: Checker, core: LeanEnvironment
) -> None:
    statement = "def T : Type := Nat\ndef sol : T := sorry\ntheorem t : 1 = 1 := by"
    program = "def T : Type := Bool\ndef sol : T := true\ntheorem t : 1 = 1 := rfl"
    report = reported(checker, core, statement, program, Task())
    assert judge(report).reason == "statement_mismatch"


HIGHEST = "instance (priority := 5000)"
#: Declarations above an answer and its value, of which Lean reads the text as another value, or not at all.
BY_SUBMISSION = [
    (f"{HIGHEST} : OfNat Nat 77 := ⟨8⟩", "77"),
    ("def weird : OfNat Nat 77 := ⟨8⟩\nattribute [local instance 5000] weird", "77"),
    (f"{HIGHEST} : HAdd Nat Nat Nat := ⟨fun _ _ => 8⟩", "70 + 7"),
    (f"{HIGHEST} : Add Nat := ⟨fun _ _ => 8⟩", "70 + 7"),
    (f"{HIGHEST} : Inhabited Nat := ⟨8⟩", "Inhabited.default"),
    ("class C where\n  x : Nat\ninstance : C := ⟨8⟩", "C.x"),
    ("def «77» : Nat := 8", "«77»"),
    ("def Nat.«77» : Nat := 8", "Nat.«77»"),
    ("def M.succ (_ : Nat) : Nat := 8\nopen M in", "succ 76"),
    ("private def hidden : Nat := 8", "hidden"),
    ("structure S where\n  x : Nat", "(S.mk 8).x"),
    (
        "def eight : Nat := 8\n@[app_unexpander eight] def shows : Lean.PrettyPrinter.Unexpander := "
        "fun _ => `(77)",
        "eight",
    ),
    ("", "let _ : OfNat Nat 77 := ⟨8⟩; 77"),
    ("", "have : OfNat Nat 77 := ⟨8⟩; 77"),
    ("", "(fun (_ : OfNat Nat 77) => (77 : Nat)) ⟨8⟩"),
    ("", "@OfNat.ofNat Nat 77 ⟨8⟩"),
    ("", "@HAdd.hAdd Nat Nat Nat ⟨fun _ _ => 8⟩ 70 7"),
    ("", "@HAdd.hAdd Nat Nat Nat (@instHAdd Nat ⟨fun _ _ => 8⟩) 70 7"),
    ("", "@Inhabited.default Nat ⟨8⟩"),
    ("", "@Coe.coe Bool Nat ⟨fun _ => 8⟩ true"),
    ("", "@ite Nat (1 = 1) (isTrue rfl) 77 8"),
    ("", "(fun «77» => «77») 8"),
    ("", "match 8 with | 0 => 77 | n => n"),
    ("", "go 77\n where go (_ : Nat) : Nat := 8"),
]
#: The same with the text of the answer, which Lean reads as its value.
BY_HEADER = [
    ("", "77", "77"),
    ("", "(77 : Nat)", "77"),
    ("", "2 + 3 * 4", "2 + 3 * 4"),
    ("", "if 2 < 3 then 1 else 0", "if 2 < 3 then 1 else 0"),
    ("", "(fun g : Nat → Nat → Nat => g 1 2) (fun a b => a + b)", "(fun g => g 1 2) fun a b => a + b"),
    ("", "[1, 2, 3].length", "[1, 2, 3].length"),
    ('notation "nine" => 8', "nine", "8"),
    ('macro "nine" : term => `(8)', "nine", "8"),
    ("instance : Coe Bool Nat := ⟨fun _ => 8⟩", "true", "8"),
    ("set_option pp.all true", "77", "77"),
    (f"{HIGHEST} : OfNat Nat 78 := ⟨8⟩", "77", "77"),
]


def test_a_text_means_what_a_reader_of_the_statement_reads(checker: Checker, core: LeanEnvironment) -> None:
    for above, value in BY_SUBMISSION:
        (answer,) = answers(checker, core, f"{above}\n{proof(value)}")
        assert answer.text_by_submission, (above, value, answer)
        assert answer.text not in (None, "77", "«77»"), (above, value, answer)
    for above, value, text in BY_HEADER:
        (answer,) = answers(checker, core, f"{above}\n{proof(value)}")
        assert (answer.text_by_submission, answer.text) == (False, text), (above, value, answer)


def answers(checker: Checker, core: LeanEnvironment, program: str) -> tuple[Given, ...]:
    """Return the answers of a program that is proved."""
    report = reported(checker, core, STATEMENT, program, Task())
    assert (judge(report).reason, report.audit is not None) == ("ok", True), (program, judge(report).detail)
    return report.audit.answers if report.audit else ()


def test_an_instance_is_known_by_what_lean_finds_and_not_by_its_name(
    checker: Checker, core: LeanEnvironment
) -> None:
    weird = "def toEight : OfNat Nat 77 := ⟨8⟩\n"
    used = f"attribute [local instance 5000] toEight\n{proof('77')}"
    for kept, above, statement in ((weird, "", weird + STATEMENT), ("", HEADER + weird, STATEMENT)):
        for program, reason in ((used, "answer_shape"), (proof("77"), "ok")):
            report = reported(
                checker, core, statement, kept + program, Task.of({"answer_must": "numeral"}), above=above
            )
            assert judge(report).reason == reason, judge(report).detail
