"""The examples through the whole farm: what a newcomer sees first."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.commands import Command, lines

EXAMPLES = Path(__file__).parents[2] / "examples"
WRITTEN = {"predicted_proof", "proof_status", "farm"}


@dataclass(frozen=True)
class Judged:
    """The quickstart after one submit: the file as it is now, and what the command said."""

    path: Path
    said: subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def quickstart(farm: Command, tmp_path_factory: pytest.TempPathFactory) -> Judged:
    path = tmp_path_factory.mktemp("quickstart") / "quickstart.jsonl"
    shutil.copy(EXAMPLES / "quickstart.jsonl", path)
    return Judged(path, farm("submit", path, "--memory-mib", 512))


def found(path: Path) -> list[dict[str, str]]:
    return [
        {
            "name": line["name"],
            "verdict": line["farm"]["verdict"],
            "reason": line["farm"]["reason"],
            "proof_status": line["proof_status"],
        }
        for line in lines(path)
    ]


@pytest.mark.newcomer
def test_a_first_submit_in_an_empty_home_sets_everything_up_and_judges(
    first_submit: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    _, said = first_submit
    assert said.returncode == 0, said.stderr
    assert "1 of 1 line judged" in said.stdout


@pytest.mark.newcomer
def test_the_quickstart_gets_exactly_the_verdicts_listed_beside_it(quickstart: Judged) -> None:
    assert quickstart.said.returncode == 0, quickstart.said.stderr
    assert found(quickstart.path) == lines(EXAMPLES / "quickstart.expected.jsonl")


def test_the_quickstart_gives_every_verdict_but_a_failure_of_the_farm(quickstart: Judged) -> None:
    given = {line["verdict"] for line in found(quickstart.path)}
    assert given == {"proved", "rejected", "timeout", "memory_limit"}


def test_every_other_field_and_the_order_of_keys_stay_as_they_were(quickstart: Judged) -> None:
    for before, after in zip(lines(EXAMPLES / "quickstart.jsonl"), lines(quickstart.path), strict=True):
        assert {k: v for k, v in before.items() if k not in WRITTEN} == {
            k: v for k, v in after.items() if k not in WRITTEN
        }
        assert list(after) == [*before, *(k for k in after if k not in before)]


def test_non_ascii_text_stays_written_as_the_line_had_it(quickstart: Judged) -> None:
    before = (EXAMPLES / "quickstart.jsonl").read_text().splitlines()
    after = quickstart.path.read_text().splitlines()
    for old, new in zip(before, after, strict=True):
        assert new.startswith(old[:-1].partition('"predicted_proof"')[0].rstrip(", "))


def test_every_line_says_what_judged_it(quickstart: Judged) -> None:
    for line in lines(quickstart.path):
        farm = line["farm"]
        assert farm["environment"] == "core"
        assert farm["profile"] == "farm"
        assert len(farm["program_sha256"]) == 64
        assert farm["run_id"] in quickstart.said.stderr
        if farm["reason"] != "invalid_text":
            assert len(farm["environment_digest"]) == 64
            assert "4.35.0" in farm["toolchain"]
            assert (farm["wall_seconds"] > 0) == (farm["reason"] != "policy")
            assert farm["attempts"] == 1


def test_messages_point_into_the_answer_of_the_model(quickstart: Judged) -> None:
    mapped = 0
    for line in lines(quickstart.path):
        for message in line["farm"]["messages"]:
            if "in" in message:
                place = message["in"]
                assert 1 <= place["line"] <= len(line[place["field"]].split("\n"))
                mapped += place["field"] == "generation"
    assert mapped


def test_the_summary_names_each_verdict_with_its_number(quickstart: Judged) -> None:
    verdicts = [(line["verdict"], line["reason"]) for line in found(quickstart.path)]
    for verdict, reason in set(verdicts):
        row = next(r for r in quickstart.said.stdout.splitlines() if verdict in r and reason in r)
        assert f" {verdicts.count((verdict, reason))} " in row
    assert f"{len(verdicts)} of {len(verdicts)} lines judged" in quickstart.said.stdout


def test_submitting_an_exported_file_again_uses_its_programs_and_gives_the_same(
    farm: Command, quickstart: Judged, tmp_path: Path
) -> None:
    again = tmp_path / "again.jsonl"
    shutil.copy(quickstart.path, again)
    said = farm("submit", again, "--memory-mib", 512)
    assert said.returncode == 0, said.stderr
    assert found(again) == found(quickstart.path)
    proofs = [[line["predicted_proof"] for line in lines(path)] for path in (quickstart.path, again)]
    assert proofs[0] == proofs[1]
    runs = [{line["farm"]["run_id"] for line in lines(path)} for path in (quickstart.path, again)]
    assert runs[0].isdisjoint(runs[1])


def test_the_expected_verdicts_name_the_lines_of_the_quickstart_in_their_order() -> None:
    names = [
        [json.loads(line)["name"] for line in (EXAMPLES / file).read_text().splitlines()]
        for file in ("quickstart.jsonl", "quickstart.expected.jsonl")
    ]
    assert names[0] == names[1]
    assert len(names[0]) >= 30
