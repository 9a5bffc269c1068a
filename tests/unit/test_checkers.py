"""A second kernel in the table of an environment: its program, its arguments and its files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from farm_workers.environments.configured import Table
from farm_workers.environments.lean_environment import LeanEnvironment
from toolchains import credulous, script

from farm.errors import SettingsError

Described = Callable[..., LeanEnvironment]


@pytest.fixture
def described(tmp_path: Path) -> Described:
    """How to get an environment with a checker of these words."""
    lean = credulous(tmp_path / "toolchain").lean

    def environment(*words: str | Path) -> LeanEnvironment:
        table = {"lean": str(lean), "lean_path": [], "checker": [str(word) for word in words]}
        return Table("one", table).environment(tmp_path / "home")

    return environment


def test_other_arguments_are_another_checker(described: Described) -> None:
    commands = ["exit 3", "exit 4", "exit  3"]
    assert len({described("/bin/sh", "-c", words).digest for words in commands}) == len(commands)
    assert described("/bin/sh", "-c", "exit 3").digest == described("/bin/sh", "-c", "exit 3").digest
    assert described("/bin/sh", "-e", "{olean}").digest != described("/bin/sh", "{olean}").digest


@pytest.mark.parametrize("words", ["{0}/check.py", "--program={0}/check.py", "exec {0}/check.py", "{0}"])
def test_other_contents_of_a_file_that_an_argument_names_are_another_checker(
    described: Described, tmp_path: Path, words: str
) -> None:
    folder = tmp_path / "checker"
    file = script(folder / "check.py", "exit 1")
    before = described("/bin/sh", "-c", words.format(folder))
    script(file, "exit 10")
    after = described("/bin/sh", "-c", words.format(folder))
    assert before.digest != after.digest
    assert before.checker is not None
    shown = before.checker.visible
    assert any(file.is_relative_to(path) for path in shown)


def test_the_same_checker_in_another_place_has_the_same_digest(described: Described, tmp_path: Path) -> None:
    places = [script(tmp_path / place / "check", "exit 1") for place in ("a", "b")]
    one, other = (described(place, "{olean}").digest for place in places)
    assert one == other


def test_a_program_or_file_that_is_not_there_is_found_when_the_table_is_read(
    described: Described, tmp_path: Path
) -> None:
    (tmp_path / "plain").touch()
    for words, said in {
        (tmp_path,): "checker: .* is a folder; name the program in it",
        (tmp_path / "none",): "checker: .*none does not exist; install it, or correct the path",
        (tmp_path / "plain",): r"checker: .*plain is no program that can be run; run chmod \+x",
        ("sleep", "1"): "checker: sleep is not the absolute path of a program",
        ("/bin/sh", tmp_path / "none.sh"): r"checker: there is no .*none\.sh; correct the path",
    }.items():
        with pytest.raises(SettingsError, match=said):
            described(*words)
