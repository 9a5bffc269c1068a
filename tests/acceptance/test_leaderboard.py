"""`farm leaderboard`: runs ranked on a page to publish, with bundles of their proofs."""

from __future__ import annotations

import json
from pathlib import Path

from tests.acceptance.test_report import HOSTILE, judged
from tests.commands import HEADER, WRONG, Command, entry, write
from tests.evaluations import PROVED as YES
from tests.evaluations import REJECTED
from tests.farms import Quiet


def test_runs_are_ranked_by_their_first_samples_as_computed_by_hand(quiet: Quiet, tmp_path: Path) -> None:
    best = judged(quiet, tmp_path / "a.jsonl", [YES, YES, YES, REJECTED, YES, REJECTED])
    worse = judged(quiet, tmp_path / "b.jsonl", [YES, REJECTED, REJECTED, REJECTED, REJECTED, REJECTED])
    board = tmp_path / "board"
    told = quiet.farm.json("leaderboard", f"{HOSTILE}={worse}", f"best={best}", "-o", board)
    first, second = told["rows"]
    assert (first["model"], first["run"], second["model"]) == ("best", best, HOSTILE)
    # Of three problems with two samples each: 1, 1/2 and 1/2 of them are proved, and 1/2, 0 and 0.
    assert (first["pass_at_1"], first["k"], first["pass_at_k"]) == (2 / 3, 2, 1.0)
    assert (second["pass_at_1"], second["pass_at_k"], second["solved"]) == (1 / 6, 1 / 3, 1)
    assert [each["problem"] for each in first["proofs"]] == ["p0", "p1", "p2"]
    assert [each["place"] for each in first["proofs"]] == [[0, 1], [0, 3], [0, 5]]
    (pair,) = told["pairs"]
    assert (pair["problems"], pair["only_first"], pair["only_second"], pair["p"]) == (3, 0, 2, 0.5)
    page = (board / "index.html").read_text()
    assert "<script" not in page
    assert page.index("best") < page.index("&lt;/style&gt;")
    assert json.loads((board / "leaderboard.json").read_text())["rows"] == told["rows"]
    assert sorted(each.name for each in board.iterdir()) == ["index.html", "leaderboard.json"]


PROOFS = {"one": "exact h", "two": "rfl"}


def test_each_solved_problem_has_a_bundle_and_a_link_to_it(farm: Command, tmp_path: Path) -> None:
    statement = {"header": HEADER, "formal_statement": "theorem t (p : Prop) (h : p) : p := by"}
    made = [
        {"name": "one", **statement, "generation": "exact h"},
        {**statement, "name": "two", "generation": "rfl"},
    ]
    run = farm.json("submit", write(tmp_path / "m.jsonl", *made))["run"]
    board = tmp_path / "board"
    told = farm.json("leaderboard", run, "-o", board, "--bundles", "--title", "Small")
    ((proof,),) = (each["proofs"] for each in told["rows"])
    assert proof["bundle"] == f"bundles/{run}-0-1"
    assert "theorem t" in (board / proof["bundle"] / "Challenge.lean").read_text()
    page = (board / "index.html").read_text()
    assert f'<a href="{proof["bundle"]}/README.md">one</a>' in page
    assert "<title>Small</title>" in page
    (row,) = told["rows"]
    assert row["model"] == run
    assert row["environments"][0].startswith("core, Lean 4.")


def test_bad_usage_is_said_and_writes_nothing(quiet: Quiet, tmp_path: Path) -> None:
    run = judged(quiet, tmp_path / "a.jsonl", [YES])
    other = quiet.farm.json(
        "submit", write(tmp_path / "o.jsonl", entry(WRONG, 1, name="other")), "--no-wait"
    )["run"]
    board = tmp_path / "board"
    for words, said in (
        ((run, other), "no decided problem in common"),
        ((f"={run}",), "there is no name before the ="),
        (("nothere",), "no run"),
        ((run, run), "given twice"),
    ):
        told = quiet.farm("leaderboard", *words, "-o", board)
        assert (told.returncode, said in told.stderr) == (2, True), told.stderr
        assert not board.exists()
    board.mkdir()
    (board / "mine").touch()
    told = quiet.farm("leaderboard", run, "-o", board)
    assert (told.returncode, "name a new folder" in told.stderr) == (2, True)
