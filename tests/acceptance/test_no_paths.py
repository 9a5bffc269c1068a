"""What Lean says to clients names no folder of this server, however Lean is run."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import LeanEnvironment

from farm.judging.job import Check
from farm.judging.report import Report
from farm.judging.verdict import judge
from tests.commands import Command, lines, write

WAYS = ("forked", "cold")
HEADER = "prelude\nimport Core\n"


def _removed(module: Path) -> None:
    module.unlink()


def _cut(module: Path) -> None:
    os.truncate(module, 100)


def _folder(module: Path) -> None:
    module.unlink()
    module.mkdir()


def _nothing(_module: Path) -> None:
    pass


#: What becomes of the library's module, and the program that is checked then.
CASES = {
    "an import of an unknown module": (_nothing, f"{HEADER}import No.Such\ntheorem t : True := True.intro"),
    "an import of an unknown part": (_nothing, f"{HEADER}import Core.Such\ntheorem t : True := True.intro"),
    "an object file that is gone": (_removed, f"{HEADER}theorem t : True := True.intro"),
    "an object file that is cut": (_cut, f"{HEADER}theorem t : True := True.intro"),
    "a folder in place of an object file": (_folder, f"{HEADER}theorem t : True := True.intro"),
    "an error": (_nothing, f"{HEADER}theorem t : True := False"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("harm", "program"), CASES.values(), ids=CASES)
def test_no_report_names_a_folder_of_the_server(
    checker: Checker,
    core: LeanEnvironment,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    harm: Callable[[Path], None],
    program: str,
    way: str,
) -> None:
    monkeypatch.setenv("FARM_HOME", str(tmp_path))
    (library,) = map(Path, core.lean_path)
    own = tmp_path / "library"
    shutil.copytree(library, own)
    for module in own.rglob("Core.olean"):
        harm(module)
    environment = dataclasses.replace(core, lean_path=(str(own),), digest=f"{program} {harm.__name__} {way}")
    report = checker.check(Check.of(program=program), environment, way=way)
    assert _places(report, [tmp_path, own, sys.prefix, sys.base_prefix, *environment.folders]) == []
    assert judge(report).detail


def _places(report: Report, places: list[object]) -> list[str]:
    return [str(each) for each in places if str(each) in repr(report)]


def test_no_line_of_a_manifest_names_a_folder_of_the_server(farm: Command, tmp_path: Path) -> None:
    program = f"{HEADER}import No.Such\ntheorem t : True := True.intro\n"
    path = write(tmp_path / "a.jsonl", {"name": "t", "predicted_proof": program})
    said = farm("submit", path)
    assert said.returncode == 0, said.stderr
    (line,) = lines(path)
    assert line["farm"]["messages"] != []
    told = json.dumps(line["farm"]).encode().decode("unicode_escape")
    assert [each for each in (farm.settings["FARM_HOME"], sys.prefix, sys.base_prefix) if each in told] == []
