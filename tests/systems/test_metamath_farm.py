"""A whole farm with an environment of Metamath: lines are submitted, judged, shown and written back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from farm.embedded import down
from tests.commands import Command, lines, write

TABLE = """
[environments.demo]
kind = "metamath"
database = "/usr/share/metamath/databases/demo0.mm"
"""
STATED = "again $p |- t = t $= ? $."
#: The proof of the database's only theorem.
PROOF = """
    tt tze tpl tt weq tt tt weq tt a2 tt tze tpl tt weq tt tze tpl tt weq tt tt weq wim tt a2
    tt tze tpl tt tt a1 mp mp
"""


@pytest.fixture
def farm(tmp_path: Path, pair: str) -> Iterator[Command]:
    """The `farm` command with servers and a worker of its own, and the environment."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "farm.toml").write_text(TABLE)
    yield Command({"FARM_HOME": str(home), "FARM_SERVERS": pair, "FARM_CONCURRENCY": "2"})
    down(home)


def line(name: str, generation: str, statement: str = STATED) -> dict[str, object]:
    return {
        "name": name,
        "header": "",
        "formal_statement": statement,
        "generation": f"```metamath\n{generation}\n```",
        "environment": "demo",
    }


def test_lines_of_metamath_go_through_a_whole_farm(farm: Command, tmp_path: Path) -> None:
    manifest = write(
        tmp_path / "mini.jsonl",
        line("right", PROOF),
        line("again", PROOF),
        line("wrong", "tt tze"),
        line("gap", "?"),
        line("whole", f"again $p |- t = t $= {PROOF} $."),
    )

    submitted = farm("submit", manifest, seconds=300)

    assert submitted.returncode == 0, submitted.stderr
    told = [each["proof_status"] for each in lines(manifest)]
    assert told == ["completed", "completed", "error", "has_sorry", "completed"], lines(manifest)
    found = lines(manifest)[0]["farm"]
    assert found["detail"] == "The farm's verifier and metamath accepted the proof."
    assert found["statement"] == "compared"
    [run] = farm.json("status", "--runs")["runs"]
    shown = farm("show", run["run"])
    assert shown.returncode == 0, shown.stderr
    assert "Lean" not in shown.stdout
    environments = farm("environments")
    assert "demo0.mm" in environments.stdout
    assert "metamath" in environments.stdout
    tested = farm("selftest", "--environment", "demo", seconds=120)
    assert tested.returncode == 0, tested.stdout + tested.stderr


def test_a_statement_that_is_no_theorem_is_the_fault_of_its_line_alone(farm: Command, tmp_path: Path) -> None:
    manifest = write(
        tmp_path / "axiom.jsonl", line("right", PROOF), line("axiom", PROOF, "bad $a |- t = t $.")
    )

    submitted = farm("submit", manifest, seconds=300)

    assert submitted.returncode == 3, submitted.stderr
    right, axiom = (each["farm"] for each in lines(manifest))
    assert (right["verdict"], axiom["verdict"], axiom["reason"]) == ("proved", "judge_error", "bad_challenge")
    assert "$a, an axiom" in axiom["detail"]
    assert "write one block" in axiom["detail"]


def test_statements_of_metamath_that_its_database_does_not_read_are_listed(
    farm: Command, tmp_path: Path
) -> None:
    folder = tmp_path / "miniF2F" / "metamath" / "test"
    folder.mkdir(parents=True)
    (folder / "mathd-good.mm").write_text("${\n  mathd-good $p |- t = t $= ? $.\n$}\n")
    (folder / "mathd-bad.mm").write_text("${\n  mathd-bad $p |- t = foo $= ? $.\n$}\n")

    facts = farm.json(
        *("dataset", "minif2f", tmp_path / "miniF2F", "--system", "metamath", "--environment", "demo"),
        *("-o", tmp_path / "made.jsonl", "--check"),
        status=4,
    )

    [wrong] = facts["wrong"]
    assert (wrong["name"], wrong["reason"]) == ("mathd-bad", "bad_challenge")
    assert "'foo' is not declared" in wrong["detail"]
