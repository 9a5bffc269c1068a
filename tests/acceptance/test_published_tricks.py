"""The corpus as files: the farm, given the files as any judge is, judges them as their list expects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.exploits import publishing
from farm_workers.exploits.publishing import ACCEPT, DECLINE, REJECT

from farm.assembly.challenge import Challenge
from farm.judging.assurance import Assurance
from farm.judging.job import Check
from farm.judging.verdict import Outcome, judge
from farm.limits import Limits
from farm.task import Task

#: One in so many is judged here; `test_corpus` judges all of them from their source.
STEP = 23


@pytest.fixture(scope="module")
def sample(core: LeanEnvironment, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Path, Any]]:
    """Cases with their folders: one in some, and one of each word that is judged without reaching limits."""
    folder = tmp_path_factory.mktemp("published") / "tricks"
    publishing.write(folder, core.header)
    found = [json.loads(line) for line in (folder / publishing.LIST).read_text().splitlines()]
    chosen = found[::STEP]
    for word in (ACCEPT, REJECT, DECLINE):
        chosen.append(next(each for each in found if each["expected"] == word and not each["before"]))
    return [(folder / each["folder"], each) for each in chosen]


def test_the_farm_judges_the_files_as_their_list_expects(
    checker: Checker, core: LeanEnvironment, sample: list[tuple[Path, Any]]
) -> None:
    assert {each["expected"] for _, each in sample} == {ACCEPT, REJECT, DECLINE}
    wrong = []
    for folder, case in sample:
        outcomes = {_outcome(checker, core, folder, case, name) for name in _submissions(folder)}
        is_right = {
            ACCEPT: Outcome.PROVED in outcomes,
            REJECT: outcomes == {Outcome.REJECTED},
            DECLINE: Outcome.PROVED not in outcomes,
        }[case["expected"]]
        if not is_right:
            wrong.append((case["name"], case["expected"], outcomes))
    assert wrong == []


def _submissions(folder: Path) -> list[str]:
    return ["Submission.lean", *(file.name for file in folder.glob("Other*.lean"))]


def _outcome(checker: Checker, core: LeanEnvironment, folder: Path, case: Any, name: str) -> Outcome:
    stated = folder / "Challenge.lean"
    challenge = Challenge(program=stated.read_text(), name=case["theorem"]) if stated.exists() else None
    check = Check.of(
        program=(folder / name).read_text(),
        limits=Limits(wall_seconds=case["seconds"]),
        challenge=challenge,
        assurance=Assurance(),
        task=Task.of(case["task"] or {}),
    )
    return judge(checker.check(check, core)).outcome
