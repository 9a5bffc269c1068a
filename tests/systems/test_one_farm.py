"""Lines of several proof systems in one manifest go through a whole farm, each to its own judge."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.commands import PROVED, WRONG, Command, entry, lines, verdicts, write

EXAMPLES = Path(__file__).parents[2] / "examples"
#: HOL Light takes a minute and a half to load.
LOADED = 540.0
TABLES = """
[environments.set]
kind = "metamath"
database = "/usr/share/metamath/databases/set.mm"

[environments.hol]
kind = "hol-light"
"""


@pytest.fixture
def farm(tmp_path: Path) -> Iterator[Command]:
    home = tmp_path / "home"
    home.mkdir()
    (home / "farm.toml").write_text(TABLES)
    found = Command({"FARM_HOME": str(home)})
    yield found
    found("down")


def examples(system: str, file: str, environment: str) -> list[dict[str, object]]:
    text = (EXAMPLES / system / file).read_text()
    return [{**json.loads(line), "environment": environment} for line in text.splitlines()]


@pytest.mark.timeout(900)
def test_every_line_is_judged_by_its_own_system(farm: Command, tmp_path: Path) -> None:
    metamath = examples("metamath", "mini.jsonl", "set")
    hol_light = examples("hol-light", "quickstart.jsonl", "hol")
    manifest = write(tmp_path / "mixed.jsonl", entry(PROVED, 1), *metamath, entry(WRONG, 2), *hol_light)

    said = farm("submit", manifest, seconds=LOADED)

    assert said.returncode == 3, said.stderr  # one term is none that can be proved
    found = verdicts(manifest)
    assert [found[0], found[6]] == [PROVED, WRONG]
    assert found[1:6] == [("proved", "ok")] * 3 + [("rejected", "error"), ("rejected", "has_sorry")]
    expected = (EXAMPLES / "hol-light" / "quickstart.expected.jsonl").read_text().splitlines()
    assert found[7:] == [(each["verdict"], each["reason"]) for each in map(json.loads, expected)]
    assert lines(manifest)[1]["proof_status"] == "completed"

    shown = farm("show", "--json")
    assert shown.returncode == 0, shown.stderr
    assert "Lean" not in json.dumps([json.loads(line) for line in shown.stdout.splitlines()][1:6])


def test_each_environment_is_served_when_it_is_ready(farm: Command, tmp_path: Path) -> None:
    manifest = write(tmp_path / "core.jsonl", entry(PROVED, 1))
    assert farm("submit", manifest).returncode == 0
    assert verdicts(manifest) == [PROVED]
    listed = {each["name"]: each for each in farm.json("environments")["environments"]}
    assert [each["state"] for each in listed["hol"]["pending"]] == ["starting"]
    assert listed["core"]["pending"] == []
    waiting = write(tmp_path / "hol.jsonl", *examples("hol-light", "quickstart.jsonl", "hol"))
    for command in (["submit", waiting, "--no-wait"], ["status"], ["environments"]):
        said = farm(*command)
        assert said.returncode == 0, said.stderr
        assert re.search(r"hol\b.*starting for \d+ s", said.stdout + said.stderr), (command, said)
    assert "hol: starting for" in farm("status", "--workers").stdout


def test_a_worker_refuses_what_is_not_whole(farm: Command, tmp_path: Path) -> None:
    home = Path(farm.settings["FARM_HOME"])
    (home / "farm.toml").write_text('[environments.mm]\nkind = "metamath"\ndatabase = "/nowhere.mm"\n')
    (told,) = json.loads(farm("environments", "--json").stdout)["environments"][1:]
    assert "/nowhere.mm is not the absolute path of a file" in told["problem"]
    manifest = write(tmp_path / "one.jsonl", *examples("metamath", "mini.jsonl", "mm"))
    assert farm("submit", manifest).returncode == 2
