"""Two versions of Lean on one machine: one worker serves both, each line is judged by the one it names."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from farm_workers.environments.lean_environment import LeanEnvironment

from tests.commands import HEADER, PROVED, WRONG, Running, entry, lines, verdicts, write
from tests.farms import Quiet, a_worker
from tests.processes import eventually
from tests.toolchains import script, toolchain

VERSION = "4.34.0"
SAYS = f"Lean (version {VERSION}, x86_64-unknown-linux-gnu, commit 0123456789ab, Release)"
#: The module that only the older Lean has.
OLDER = HEADER.replace("Core", "Older")


@pytest.fixture
def older(core: LeanEnvironment, tmp_path: Path) -> Path:
    """An environments file with an older Lean: the embedded one by another version, with one more module."""
    made = toolchain(tmp_path / "toolchain", core)
    real = made.lean.rename(made.lean.with_name("real"))
    script(made.lean, f"test \"$1\" != --version || exec echo '{SAYS}'", f"exec '{real}' \"$@\"")
    modules = tmp_path / "modules"
    shutil.copytree(core.lean_path[0], modules)
    shutil.copyfile(modules / "Core.olean", modules / "Older.olean")
    file = tmp_path / "farm.toml"
    # What was compiled by another Lean than it says cannot be audited.
    lean = (f'lean_path = ["{modules}"]', r'header = "prelude\nimport Core"', "audit = false")
    file.write_text(made.table("older", *lean))
    return file


@pytest.fixture
def worker(quiet: Quiet, older: Path, tmp_path: Path) -> Iterator[Running]:
    """A worker that serves both."""
    with a_worker(quiet, tmp_path / "worker", FARM_ENVIRONMENTS=str(older)) as found:
        served = "SELECT count(*) FROM environments WHERE seen_at IS NOT NULL"
        eventually(lambda: quiet.ask(served) == [2], seconds=60)
        yield found


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    """A manifest in which each of two programs is to be judged by both; one is only right for the older."""
    only_older = {"predicted_proof": f"{OLDER}theorem t2 : True := True.intro\n"}
    asked = [
        entry(PROVED, number, environment=environment) | program
        for number, program in ((1, {}), (2, only_older))
        for environment in ("core", "older")
    ]
    return write(tmp_path / "both.jsonl", *asked)


@pytest.mark.usefixtures("worker")
def test_each_line_is_judged_by_the_lean_it_names_and_no_verdict_is_shared_between_them(
    quiet: Quiet, manifest: Path
) -> None:
    for submitted in ("batch", "interactive"):
        words = "--priority", submitted, "--tier", "lean", "--policy", "imports=report"
        said = quiet.farm("submit", manifest, *words)
        assert said.returncode == 0, said.stderr
        assert verdicts(manifest) == [PROVED, PROVED, WRONG, PROVED], submitted
        told = [line["farm"] for line in lines(manifest)]
        assert [farm["environment"] for farm in told] == ["core", "older"] * 2
        assert [VERSION in farm["toolchain"] for farm in told] == [False, True] * 2
        first, second = told[0]["environment_digest"], told[1]["environment_digest"]
        assert first != second
        assert [farm["environment_digest"] for farm in told] == [first, second] * 2
    # The second run had the verdicts of the first, each from the Lean that its line names.
    assert quiet.ask("SELECT environment FROM checks ORDER BY id") == ["core", "older"] * 2
    assert quiet.rows()["attempts"] == 4


@pytest.mark.usefixtures("worker")
def test_both_are_shown_with_their_versions(quiet: Quiet) -> None:
    listed = {each["name"]: each for each in quiet.farm.json("environments")["environments"]}
    assert sorted(listed) == ["core", "older"]
    assert all(each["served"] for each in listed.values())
    assert [VERSION in listed[name]["toolchain"] for name in ("core", "older")] == [False, True]
    assert len({each["digest"] for each in listed.values()}) == 2
    shown = quiet.farm("environments").stdout
    assert all(words in shown for words in ("core", "older", VERSION, listed["core"]["toolchain"]))
