"""Claimed proofs against a benchmark's own statements: what each claim comes to."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.test_hostile_sessions import cheating
from tests.commands import Command

HEADER = "prelude\nimport Core\n"
STATEMENTS = {
    "one": "(p q : Prop) (hp : p) (hq : q) : p ∧ q",
    "two": ": ∀ n : Nat, n = n",
    "three": "(p : Prop) (h : p) : p",
    "four": "(a b : Prop) (ha : a) (hb : b) : b ∧ a",
    "five": ": True",
    "six": "(p : Prop) : p → p",
    "seven": ": 1 = 1",
    "eight": "(p : Prop) (h : p ∧ p) : p",
    "nine": ": 2 = 2",
    "ten": ": False",
    "eleven": ": 3 = 3",
    "twelve": ": 4 = 4",
    "thirteen": ": 5 = 5",
}
FILES = {
    "One.lean": """namespace Mine
theorem helper (p : Prop) (h : p) : p := h
theorem one (p q : Prop) (hp : p) (hq : q) : p ∧ q := ⟨helper p hp, hq⟩
end Mine
theorem two : ∀ n : Nat, n = n := by sorry
theorem faulty : 1 = 2 := rfl
theorem other_name (a b : Prop) (ha : a) (hb : b) : b ∧ a := ⟨hb, ha⟩
""",
    "Sub/five.lean": "axiom cheat : True\ntheorem main : True := cheat\n",
    "Sub/Six.lean": "theorem SIX (p : Prop) : p → p ∨ p := fun h => .inl h\n",
    "Sub/Type.lean": "theorem unlike (p : Prop) : (h : p ∧ p) → p := fun h => h.1\n",
    "Sub/nine.lean": "theorem nine : 2 = 2 := by nope\n",
    "Sub/Ten.lean": "theorem ten : True := trivial\n",
    "Sub/A.lean": "theorem eleven : 3 = 3 := by nope\n",
    "Sub/Mutual.lean": "mutual\ntheorem thirteen : 5 = 5 := rfl\ntheorem more : 6 = 6 := rfl\nend\n",
    "Sub/B.lean": "theorem eleven : 3 = 3 := rfl\n",
}
RESULTS = {
    "one": ("proved", "One.lean", "last part of the name"),
    "two": ("rests on", "One.lean", "name"),
    "three": ("proved", "One.lean", "text of the statement"),
    "four": ("proved", "One.lean", "text of the statement"),
    "five": ("rests on", "Sub/five.lean", "name of the file"),
    "six": ("another statement", "Sub/Six.lean", "name, spelled otherwise"),
    "seven": ("not judged", "Sub/Seven.lean", "name"),
    "eight": ("proved", "Sub/Type.lean", "type"),
    "nine": ("not proved", "Sub/nine.lean", "name"),
    "ten": ("another statement", "Sub/Ten.lean", "name"),
    "eleven": ("proved", "Sub/B.lean", "name"),
    "twelve": ("missing", None, None),
    "thirteen": ("proved", "Sub/Mutual.lean", "name"),
}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("repository")
    for name, text in FILES.items():
        write(folder / name, HEADER + text)
    write(folder / "Sub/Seven.lean", f"{HEADER}import Mine.Lemmas\ntheorem seven : 1 = 1 := Mine.foo\n")
    secret = tmp_path_factory.mktemp("elsewhere") / "Secret.lean"
    write(secret, f"{HEADER}theorem twelve : 4 = 4 := rfl\n")
    (folder / "Link.lean").symlink_to(secret)
    (folder / "Gone.lean").symlink_to("/no/such/file")
    (folder / "Loop.lean").symlink_to("Loop.lean")
    (folder / "Folder.lean").mkdir()
    os.mkfifo(folder / "Pipe.lean")
    write(folder / "README.md", "theorem twelve : 4 = 4 := rfl\n")
    return folder


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lines = [
        {"name": name, "header": HEADER, "formal_statement": f"theorem {name} {text} := by", "split": "test"}
        for name, text in STATEMENTS.items()
    ]
    file = tmp_path_factory.mktemp("benchmark") / "benchmark.jsonl"
    file.write_text("".join(json.dumps(each) + "\n" for each in [*lines, lines[0]]), encoding="utf-8")
    return file


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def lines_of(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def test_each_claim_is_judged_against_the_benchmarks_own_statement(
    farm: Command, repository: Path, benchmark: Path, tmp_path: Path
) -> None:
    output = tmp_path / "claims.jsonl"
    told = farm.json("verify-repo", repository, "--against", benchmark, "-o", output, "--by-type", status=3)
    assert told["problems"] == len(STATEMENTS)
    facts = {each["problem"]: each for each in told["claims"]}
    found = {name: (it["result"], it.get("file"), it.get("paired_by")) for name, it in facts.items()}
    assert found == RESULTS
    assert "line 7" in facts["two"]["detail"]  # as in the file itself
    assert "cheat" in facts["five"]["detail"]
    assert "no module Mine.Lemmas; " in facts["seven"]["detail"]
    lines = {each["name"]: each for each in lines_of(output)}
    assert list(lines) == list(STATEMENTS)
    assert {each["split"] for each in lines.values()} == {"test"}
    assert lines["one"]["farm"]["sealed_sha256"]
    assert lines["one"]["proof_status"] == "completed"
    assert not {"generation", "predicted_proof", "proof_status"} & set(lines["twelve"])
    assert "faulty" not in lines["four"]["predicted_proof"]


def test_the_lines_that_are_signed_off_are_proved_again_when_they_are_submitted(
    farm: Command, repository: Path, benchmark: Path, tmp_path: Path
) -> None:
    output, again = tmp_path / "claims.jsonl", tmp_path / "again.jsonl"
    farm.json("verify-repo", repository, "--against", benchmark, "-o", output, "--by-type", status=3)
    claimed = [each for each in lines_of(output) if each["claim"]["result"] != "missing"]
    plain = [
        {name: text for name, text in each.items() if name not in ("farm", "proof_status")}
        for each in claimed
    ]
    again.write_text("".join(json.dumps(each) + "\n" for each in plain), encoding="utf-8")
    assert farm("submit", again).returncode in (0, 3)
    judged = {each["name"]: each["proof_status"] for each in lines_of(again)}
    assert {name for name, status in judged.items() if status == "completed"} == {
        name for name, (result, _, _) in RESULTS.items() if result == "proved"
    }


def test_a_repository_that_claims_nothing_else_ends_with_status_0(
    farm: Command, benchmark: Path, tmp_path: Path
) -> None:
    write(tmp_path / "Proofs" / "Five.lean", f"{HEADER}theorem five : True := trivial\n")
    ended = farm("verify-repo", tmp_path / "Proofs", "--against", benchmark, "-o", tmp_path / "out.jsonl")
    assert ended.returncode == 0, ended.stderr
    assert "1 proved, 12 missing" in ended.stderr


def test_hostile_code_of_a_claim_proves_nothing(farm: Command, benchmark: Path, tmp_path: Path) -> None:
    act = """printf '{"commands": [], "proofs": []}' > outline.json; kill -9 $PPID"""
    text = cheating(act, wait_ms=100).partition("theorem")[0] + "theorem ten : False := by\n  cheat!!\n"
    write(tmp_path / "Proofs" / "Ten.lean", text)
    words = "--against", benchmark, "-o", tmp_path / "out.jsonl", "--json"
    ended = farm("verify-repo", tmp_path / "Proofs", *words)
    (found,) = [each["result"] for each in json.loads(ended.stdout)["claims"] if each["problem"] == "ten"]
    assert (found, ended.returncode) in (("not proved", 4), ("not judged", 3))


def test_a_benchmarks_own_answers_and_verdicts_are_no_claims(farm: Command, tmp_path: Path) -> None:
    own = {"header": HEADER, "generation": ":= trivial", "proof_status": "completed", "proved_in_file": True}
    told = {
        "farm": {"verdict": "proved"},
        "claim": {"result": "proved"},
        "predicted_proof": "theorem x",
        "more": 7,
    }
    made = [
        {"name": name, "formal_statement": f"theorem {name} : True", **own, **told} for name in ("one", "two")
    ]
    rows = [*made, {**made[0], "sample": 1}, {**made[0], "axioms": ["propext"]}]
    write(tmp_path / "b.jsonl", "".join(json.dumps(each) + "\n" for each in rows))
    write(tmp_path / "Proofs" / "One.lean", f"{HEADER}theorem one : True := by nope\n")
    output = tmp_path / "out.jsonl"
    farm.json("verify-repo", tmp_path / "Proofs", "--against", tmp_path / "b.jsonl", "-o", output, status=4)
    one, two, other = lines_of(output)  # a sample is no other problem; other axioms make one
    assert (one["claim"]["result"], one["proof_status"], one["farm"]["verdict"]) == (
        "not proved",
        "error",
        "rejected",
    )
    assert "generation" not in one
    assert two == {**{name: two[name] for name in ("name", "formal_statement", "header")}, "more": 7} | {
        "claim": {"result": "missing"}
    }
    assert other["axioms"] == ["propext"]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ([{"task": "disprove"}], 'field "task"'),
        ([{"environment": "a"}, {"environment": "b"}], "several environments, a and b"),
        ([{"environment": "nowhere"}], "nowhere"),
    ],
)
def test_lines_of_a_benchmark_that_cannot_be_claimed_are_refused(
    farm: Command, repository: Path, tmp_path: Path, fields: list[dict[str, str]], said: str
) -> None:
    made = [
        {"name": f"p{number}", "header": HEADER, "formal_statement": f"theorem p{number} : True", **each}
        for number, each in enumerate(fields)
    ]
    write(tmp_path / "b.jsonl", "".join(json.dumps(each) + "\n" for each in made))
    words = "--against", tmp_path / "b.jsonl", "-o", tmp_path / "out.jsonl"
    ended = farm("verify-repo", repository, *words)
    assert ended.returncode == 2, ended.stderr
    assert said in ended.stderr
    assert not (tmp_path / "out.jsonl").exists()


def test_an_environment_whose_modules_cannot_be_audited_is_refused(
    farm: Command, repository: Path, benchmark: Path, tmp_path: Path
) -> None:
    lean, table = tmp_path / "lean", tmp_path / "environments.toml"
    said = 'case "$1" in --version) echo "Lean (version 4.35.0, commit eb6cafb7290e, Release)" ;; esac'
    write(lean, f"#!/bin/sh\n{said}\n")
    lean.chmod(0o755)
    write(table, f'[environments.old]\nlean = "{lean}"\nlean_path = ["{tmp_path}"]\naudit = false\n')
    words = "--against", benchmark, "-o", tmp_path / "out.jsonl", "--environment", "old"
    ended = farm.having(FARM_ENVIRONMENTS=str(table))("verify-repo", repository, *words)
    assert ended.returncode == 2, ended.stderr
    assert "cannot be audited" in ended.stderr
    assert not (tmp_path / "out.jsonl").exists()


BAD = {
    "no folder": (["/no/such"], "there is no such file or folder"),
    "no benchmark": (["--against", "/no/such.jsonl"], "/no/such.jsonl"),
    "no statement": (["--against", "empty.jsonl"], "no line has a formal_statement"),
    "no manifest": (["--against", "torn.jsonl"], "torn.jsonl"),
    "the output is the benchmark": (["-o", "good.jsonl", "--force"], "name another file"),
    "the output is there": (["-o", "torn.jsonl"], "add --force"),
    "another ending": (["-o", "out.json"], "ends in .jsonl"),
    "no environment": (["--environment", "nope"], "nope"),
}


@pytest.mark.parametrize(("words", "said"), BAD.values(), ids=BAD)
def test_bad_usage_is_said_and_nothing_is_written(
    farm: Command, benchmark: Path, tmp_path: Path, words: list[str], said: str
) -> None:
    write(tmp_path / "A.lean", f"{HEADER}theorem five : True := trivial\n")
    (tmp_path / "good.jsonl").write_bytes(benchmark.read_bytes())
    write(tmp_path / "empty.jsonl", '{"name": "x", "predicted_proof": "theorem x : True"}\n')
    write(tmp_path / "torn.jsonl", '{"name": \n')
    before = {each.name: each.read_bytes() for each in tmp_path.iterdir()}
    given = [str(tmp_path / each) if each.endswith((".jsonl", ".json")) else each for each in words]
    path = given.pop(0) if not given[0].startswith("-") else str(tmp_path)
    against = [] if "--against" in given else ["--against", str(tmp_path / "good.jsonl")]
    output = [] if "-o" in given else ["-o", str(tmp_path / "out.jsonl")]
    ended = farm("verify-repo", path, *against, *output, *given)
    assert ended.returncode == 2, ended.stderr
    assert said in ended.stderr
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == before
