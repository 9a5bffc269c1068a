"""Lines of a manifest that are tidied and repaired: each new program is judged as the line's own answer."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from tests.commands import HEADER, Command, lines, write
from tests.processes import PATIENCE, eventually, family

STATEMENT = "theorem t (p q : Prop) (hp : p) (hq : q) : p ∧ q := by"
CONTEXT = f"{HEADER}theorem above (p : Prop) (h : p) : p := by\n  skip\n  exact h\n"
LINE = {"header": HEADER, "formal_statement": STATEMENT, "own": {"at": 1}}
HELPED = (
    f"{HEADER}theorem helper (p : Prop) (h : p) : p := by\n  skip\n  exact h\n"
    "theorem t (p q : Prop) (hp : p) (hq : q) : p ∧ q := ⟨helper p hp, hq⟩\n"
)
ROWS: dict[str, dict[str, Any]] = {
    "needless": {**LINE, "generation": "  skip\n  exact And.intro hp hq"},
    "needed": {**LINE, "generation": "  exact And.intro hp hq"},
    "program": {**LINE, "predicted_proof": HELPED},
    "context": {
        "context": CONTEXT,
        "formal_statement": STATEMENT,
        "generation": "  skip\n  exact And.intro (above p hp) hq",
    },
    "broken": {**LINE, "generation": "  constructor\n  · exact nope\n  · exact hq"},
    "hopeless": {
        "header": HEADER,
        "formal_statement": "theorem u (p : Prop) : p := by",
        "generation": "nope",
    },
    "definition": {**LINE, "predicted_proof": HELPED.replace("theorem t", "def d : Prop := nope\ntheorem t")},
    "other": {**LINE, "formal_statement": "theorem u : True := by", "predicted_proof": HELPED},
    "misstated": {"header": HEADER, "formal_statement": "theorem u : Nope := by", "generation": "trivial"},
    "disproof": {**LINE, "generation": "skip", "task": "disprove"},
}


def made(path: Path, *names: str) -> Path:
    return write(path, *({"name": name, **ROWS[name]} for name in names or ROWS))


def by_name(path: Path) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in lines(path)}


def test_lines_are_tidied_and_what_is_not_the_answers_own_stays(farm: Command, tmp_path: Path) -> None:
    given, output = made(tmp_path / "given.jsonl"), tmp_path / "tidy.jsonl"
    before = given.read_bytes()
    told = farm.json(
        "mend", "--tidy", given, "-o", output, status=3
    )  # as of a submit: a statement does not compile
    assert given.read_bytes() == before
    assert {each["name"] for each in told["lines"] if each["changes"]} == {"needless", "program", "context"}
    found = by_name(output)
    assert list(found) == list(ROWS)
    written = dict(zip(ROWS, output.read_text().splitlines(), strict=True))
    for name, text in zip(ROWS, given.read_text().splitlines(), strict=True):
        if name not in ("needless", "program", "context"):
            assert written[name] == text
    for name, row in ROWS.items():
        assert {each: found[name][each] for each in row if each != "predicted_proof"} == {
            each: value for each, value in row.items() if each != "predicted_proof"
        }
        if name not in ("needless", "program", "context"):
            continue
        assert found[name]["proof_status"] == "completed"
        assert found[name]["farm"]["verdict"] == "proved"
        assert found[name]["mended"]["by"] == "tidy"
    assert "skip" not in found["needless"]["predicted_proof"]
    assert "skip" not in found["program"]["predicted_proof"]
    assert found["program"]["mended"]["predicted_proof"] == HELPED
    assert found["context"]["predicted_proof"].startswith(CONTEXT)
    assert "skip" not in found["context"]["predicted_proof"].removeprefix(CONTEXT)


def test_lines_are_repaired_below_their_own_statements(farm: Command, tmp_path: Path) -> None:
    given, output = made(tmp_path / "given.jsonl"), tmp_path / "repaired.jsonl"
    told = farm.json("mend", "--repair", given, "-o", output, "--tactic", "assumption", status=3)
    results = {each["name"]: each for each in told["lines"]}
    assert {name for name, each in results.items() if each["changes"]} == {"broken"}
    broken = results["broken"]
    assert (broken["before"]["reason"], broken["after"]["verdict"]) == ("error", "proved")
    assert "outside of the proofs" in results["definition"]["why"]
    assert results["misstated"]["before"]["reason"] == "bad_challenge"
    assert results["other"]["before"]["reason"] == "statement_mismatch"
    assert "something else than a proof" in results["disproof"]["why"]
    found = by_name(output)["broken"]
    assert found["generation"] == ROWS["broken"]["generation"]
    assert "nope" not in found["predicted_proof"]
    # A later submit judges the new program, as it is.
    run = farm.json("submit", output, status=3)["run"]
    assert by_name(output)["broken"]["farm"]["verdict"] == "proved"
    assert farm.json("report", run, status=3)["total"]["proved"] == 5


def test_a_sorry_in_place_of_what_fails_is_a_draft_and_no_proof(farm: Command, tmp_path: Path) -> None:
    given, output = made(tmp_path / "given.jsonl", "hopeless"), tmp_path / "drafts.jsonl"
    said = farm("mend", "--repair", given, "-o", output, "--tactic", "assumption", "--sorry")
    assert said.returncode == 4
    assert "1 of 1 line changed; 0 proved before, 0 after" in said.stderr
    (found,) = lines(output)
    assert (found["proof_status"], found["farm"]["reason"]) == ("has_sorry", "has_sorry")
    assert "sorry" in found["predicted_proof"]


def test_all_lines_proved_is_status_0_and_an_output_is_a_manifest_to_tidy_again(
    farm: Command, tmp_path: Path
) -> None:
    given, first, second = made(tmp_path / "a.jsonl", "needless"), tmp_path / "b.jsonl", tmp_path / "c.jsonl"
    assert farm("mend", "--tidy", given, "-o", first).returncode == 0
    told = farm.json("mend", "--tidy", first, "-o", second)
    assert [each["changes"] for each in told["lines"]] == [0]
    assert lines(second) == lines(first)


@pytest.mark.parametrize(
    ("goal", "output", "says"),
    [
        ("--minimize", "out.jsonl", "farm show --line 12 --program"),
        ("--tidy", "out.lean", "ends in .jsonl"),
        ("--tidy", "given.jsonl", "another file"),
        ("--repair", "none/out.jsonl", "no folder"),
    ],
)
def test_bad_usage_writes_nothing(farm: Command, tmp_path: Path, goal: str, output: str, says: str) -> None:
    given = made(tmp_path / "given.jsonl", "needed")
    before = given.read_bytes()
    ended = farm("mend", goal, given, "-o", tmp_path / output)
    assert (ended.returncode, says in ended.stderr) == (2, True), ended.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["given.jsonl"]
    assert given.read_bytes() == before


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (
            '{"name": "x", "generation": 7, "formal_statement": "theorem t : True := by"}',
            'field "generation"',
        ),
        ('{"name": "x"', ":2:"),
        (
            '{"generation": "", "formal_statement": "theorem t : True := by", "environment": "moon"}',
            "no environment is called 'moon'",
        ),
    ],
)
def test_a_bad_line_is_named_before_anything_is_judged(
    farm: Command, tmp_path: Path, row: str, says: str
) -> None:
    given, output = made(tmp_path / "given.jsonl", "needless"), tmp_path / "out.jsonl"
    given.write_text(given.read_text() + row + "\n")
    ended = farm("mend", "--tidy", given, "-o", output)
    assert (ended.returncode, says in ended.stderr) == (2, True), ended.stderr
    assert not output.exists()


def test_an_interrupted_command_waits_for_no_line_that_has_not_begun(farm: Command, tmp_path: Path) -> None:
    rows = ({"name": f"n{number}", **ROWS["needless"]} for number in range(3000))
    given, output = write(tmp_path / "many.jsonl", *rows), tmp_path / "out.jsonl"
    with farm.started(tmp_path / "run", "mend", "--tidy", given, "-o", output) as running:
        eventually(lambda: len(family(running.process.pid)) > 2)
        running.process.send_signal(signal.SIGINT)
        assert running.ended(seconds=15 * PATIENCE) == 130
    assert not output.exists()
