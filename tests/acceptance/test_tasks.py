"""Tasks: what lines and batches ask of a proof beyond the usual, from manifests and over HTTP."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from farm.client import Client, Refused
from tests.commands import HEADER, Command, write
from tests.processes import PATIENCE
from tests.trainer_service import Served, service

#: Needs choice and nothing else.
STATEMENT = "theorem t (p : Prop) : Nonempty (Nonempty p → p) := by"
CLASSICAL = "exact ⟨fun h => Classical.choice h⟩"
PLAIN = "exact ⟨fun ⟨h⟩ => h⟩"
ROW = {"header": HEADER, "formal_statement": STATEMENT}


@pytest.fixture(scope="module")
def served(farm: Command, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with service(farm, tmp_path_factory.mktemp("serve")) as found:
        yield found


def submitted(farm: Command, manifest: Path, rows: list[dict[str, object]], *flags: str) -> list[dict]:
    """Return the lines of a manifest after a submit."""
    manifest.write_text("".join(json.dumps(each) + "\n" for each in rows))
    said = farm("submit", manifest, "--wait", *flags)
    assert said.returncode == 0, said.stderr
    return [json.loads(each) for each in manifest.read_text().splitlines()]


def test_a_line_names_the_axioms_that_its_proof_may_rest_on(farm: Command, tmp_path: Path) -> None:
    asked = [None, ["Classical.choice"], ["propext"], []]
    answers = [CLASSICAL, PLAIN]
    rows = [
        {**ROW, "generation": answer} | ({} if axioms is None else {"axioms": axioms})
        for axioms in asked
        for answer in answers
    ]
    told = submitted(farm, tmp_path / "m.jsonl", rows)
    statuses = [each["proof_status"] for each in told]
    assert [each == "completed" for each in statuses] == [*[True] * 4, False, True, False, True]
    assert {each["farm"]["reason"] for each in told if each["proof_status"] == "error"} == {"axiom"}
    assert [each["farm"]["audit"]["axioms"] for each in told[:2]] == [["Classical.choice"], []]
    again = submitted(farm, tmp_path / "m.jsonl", told)
    assert [each["proof_status"] for each in again] == statuses


#: Impossible values of `axioms`, and the problem that the message names.
IMPOSSIBLE = (
    ("propext", "not a list"),
    ([1], "not a list"),
    (["a,b"], "not a name"),
    (["sorryAx"], "everything"),
)


def test_impossible_axioms_are_refused_with_their_lines(farm: Command, tmp_path: Path) -> None:
    manifest = tmp_path / "m.jsonl"
    rows = [{**ROW, "generation": PLAIN, "axioms": axioms} for axioms, _ in IMPOSSIBLE]
    manifest.write_text("".join(json.dumps(each) + "\n" for each in rows))
    said = farm("submit", manifest)
    assert said.returncode == 2
    for number, (_, problem) in enumerate(IMPOSSIBLE, 1):
        assert re.search(rf'm.jsonl:{number}: field "axioms": [^\n]*{problem}', said.stderr), said.stderr


def test_items_and_batches_name_axioms(served: Served) -> None:
    item = {**ROW, "proof": CLASSICAL}
    options = served.options
    with Client(options["url"], token=options["token"], deadline=120 * PATIENCE) as client:
        of_items = client.check_all([item, {**item, "axioms": []}])
        of_batch = client.check_all([item, {**item, "axioms": ["Classical.choice"]}], axioms=["propext"])
    assert [each.verdict for each in of_items] == ["proved", "rejected"]
    assert [each.verdict for each in of_batch] == ["rejected", "proved"]


def test_lines_and_runs_forbid_together_and_lines_say_whether_choice_is_used(
    farm: Command, tmp_path: Path
) -> None:
    manifest = tmp_path / "m.jsonl"
    rows = [
        {**ROW, "generation": CLASSICAL},
        {**ROW, "generation": PLAIN, "forbid": []},
        {**ROW, "generation": PLAIN, "forbid": ["exact"]},
        {**ROW, "generation": "apply Nonempty.intro (fun ⟨h⟩ => h)", "forbid": ["exact", "Classical.em"]},
    ]
    told = [each["farm"] for each in submitted(farm, manifest, rows, "--forbid", "Classical.choice")]
    reasons = ["forbidden", "ok", "forbidden", "ok"]
    assert [each["reason"] for each in told] == reasons
    assert [each["uses_choice"] for each in told] == [None, False, None, False]
    assert "`exact`" in told[2]["detail"]
    refused = farm("submit", manifest, "--tier", "lean")
    assert refused.returncode == 2
    assert 'm.jsonl:3: field "forbid": the tier lean' in refused.stderr, refused.stderr
    unknown = write(tmp_path / "n.jsonl", {**ROW, "generation": PLAIN, "forbid": ["nothing.at.all"]})
    assert farm("submit", unknown, "--wait").returncode == 3
    (line,) = map(json.loads, unknown.read_text().splitlines())
    assert line["farm"]["reason"] == "bad_challenge"
    assert "`nothing.at.all`" in line["farm"]["detail"]


def test_items_and_batches_forbid_together(served: Served) -> None:
    item, options = {**ROW, "proof": CLASSICAL}, served.options
    with Client(options["url"], token=options["token"], deadline=120 * PATIENCE) as client:
        found = client.check_all([item, {**item, "forbid": ["exact"]}], forbid=["simp"])
        assert [each.reason for each in found] == ["ok", "forbidden"]
        assert [each.provenance and each.provenance.uses_choice for each in found] == [True, None]
        (found_by_name,) = client.check_all([item], forbid=["_root_.Classical.choice"])
        assert found_by_name.reason == "forbidden"
        with pytest.raises(Refused, match="forbid"):
            client.check_all([item], forbid=["simp"], tier="lean")
