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
from farm.judging.tiers import Tier
from farm.judging.verdict import Verdict, judge
from farm.limits import Limits
from farm.manifest.entry import Entry
from farm.task import Task
from tests.acceptance.test_trust import unforked
from tests.commands import HEADER, Command
from tests.processes import CODE, PATIENCE
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
    assert proved[0] == ([{"name": "sol", "text": "5", "type": "Nat"}], [ANSWERED])
    assert proved[1] == ([{"name": "sol", "text": "2 + 3", "type": "Nat"}], [ANSWERED])
    assert {tuple(trusts) for _, trusts in proved[2:]} == {()}
    differs = next(each for each in told if each["reason"] == "answer_differs")
    assert differs["answers"] == [{"name": "sol", "text": "5", "type": "Nat"}]


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
    entry = Entry(
        path="",
        line=1,
        name="t",
        header="" if above else HEADER,
        context=above,
        formal_statement=STATEMENT,
        generation="",
        predicted_proof=f"{above or HEADER}{proof(value)}\n",
        task=task,
    )
    return judge(checker.check(check_of(entry, Limits(wall_seconds=30.0), Assurance(tier=tier)), core))


ABOVE = f"{HEADER}def five : Nat := 5\ndef unknown : Nat := sorry\n"


def test_answers_are_given_below_a_context_and_not_in_it(checker: Checker, core: LeanEnvironment) -> None:
    for expected, reason in (("five", "ok"), ("unknown", "answer_undecided"), ("six", "bad_challenge")):
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
