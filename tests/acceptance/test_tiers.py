"""How sure a proved has to be, as users ask for it: the tiers, through a whole farm."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands import Command, lines, write
from tests.farms import Quiet, a_worker

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


@pytest.mark.newcomer
def test_the_kernel_is_believed_alone_and_every_line_says_so(farm: Command, tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", HONEST, CHEAT, WRONG)
    said = farm("submit", path)
    assert said.returncode == 0, said.stderr
    assert "tier kernel" in said.stdout
    assert "unchecked" not in said.stdout
    honest, cheat, wrong = (line["farm"] for line in lines(path))
    assert [each["tier"] for each in (honest, cheat, wrong)] == ["kernel"] * 3
    assert (honest["reason"], honest["statement"], honest["trusts"]) == ("ok", "compared", [])
    assert honest["audit"]["replay"]["accepted"] is True
    assert len(honest["module_sha256"]) == 64
    assert cheat["reason"] == "statement_mismatch"
    assert (wrong["reason"], wrong["audit"], wrong["statement"]) == ("error", None, None)


@pytest.mark.newcomer
def test_the_weaker_tiers_ask_fewer_and_say_so(farm: Command, tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", HONEST, CHEAT)
    assert farm("submit", path, "--tier", "audit").returncode == 0
    honest, cheat = (line["farm"] for line in lines(path))
    assert (honest["reason"], honest["tier"], honest["audit"]["replay"]) == ("ok", "audit", None)
    assert cheat["reason"] == "statement_mismatch"
    said = farm("submit", path, "--tier", "lean", "--json")
    told = json.loads(said.stdout)
    assert (told["tier"], told["statement_unchecked"], told["trusts_the_compiler"]) == ("lean", 2, 0)
    honest, cheat = (line["farm"] for line in lines(path))
    assert [honest["reason"], cheat["reason"]] == ["ok", "ok"]  # a bare word is all that was asked for
    assert [honest["statement"], cheat["statement"]] == ["unchecked"] * 2


def test_what_is_proved_without_a_statement_is_sealed_and_called_unchecked(
    farm: Command, tmp_path: Path
) -> None:
    proof = f"{HEADER}theorem t : 1 = 1 := rfl\n"
    path = write(
        tmp_path / "a.jsonl",
        {"name": "t", "predicted_proof": proof},
        {"name": "nothing", "predicted_proof": f"{HEADER}def x : Nat := 1\n"},
    )
    said = farm("submit", path)
    assert said.returncode == 0, said.stderr
    assert "1 line: statement: unchecked." in said.stdout
    proved, nothing = (line["farm"] for line in lines(path))
    assert (proved["verdict"], proved["statement"]) == ("proved", "unchecked")
    assert "statement: unchecked" in proved["detail"]
    assert proved["audit"]["replay"]["accepted"] is True
    assert (nothing["reason"], "no theorem" in nothing["detail"]) == ("audit", True)


def test_a_text_is_read_and_decides_nothing(farm: Command, tmp_path: Path) -> None:
    axiom = HONEST["generation"].replace("theorem", "axiom unused : 1 = 2\ntheorem", 1)
    path = write(tmp_path / "a.jsonl", HONEST | {"generation": axiom})
    assert farm("submit", path).returncode == 0
    (line,) = (line["farm"] for line in lines(path))
    assert line["verdict"] == "proved"
    assert ("axiom", "report") in {(hit["rule"], hit["action"]) for hit in line["policy"]}
    assert farm("submit", path, "--tier", "lean").returncode == 0
    (line,) = (line["farm"] for line in lines(path))
    assert line["reason"] == "policy"


def test_the_environments_tell_what_replays_proofs_there(farm: Command) -> None:
    (core,) = json.loads(farm("environments", "--json").stdout)["environments"]
    assert (core["checker"], core["advisories"]) == ("the farm's replay", [])
    assert core["tiers"] == ["kernel", "audit", "lean"]


def test_a_machine_tests_itself(farm: Command) -> None:
    said = farm("selftest")
    assert said.returncode == 0, said.stderr
    assert "the known programs were judged correctly" in said.stdout


@pytest.mark.long
def test_a_machine_tries_a_trick_of_every_class(farm: Command) -> None:
    said = farm("selftest", "--exploits", "--json")
    told = json.loads(said.stdout)
    assert told["wrong"] == []
    assert told["unjudged"] == []
    assert told["tried"] + told["left"] > 100


def test_the_workers_of_a_farm_judge_known_programs_anew_each_time(quiet: Quiet, tmp_path: Path) -> None:
    with a_worker(quiet, tmp_path / "worker"):
        for _ in range(2):
            said = quiet.farm.json("selftest", "--served")
            assert (said["environment"], said["wrong"], said["unjudged"]) == ("core", [], [])
    assert quiet.ask("SELECT count(*) FROM verdicts WHERE attempt > 0") == [2 * said["tried"]] == [10]


def test_workers_that_cannot_judge_known_programs_rightly_are_told(farm: Command) -> None:
    said = farm("selftest", "--served", "--header", "prelude")
    assert (said.returncode, said.stdout) == (1, "")
    assert "the workers of core judged wrong: proved came out as error: " in said.stderr


def test_an_environment_that_nobody_serves_is_told_after_the_time_and_leaves_nothing_behind(
    quiet: Quiet,
) -> None:
    quiet.store.declare("mathlib")
    said = quiet.farm("selftest", "--served", "--environment", "mathlib", "--wait-seconds", 1)
    assert said.returncode == 1
    assert "no worker of mathlib judged 5 known programs within 1 s" in said.stderr
    assert quiet.ask("SELECT count(*) FROM checks WHERE status IN ('queued', 'running')") == [0]


def test_a_selftest_of_workers_refuses_what_is_unknown_and_what_only_a_machine_can_try(quiet: Quiet) -> None:
    said = quiet.farm("selftest", "--served", "--environment", "unknown")
    assert (said.returncode, "no environment is called 'unknown'" in said.stderr) == (2, True)
    said = quiet.farm("selftest", "--served", "--exploits")
    assert (said.returncode, "without --served" in said.stderr) == (2, True)


@pytest.mark.parametrize("tier", ["kernel", "audit"])
def test_one_program_is_checked_against_a_statement(farm: Command, tmp_path: Path, tier: str) -> None:
    asked, cheat = tmp_path / "asked.lean", tmp_path / "cheat.lean"
    asked.write_text(f"{HEADER}theorem t : 1 = 2 := by sorry\n")
    cheat.write_text(f"{HEADER}theorem t : 1 = 1 := rfl\n")
    said = farm("check", cheat, "--challenge", asked, "--tier", tier)
    assert said.returncode == 4
    assert "rejected (statement_mismatch)" in said.stdout
    same = farm("check", cheat, "--challenge", cheat, "--tier", tier, "--json")
    assert json.loads(same.stdout)["reason"] == "bad_challenge"  # nothing in it is left open
    asked.write_text(f"{HEADER}theorem t : 1 = 1 := by sorry\n")
    said = farm("check", cheat, "--challenge", asked, "--tier", tier)
    assert said.returncode == 0
    assert "audit: accepted t; axioms: none" in said.stdout


def test_a_required_statement_that_is_not_there_and_a_challenge_without_a_theorem_are_refused(
    farm: Command, tmp_path: Path
) -> None:
    proof = tmp_path / "proof.lean"
    proof.write_text(f"{HEADER}theorem t : 1 = 1 := rfl\n")
    said = farm("check", proof, "--require-statement")
    assert (said.returncode, "--challenge" in said.stderr) == (2, True)
    (tmp_path / "header.lean").write_text(HEADER)
    said = farm("check", proof, "--challenge", tmp_path / "header.lean")
    assert (said.returncode, "no theorem" in said.stderr) == (2, True)
