"""A statement of several theorems, the first of which the dataset leaves open: what each reader is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands import HEADER, Command, lines, write
from tests.services import serving_http

#: The first part is false; the second follows from it.
LINE = {
    "name": "two parts",
    "header": HEADER,
    "formal_statement": "theorem part_a (p : Prop) : p := by sorry\n"
    "theorem part_b (p q : Prop) : p ∧ q := by",
    "generation": "```lean4\nexact ⟨part_a p, part_a q⟩\n```",
}
#: Both are proved, in a program of the submission's own.
WHOLE = {
    "name": "whole",
    "header": HEADER,
    "formal_statement": "theorem part_a (p : Prop) (h : p) : p := by sorry\ntheorem part_b : True := by",
    "predicted_proof": f"{HEADER}theorem part_a (p : Prop) (h : p) : p := h\n"
    "theorem part_b : True := part_a True True.intro\n",
}
TOLD = "The kernel accepted the module; rests on the sorry of part_a."


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("parts") / "parts.jsonl", LINE, WHOLE)


def test_a_proof_by_way_of_an_open_part_says_so_wherever_it_is_read(farm: Command, manifest: Path) -> None:
    facts = farm.json("submit", manifest)
    assert (facts["rests_on_sorry"], facts["trusts_the_compiler"]) == (1, 0)
    first, second = (line["farm"] for line in lines(manifest))
    assert (first["verdict"], first["detail"]) == ("proved", TOLD)
    assert (first["trusts"], first["rests_on_sorry_of"]) == (["a sorry of the dataset"], ["part_a"])
    assert (second["verdict"], second["trusts"], second["rests_on_sorry_of"]) == ("proved", [], [])
    assert (
        "Of the proved lines, 1 line: rests on a sorry of the dataset" in farm("status", facts["run"]).stdout
    )
    assert "rests on the sorry of part_a" in farm("show", facts["run"]).stdout
    report = farm.json("report", facts["run"])
    assert report["runs"][0]["rests_on_sorry"] == 1
    assert "rest on a sorry of the dataset" in farm("report", facts["run"]).stdout


def test_all_parts_can_be_required(farm: Command, manifest: Path) -> None:
    farm.json("submit", manifest, "--require-all-parts")
    first, second = (line["farm"] for line in lines(manifest))
    assert (first["reason"], first["detail"]) == (
        "has_sorry",
        "part_a contains a sorry: it is admitted, not proved.",
    )
    assert (second["reason"], second["rests_on_sorry_of"]) == ("ok", [])


def test_an_open_part_is_worth_no_reward_unless_it_is_accepted(farm: Command, tmp_path: Path) -> None:
    item = {key: value for key, value in LINE.items() if key != "name"}
    with serving_http(farm, tmp_path) as service:
        for accept, reward in (([], 0.0), (["native", "unchecked"], 0.0), (["sorry"], 1.0)):
            (found,) = service.post(item, accept=accept, wait_seconds=120)["items"]
            assert (found["verdict"], found["reward"], found["weaker"]) == ("proved", reward, ["sorry"])
            assert found["provenance"]["rests_on_sorry_of"] == ["part_a"]
        (found,) = service.post(item, require_all_parts=True, wait_seconds=120)["items"]
        assert (found["reason"], found["reward"]) == ("has_sorry", 0.0)
        refused = service.post(item, require_all_parts=True, tier="lean", status=422)
        assert "--require-all-parts" in str(refused)
