"""`farm prune`, as an operator runs it."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import text

from tests.commands import PROVED, entry, lines, write
from tests.farms import Quiet

OLDER = ("prune", "--older-than", "30d")


def age(quiet: Quiet) -> None:
    """Let sixty days pass since all that has happened."""
    moments = {"runs": "created_at", "manifests": "exported_at", "verdicts": "decided_at"}
    with quiet.engine.begin() as connection:
        for table, moment in moments.items():
            connection.execute(text(f"UPDATE {table} SET {moment} = {moment} - interval '60 days'"))


def test_old_runs_go_when_their_verdicts_are_in_their_manifests(quiet: Quiet, tmp_path: Path) -> None:
    path, left = (
        write(tmp_path / name, entry(PROVED, number)) for number, name in enumerate(("a.jsonl", "b.jsonl"))
    )
    exported, run_id = (quiet.farm.json("submit", each, "--no-wait")["run"] for each in (path, left))
    for each in (exported, run_id):
        quiet.judge(each, 1)
    assert quiet.farm("export", exported).returncode == 0
    age(quiet)
    looked = quiet.farm(*OLDER, "--dry-run")
    assert looked.returncode == 0, looked.stderr
    assert "Would delete 1 run with 1 line, and the checks that only they needed" in looked.stderr
    said = quiet.farm(*OLDER)
    assert said.returncode == 0, said.stderr
    assert "Deleted 1 run with 1 line, 1 check and " in said.stderr
    assert f"Kept 1 old run with verdicts that are not in the manifests: {run_id}" in said.stderr
    assert "farm export RUN, or delete them with --unexported" in said.stderr
    assert lines(path)[0]["proof_status"] == "completed"
    assert quiet.farm.json(*OLDER) == {
        "schema": 1,
        "dry_run": False,
        "runs": 0,
        "lines": 0,
        "checks": 0,
        "programs": 0,
        "kept": {"unexported": [run_id]},
    }
    assert quiet.farm.json(*OLDER, "--unexported", "--dry-run")["runs"] == 1
    assert quiet.farm.json(*OLDER, "--unexported")["runs"] == 1
    assert quiet.rows() == {}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--older-than", "30"), "--older-than 30: give the unit as well, such as 30d or 12h"),
        (("--older-than", "soon"), "--older-than soon: give a time such as 90s, 30m, 2h or 1d"),
        (("--older-than", "0d"), "--older-than 0d: give a time such as"),
        (("--older-than", "-1d"), "--older-than -1d: give a time such as"),
        ((), "--older-than"),
    ],
)
def test_a_time_that_is_none_is_refused(shared_quiet: Quiet, words: tuple[str, ...], said: str) -> None:
    refused = shared_quiet.farm("prune", *words)
    assert refused.returncode == 2
    assert said in refused.stderr


def test_there_is_no_need_of_a_run(shared_quiet: Quiet) -> None:
    said = shared_quiet.farm(*OLDER)
    assert said.returncode == 0
    assert said.stderr.strip() == "Deleted 0 runs with 0 lines, 0 checks and 0 programs"
