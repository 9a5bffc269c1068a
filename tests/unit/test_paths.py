"""What is told without the folders of this server: texts, output and reports."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.environments.paths import Hiding

from farm.judging.audit import Replay, against
from farm.judging.report import Answer, Execution, Message, Report


@pytest.fixture
def environment(tmp_path: Path) -> LeanEnvironment:
    """An environment whose toolchain is reached by a link, in folders with names that JSON escapes."""
    lean = tmp_path / "tööl chain" / "bin" / "lean"
    lean.parent.mkdir(parents=True)
    lean.touch()
    (tmp_path / "linked").symlink_to(lean.parent.parent)
    (tmp_path / "library").mkdir()
    return LeanEnvironment(
        name="e",
        digest="d",
        toolchain="",
        lean=(str(tmp_path / "linked" / "bin" / "lean"), "-DmaxHeartbeats=1"),
        lean_path=(str(tmp_path / "library"),),
        header="/- a comment -/ import Init",
    )


@pytest.fixture
def hidden(environment: LeanEnvironment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hiding:
    monkeypatch.setenv("FARM_HOME", str(tmp_path / "home"))
    return Hiding(environment)


def places(folder: Path) -> list[str]:
    """Return the folders of this server that nobody is told of."""
    names = ("home", "linked", "tööl chain", "tööl chain/bin", "library")
    return [*(str(folder / name) for name in names), sys.prefix, sys.base_prefix, str(Path.home())]


SENTENCES = (
    "object file '{}/A.olean' of module A does not exist",
    "in the search path entries:\n{}\n{}/lib",
    "{}",
    "LEAN_PATH={}:x",
    "file://{}/x",
    "see {}.",
    "-L{}",
)


@pytest.mark.parametrize("sentence", SENTENCES)
def test_no_folder_of_the_server_stays_in_a_text(hidden: Hiding, tmp_path: Path, sentence: str) -> None:
    for place in places(tmp_path):
        text = sentence.replace("{}", place)
        assert place not in hidden.text(text)
        assert place not in hidden.output(text.encode()).decode()
        escaped = json.loads(hidden.output(json.dumps({"data": text}).encode()))
        assert place not in escaped["data"]


def test_the_words_say_what_stood_there(hidden: Hiding, tmp_path: Path) -> None:
    assert hidden.text(f"{tmp_path}/library/A.olean") == "<environment>/A.olean"
    assert hidden.text(f"{tmp_path}/home/work/x") == "<farm>/work/x"
    assert hidden.text(f"{sys.prefix}/bin/python") == "<python>/bin/python"


@pytest.mark.parametrize("text", ["theorem t : 1 / 2 = 0", "a /- comment -/ b", "/", "//", "x/y"])
def test_other_texts_stay_as_they_are(hidden: Hiding, text: str) -> None:
    assert hidden.text(text) == text
    assert hidden.output(text.encode()) == text.encode()


def test_a_longer_name_is_another_folder(hidden: Hiding, tmp_path: Path) -> None:
    assert hidden.text(f"{tmp_path}/library-2/A") == f"{tmp_path}/library-2/A"


def test_a_report_is_told_without_them_wherever_they_stand(hidden: Hiding, tmp_path: Path) -> None:
    place = os.fspath(tmp_path / "library")
    message = Message(severity="error", kind="", text=place, line=1, column=0, end_line=None, end_column=None)
    report = Report(
        run=Execution(box_error=f"OSError: {place}"),
        answer=Answer(messages=(message,), foreign_output=place),
        environment_error=place,
        challenge_error=place,
        audit=replace(against("axiom", place), replay=Replay(accepted=False, said=place)),
    )
    assert place not in repr(hidden.report(report))
    assert hidden.report(Report()) == Report()
