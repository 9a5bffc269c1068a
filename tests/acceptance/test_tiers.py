"""How sure a proved has to be, as users ask for it: the tiers and the second look, through a whole farm."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import Command, lines, write
from test_corpus import MISCALLED

HEADER = "prelude\nimport Core\n"
STATEMENT = "theorem t : 1 = 1 := by sorry"
HONEST = {
    "name": "honest",
    "header": HEADER,
    "formal_statement": STATEMENT,
    "generation": "```lean\ntheorem t : 1 = 1 := by\n  exact rfl\n```",
}
CHEAT = {
    "name": "cheat",
    "header": HEADER,
    "formal_statement": "theorem t : 1 = 2 := by sorry",
    "predicted_proof": f"{HEADER}theorem t : 1 = 1 := rfl\n",
}
WRONG = HONEST | {"name": "wrong", "generation": "```lean\ntheorem t : 1 = 1 := by\n  exact nothing\n```"}


def test_what_is_proved_is_looked_at_once_more_and_the_disagreements_are_counted(
    farm: Command, tmp_path: Path
) -> None:
    path = write(tmp_path / "a.jsonl", HONEST, CHEAT, WRONG)
    said = farm("submit", path, "--confirm", "strict")
    assert said.returncode == 0, said.stderr
    honest, cheat, wrong = (line["farm"] for line in lines(path))
    assert (honest["reason"], honest["accepted_first"], honest["confirm"]) == ("ok", True, "strict")
    assert honest["audit"]["accepted"] is True
    assert (cheat["reason"], cheat["accepted_first"]) == ("statement_mismatch", True)
    assert (wrong["reason"], wrong["accepted_first"], wrong["audit"]) == ("error", False, None)
    assert (
        "2 lines looked proved and were looked at once more: 1 are not (1 statement_mismatch)" in said.stdout
    )
    shown = json.loads(farm("status", "--json").stdout)
    assert (shown["confirmed"], shown["overruled"]) == (1, {"statement_mismatch": 1})


def test_gold_has_the_kernel_replay_what_is_proved(farm: Command, tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", HONEST, CHEAT, WRONG)
    assert farm("submit", path, "--tier", "gold").returncode == 0
    honest, cheat, wrong = (line["farm"] for line in lines(path))
    assert honest["reason"] == "ok"
    assert honest["audit"]["replay"]["accepted"] is True
    assert honest["tier"] == "gold"
    assert cheat["reason"] == "statement_mismatch"
    assert wrong["reason"] == "error"


def test_a_line_without_a_statement_says_what_was_not_checked(farm: Command, tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", {"name": "t", "predicted_proof": CHEAT["predicted_proof"]})
    assert farm("submit", path).returncode == 0
    (line,) = lines(path)
    assert line["farm"]["verdict"] == "proved"
    assert line["farm"]["audit"]["accepted"] is None
    assert "formal_statement" in line["farm"]["audit"]["not_checked"][0]


def test_the_environments_tell_what_replays_proofs_there(farm: Command) -> None:
    (core,) = json.loads(farm("environments", "--json").stdout)["environments"]
    assert (core["checker"], core["advisories"]) == ("the farm's replay", [])


def test_a_machine_tests_itself(farm: Command) -> None:
    said = farm("selftest")
    assert said.returncode == 0, said.stderr
    assert "the canaries came out right" in said.stdout


def test_a_machine_tries_a_trick_of_every_class(farm: Command) -> None:
    said = farm("selftest", "--exploits", "--json")
    told = json.loads(said.stdout)
    assert told["wrong"] == []
    assert {each["case"] for each in told["unjudged"]} <= set(MISCALLED)
    assert told["tried"] + told["left"] > 100


@pytest.mark.parametrize("tier", ["fast", "strict", "gold"])
def test_one_program_is_checked_against_a_statement(farm: Command, tmp_path: Path, tier: str) -> None:
    asked, cheat = tmp_path / "asked.lean", tmp_path / "cheat.lean"
    asked.write_text(f"{HEADER}theorem t : 1 = 2 := by sorry\n")
    cheat.write_text(f"{HEADER}theorem t : 1 = 1 := rfl\n")
    said = farm("check", cheat, "--challenge", asked, "--tier", tier)
    assert said.returncode == 1
    assert "rejected (statement_mismatch)" in said.stdout
    same = farm("check", cheat, "--challenge", cheat, "--tier", tier, "--json")
    assert json.loads(same.stdout)["reason"] == "bad_challenge"  # nothing in it is left open
    asked.write_text(f"{HEADER}theorem t : 1 = 1 := by sorry\n")
    said = farm("check", cheat, "--challenge", asked, "--tier", tier)
    assert said.returncode == 0
    assert "audit: accepted t; axioms: none" in said.stdout


def test_a_tier_without_a_statement_and_a_challenge_without_a_theorem_are_refused(
    farm: Command, tmp_path: Path
) -> None:
    proof = tmp_path / "proof.lean"
    proof.write_text(f"{HEADER}theorem t : 1 = 1 := rfl\n")
    said = farm("check", proof, "--tier", "strict")
    assert (said.returncode, "--challenge" in said.stderr) == (2, True)
    (tmp_path / "header.lean").write_text(HEADER)
    said = farm("check", proof, "--challenge", tmp_path / "header.lean")
    assert (said.returncode, "no theorem" in said.stderr) == (2, True)
