"""`farm report --leaderboard`: figures computed by hand, an equal page for equal runs, and clear refusals."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.commands import PROVED as PROGRAM
from tests.commands import entry, write
from tests.evaluations import PROVED, REJECTED, Given, give
from tests.farms import Quiet, submitted


def judged(quiet: Quiet, path: Path, verdicts: Sequence[Given | None], *, first: int = 0) -> str:
    """Submit two lines for each problem, from number `first` on, record their verdicts, return the run."""
    made = [
        entry(PROGRAM, 2 * first + number, name=f"p{first + number // 2}", given={"of": path.name})
        for number in range(len(verdicts))
    ]
    run_id = submitted(quiet.store, write(path, *made), share=False).run_id
    give(quiet.engine, run_id, verdicts)
    return run_id


@pytest.fixture
def weak(quiet: Quiet, tmp_path: Path) -> str:
    """Problems p0 to p2: the first is solved by one sample of two, the last is not over."""
    return judged(quiet, tmp_path / "weak.jsonl", [PROVED, REJECTED, REJECTED, REJECTED, REJECTED, None])


@pytest.fixture
def strong(quiet: Quiet, tmp_path: Path) -> str:
    """Problems p1 to p3, solved by each sample but one."""
    verdicts = [PROVED, REJECTED, PROVED, PROVED, PROVED, PROVED]
    return judged(quiet, tmp_path / "strong.jsonl", verdicts, first=1)


def test_runs_are_ranked_over_the_problems_that_all_have(
    quiet: Quiet, weak: str, strong: str, tmp_path: Path
) -> None:
    board = tmp_path / "board"
    models = ("--model", "Weak </td><script>", "--model", "Strong")
    told = quiet.farm.json("report", weak, strong, "--leaderboard", board, "-k", 1, *models)
    assert (told["k"], told["problems"]) == (1, 2)  # p1 and p2
    first, second = told["rows"]
    assert (first["rank"], first["model"], first["run"], first["solved"]) == (1, "Strong", strong, 2)
    assert (first["pass_at"]["value"], first["undecided"]) == (pytest.approx(0.75), 0)
    assert first["pass_at"]["low"] < 0.75 < first["pass_at"]["high"]
    assert (second["rank"], second["model"], second["run"]) == (2, "Weak </td><script>", weak)
    assert (second["solved"], second["undecided"], second["pass_at"]["value"]) == (0, 1, 0)
    assert second["pass_at"]["at_most"] == pytest.approx(0.25)  # p2 with its line as a proof: (0 + 1/2) / 2
    assert {row["other_problems"] for row in told["rows"]} == {1}
    assert [row["environments"] for row in told["rows"]] == [["core"], ["core"]]
    assert [(each["problem"], each["line"]) for each in first["proofs"]] == [("p1", 1), ("p2", 3)]
    assert json.loads((board / "leaderboard.json").read_text())["rows"] == told["rows"]
    page = (board / "index.html").read_text()
    assert "<script" not in page and "http" not in page.replace("http-equiv", "")
    assert f"Run {weak} has 1 problem without a proof" in page
    again = tmp_path / "again"
    assert (
        quiet.farm(
            "report", strong, weak, "--leaderboard", again, "-k", 1, *models[2:], *models[:2]
        ).returncode
        == 0
    )
    assert (again / "index.html").read_text() == page


def test_k_is_what_all_runs_have_samples_for(quiet: Quiet, strong: str, tmp_path: Path) -> None:
    told = quiet.farm.json("report", strong, "--leaderboard", tmp_path / "board")
    assert (told["k"], told["rows"][0]["pass_at"]["value"]) == (2, 1.0)
    assert told["rows"][0]["model"] == "strong.jsonl"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("zzzz",), "no run begins with"),
        (("STRONG", "STRONG"), "is given twice"),
        (("STRONG", "-k", "3"), "give at most 2"),
        (("STRONG", "--model", "A", "--model", "B"), "--model is given 2 times for 1 runs"),
        (("STRONG", "OTHER"), "no problem that all of them have"),
    ],
)
def test_bad_input_is_refused_and_writes_nothing(
    quiet: Quiet, strong: str, tmp_path: Path, arguments: Sequence[str], said: str
) -> None:
    if "OTHER" in arguments:
        runs = {"STRONG": strong, "OTHER": judged(quiet, tmp_path / "o.jsonl", [PROVED, PROVED], first=9)}
    else:
        runs = {"STRONG": strong}
    told = quiet.farm(
        "report", *(runs.get(each, each) for each in arguments), "--leaderboard", tmp_path / "board"
    )
    assert (told.returncode, said in told.stderr) == (2, True), told.stderr
    assert not (tmp_path / "board").exists() and not list(tmp_path.glob(".farm-*"))


def test_a_folder_that_is_there_is_left_alone(quiet: Quiet, strong: str, tmp_path: Path) -> None:
    told = quiet.farm("report", strong, "--leaderboard", tmp_path)
    assert told.returncode == 2 and "name a folder that is not" in told.stderr
