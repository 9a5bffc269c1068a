"""The commits that made files and lines, of real repositories of git, and of hostile ones."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from farm.datasets.history import NoHistory, began, history, require_repository
from farm.errors import UsageError

FIRST, SECOND = 1_700_000_000, 1_750_000_000
NAME = "Shop/One.lean"
#: Lines that stay: without enough of them git does not see that a file was renamed.
LINES = "".join(f"line {number} of the file\n" for number in range(8))
COMMITS = [*[FIRST] * 8, SECOND, SECOND]


def git(folder: Path, *words: str, at: int = FIRST) -> str:
    who = {f"GIT_{each}_{part}": "a@b" for each in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}
    dates = {f"GIT_{each}_DATE": f"{at} +0000" for each in ("AUTHOR", "COMMITTER")}
    return subprocess.check_output(["git", *words], cwd=folder, env=os.environ | who | dates, text=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    (folder / "Shop").mkdir(parents=True)
    git(folder, "init", "--quiet")
    (folder / "Shop" / "Old.lean").write_text(LINES + "three\n")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "first")
    git(folder, "mv", "Shop/Old.lean", NAME)
    (folder / NAME).write_text(LINES + "three, changed\nfour\n")
    git(folder, "commit", "--quiet", "-a", "-m", "second", at=SECOND)
    return folder


def told(repository: Path, folder: Path, name: str) -> list[int]:
    found = history(folder, name, (repository / NAME).read_bytes())
    assert found.created is not None
    assert found.created.told()["date"] == "2023-11-14T22:13:20+00:00"
    return [each.seconds for each in found.lines]


def test_each_line_has_the_commit_that_wrote_it_and_a_file_the_one_that_added_it(repository: Path) -> None:
    assert told(repository, repository, NAME) == COMMITS
    assert told(repository, repository / "Shop", "One.lean") == COMMITS
    found = history(repository, NAME, (repository / NAME).read_bytes())
    oldest = [found.of_lines(*each) for each in ((1, 10), (9, 10), (19, 19))]
    assert [each and each.seconds for each in oldest] == [FIRST, SECOND, None]


def test_a_file_that_differs_from_its_commit_or_has_none_has_no_history(repository: Path) -> None:
    with pytest.raises(NoHistory, match="not committed"):
        history(repository, NAME, b"another text")
    (repository / "New.lean").write_text("new")
    with pytest.raises(NoHistory):
        history(repository, "New.lean", b"new")


def test_a_folder_outside_of_any_repository_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--dates: .*not a git repository.*give a folder"):
        require_repository(tmp_path)


def test_a_repository_began_with_its_oldest_first_commit(repository: Path) -> None:
    assert began(repository / "Shop") == FIRST
    first = git(repository, "rev-parse", "HEAD").strip()
    git(repository, "checkout", "--quiet", "--orphan", "other")
    git(repository, "commit", "--quiet", "-m", "another beginning", at=FIRST - 7)
    git(repository, "merge", "--quiet", "--allow-unrelated-histories", "-m", "both", "-X", "ours", first)
    assert began(repository) == FIRST - 7


def test_a_shallow_clone_is_an_error(repository: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", "--depth", "1", f"file://{repository}", "shallow")
    with pytest.raises(UsageError, match=r"the clone is shallow.*git fetch --unshallow"):
        require_repository(tmp_path / "shallow")
    require_repository(repository)


def test_a_repository_runs_no_program_that_it_names(repository: Path, tmp_path: Path) -> None:
    content = (repository / NAME).read_bytes()
    mark = tmp_path / "mark"
    act = f"touch {mark}; cat"
    for name in ("diff.x.textconv", "diff.x.command", "filter.x.clean", "filter.x.smudge", "diff.external"):
        git(repository, "config", name, act)
    for name in ("core.pager", "gpg.program", "core.sshCommand", "core.editor", "core.fsmonitor"):
        git(repository, "config", name, act)
    git(repository, "config", "log.showSignature", "true")
    (repository / ".git" / "info").mkdir(exist_ok=True)
    (repository / ".git" / "info" / "attributes").write_text("*.lean diff=x filter=x\n")
    require_repository(repository)
    found = history(repository, NAME, content)
    assert [each.seconds for each in found.lines] == COMMITS
    assert not mark.exists()
