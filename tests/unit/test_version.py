"""The version names the code, and in a clone its commit: different code never has the same version."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from packaging.version import Version

from farm import version
from farm.version import RELEASE

FILES = {
    "farm/judging/verdict.py": "proved",
    "farm/service/page.css": "",
    "workers/farm_workers/lean/seal.lean": "axiom",
    "migrations/farm_migrations/versions/0001_first.py": "revision",
}
_WITHOUT_COMMIT = re.compile(rf"{re.escape(RELEASE)}\+(s[0-9a-f]{{8}})")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A source tree with the farm's own module of its version, and a few other files."""
    for name, content in FILES.items():
        _write(tmp_path / "tree" / name, content)
    shutil.copy(version.__file__, tmp_path / "tree" / "farm")
    return tmp_path / "tree"


def _write(file: Path, content: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content)


def _version(tree: Path) -> str:
    """Return the version that a process with this tree has."""
    said: str = runpy.run_path(str(tree / "farm" / "version.py"))["farm_version"]()
    assert str(Version(said)) == said, "an index writes it in another way"
    return said


def _code(tree: Path) -> str:
    return re.split("[.+]", _version(tree))[-1]


def test_without_git_the_version_is_the_release_and_the_digest_of_the_code(tree: Path) -> None:
    assert _WITHOUT_COMMIT.fullmatch(_version(tree))


def _swallow(tree: Path) -> None:
    (tree / "farm/service/page.css").unlink()
    (tree / "farm/judging/verdict.py").write_text("provedfarm/service/page.css\0")


CHANGES: dict[str, Callable[[Path], object]] = {
    **{f"{name} has other contents": lambda tree, name=name: _write(tree / name, "other") for name in FILES},
    **{f"{name} is gone": lambda tree, name=name: (tree / name).unlink() for name in FILES},
    "a file is new": lambda tree: _write(tree / "farm/new.py", ""),
    "a file has another name": lambda tree: (tree / "farm/judging/verdict.py").rename(
        tree / "farm/judging/v.py"
    ),
    "a file is in another folder": lambda tree: (tree / "farm/judging").rename(tree / "farm/judge"),
    "a file ends with the name of the next one": _swallow,
}


@pytest.mark.parametrize("change", CHANGES)
def test_other_code_has_another_version(tree: Path, change: str) -> None:
    before = _version(tree)
    CHANGES[change](tree)
    assert _version(tree) != before


NO_CODE: dict[str, Callable[[Path], object]] = {
    "what Python keeps": lambda tree: _write(tree / "farm/judging/__pycache__/verdict.pyc", "x"),
    "documentation": lambda tree: _write(tree / "docs/index.md", "x"),
    "tests": lambda tree: _write(tree / "workers/tests.py", "x"),
    "an editor's link": lambda tree: (tree / "farm/.#verdict.py").symlink_to("someone@host"),
    "the time of a file": lambda tree: os.utime(tree / "farm/judging/verdict.py", (0, 0)),
}


@pytest.mark.parametrize("change", NO_CODE)
def test_what_is_no_code_leaves_the_version(tree: Path, change: str) -> None:
    before = _version(tree)
    NO_CODE[change](tree)
    assert _version(tree) == before


def test_the_same_code_has_the_same_version_elsewhere(tree: Path, tmp_path: Path) -> None:
    shutil.copytree(tree, tmp_path / "copy")
    assert _version(tmp_path / "copy") == _version(tree)


def _git(tree: Path, *words: str) -> str:
    names = {f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    outside = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": "/dev/null", **names}
    said = subprocess.run(["git", *words], cwd=tree, env=outside, check=True, capture_output=True, text=True)
    return said.stdout.strip()


def _clone(tree: Path) -> None:
    _git(tree, "init", "--quiet", "--initial-branch", "work/a+b")
    _git(tree, "add", ".")
    _git(tree, "commit", "--quiet", "-m", "first")


@pytest.mark.parametrize(
    "words",
    [
        ("status",),
        ("pack-refs", "--all"),
        ("checkout", "--detach"),
        ("checkout", "-b", "b"),
        ("gc", "--quiet"),
    ],
    ids=str,
)
def test_a_clone_s_version_names_the_commit_that_is_checked_out(tree: Path, words: tuple[str, ...]) -> None:
    _clone(tree)
    _git(tree, *words)
    assert _version(tree) == f"{RELEASE}+g{_git(tree, 'rev-parse', 'HEAD')[:8]}.{_code(tree)}"


@pytest.mark.parametrize(("revision", "named"), [("1a2b3c4d" * 5, "g1a2b3c4d."), ("unknown", "")])
def test_a_version_names_the_commit_that_an_image_is_built_with(
    tree: Path, revision: str, named: str
) -> None:
    _write(tree / ".git" / "HEAD", f"{revision}\n")
    assert _version(tree) == f"{RELEASE}+{named}{_code(tree)}"


def test_with_branches_in_one_file_the_version_names_the_commit_of_the_right_one(tree: Path) -> None:
    _clone(tree)
    for other in ("a/refs/heads/work/a+b", "work/a+b2"):
        _git(tree, "branch", other)
    _git(tree, "commit", "--quiet", "--allow-empty", "-m", "second")
    _git(tree, "pack-refs", "--all")
    assert f"+g{_git(tree, 'rev-parse', 'HEAD')[:8]}." in _version(tree)


def test_a_change_shows_in_the_version_before_and_after_it_is_committed(tree: Path) -> None:
    _clone(tree)
    clean = _version(tree)
    _write(tree / "farm/judging/verdict.py", "other")
    changed = _version(tree)
    _git(tree, "commit", "--quiet", "--all", "-m", "second")
    assert len({clean, changed, _version(tree)}) == 3


@pytest.mark.parametrize(
    "commands",
    [
        [("init",)],
        [("init", "--separate-git-dir", "../elsewhere"), ("add", "."), ("commit", "-m", "first")],
    ],
    ids=["no commit", "git's folder is elsewhere"],
)
def test_where_no_commit_is_found_the_version_is_as_without_git(
    tree: Path, commands: list[tuple[str, ...]]
) -> None:
    for words in commands:
        _git(tree, *words)
    assert _WITHOUT_COMMIT.fullmatch(_version(tree))


def test_only_the_released_code_has_the_version_of_the_release(tree: Path) -> None:
    _clone(tree)
    own = tree / "farm" / "version.py"
    own.write_text(
        re.sub('^RELEASED_CODE = ".*"$', f'RELEASED_CODE = "{_code(tree)}"', own.read_text(), flags=re.M)
    )
    assert _version(tree) == RELEASE
    _write(tree / "farm/judging/verdict.py", "other")
    assert _version(tree) != RELEASE
