"""Environments that are declared before a worker serves them: runs wait for them, and are told so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from farm_workers.environments.lean_environment import LeanEnvironment

from tests.commands import PROVED, entry, verdicts, write
from tests.farms import Quiet, a_decision, a_worker, wait_for_run
from tests.toolchains import toolchain

HEADER_LINE = r'header = "prelude\nimport Core"'


@pytest.fixture
def one(tmp_path: Path) -> Path:
    """A manifest of one line, which names an environment that nobody serves yet."""
    return write(tmp_path / "one.jsonl", entry(PROVED, 1, environment="later"))


def test_a_run_waits_for_a_declared_environment_and_its_first_worker_judges_it(
    quiet: Quiet, one: Path, core: LeanEnvironment, tmp_path: Path
) -> None:
    assert quiet.farm("environments", "declare", "later").returncode == 0
    said = quiet.farm("submit", one, "--no-wait", "--tier", "audit")
    assert said.returncode == 0, said.stderr
    assert "no worker serves later" in said.stderr
    assert "farm worker" in said.stderr
    file = tmp_path / "farm.toml"
    table = toolchain(tmp_path / "toolchain", core).table("later", f'lean_path = ["{core.lean_path[0]}"]')
    file.write_text(table + HEADER_LINE)
    with a_worker(quiet, tmp_path / "worker", FARM_ENVIRONMENTS=str(file)):
        wait_for_run(quiet.queries, one, "done", seconds=60)
    assert quiet.farm("export").returncode == 0
    assert verdicts(one) == [PROVED]
    assert quiet.ask("SELECT environment_digest FROM verdicts") != [""]


def test_a_name_that_was_neither_declared_nor_served_is_refused_with_those_there_are(
    quiet: Quiet, one: Path
) -> None:
    assert quiet.farm("environments", "declare", "later").returncode == 0
    write(one, entry(PROVED, 1, environment="latter"))
    said = quiet.farm("submit", one, "--no-wait")
    assert said.returncode == 2
    assert "no environment is called 'latter'" in said.stderr
    assert "core, later" in said.stderr
    assert quiet.rows() == {}


def test_declaring_what_is_served_changes_nothing_and_may_be_repeated(quiet: Quiet) -> None:
    row = "SELECT environments::text FROM environments ORDER BY name"
    before = quiet.ask(row)
    assert quiet.farm("environments", "declare", "core").returncode == 0
    assert quiet.ask(row) == before
    for _ in range(2):
        assert quiet.farm("environments", "declare", "later", "--toolchain", "4.22.0").returncode == 0
    assert quiet.ask("SELECT toolchain FROM environments WHERE name = 'later'") == ["4.22.0"]


def test_a_declared_environment_is_listed_as_such(quiet: Quiet) -> None:
    assert quiet.farm("environments", "declare", "later").returncode == 0
    assert "declared, never served" in quiet.farm("environments").stdout
    listed = {each["name"]: each for each in quiet.farm.json("environments")["environments"]}
    assert (listed["later"]["declared"], listed["later"]["served"]) == (True, False)
    assert (listed["core"]["declared"], listed["later"]["silent_seconds"]) == (False, None)


def test_known_holes_of_a_declared_lean_are_told_when_a_run_is_submitted(quiet: Quiet, one: Path) -> None:
    assert quiet.farm("environments", "declare", "later", "--toolchain", "4.9.0").returncode == 0
    said = quiet.farm("submit", one, "--no-wait")
    assert said.returncode == 2
    assert "known holes" in said.stderr


@pytest.mark.parametrize("name", ["", " ", "a\nb"])
def test_a_name_that_no_line_could_give_is_refused(quiet: Quiet, name: str) -> None:
    said = quiet.farm("environments", "declare", name)
    assert (said.returncode, said.stdout) == (2, "")
    assert quiet.ask("SELECT name FROM environments") == ["core"]


def test_lines_that_ask_for_a_tier_which_the_first_worker_does_not_give_wait_and_are_told_so(
    quiet: Quiet, one: Path, core: LeanEnvironment, tmp_path: Path
) -> None:
    assert quiet.farm("environments", "declare", "later").returncode == 0
    run_id = quiet.farm.json("submit", one, "--no-wait")["run"]
    path = write(tmp_path / "lean.jsonl", entry(PROVED, 2, environment="later"))
    assert "only" not in quiet.farm("status", run_id).stderr
    keys = f'lean_path = ["{core.lean_path[0]}"]\naudit = false'
    file = tmp_path / "farm.toml"
    file.write_text(toolchain(tmp_path / "toolchain", core).table("later", keys) + HEADER_LINE)
    with a_worker(quiet, tmp_path / "worker", FARM_ENVIRONMENTS=str(file)):
        # It takes what it can do, past what it cannot.
        assert quiet.farm("submit", path, "--tier", "lean").returncode == 0
        assert verdicts(path) == [PROVED]
        said = quiet.farm("status", run_id)
    assert "1 line asks for the tier kernel, but the workers of later give only lean" in said.stderr
    assert f"farm cancel {run_id}" in said.stderr
    assert quiet.queries.tally(run_id).statuses == {"queued": 1}
    assert quiet.queries.attempts(run_id, 0, 1) == []


def test_proofs_of_a_kernel_with_known_holes_are_counted_where_nothing_was_known_of_it_at_the_submit(
    quiet: Quiet, one: Path
) -> None:
    assert quiet.farm("environments", "declare", "later").returncode == 0
    run_id = quiet.farm.json("submit", one, "--no-wait")["run"]
    assert quiet.farm.json("status", run_id)["known_holes"] == {}
    (claim,) = quiet.store.claim(["later"], worker="w", lease_seconds=60)
    assert quiet.store.record([(claim, replace(a_decision(), toolchain="4.9.0"))]).proved
    said = quiet.farm("status", run_id)
    assert "Of the proved lines, 1 line: the kernel of 4.9.0 has known holes (" in said.stdout
    assert quiet.farm.json("status", run_id)["known_holes"] == {"4.9.0": 1}
