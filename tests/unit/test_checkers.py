"""A second kernel in the table of an environment: its program, its arguments and its files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from farm_workers.environments.configured import Table
from farm_workers.environments.lean_environment import LeanEnvironment

from farm.errors import SettingsError
from tests.toolchains import credulous, script

Described = Callable[..., LeanEnvironment]


@pytest.fixture
def described(tmp_path: Path) -> Described:
    """How to get an environment with a checker of these words."""
    lean = credulous(tmp_path / "toolchain").lean

    def environment(*words: str | Path, **keys: object) -> LeanEnvironment:
        table = {"lean": str(lean), "lean_path": [], **keys}
        checker = {"checker": [str(word) for word in words]} if words else {}
        return Table("one", table | checker).environment(tmp_path / "home")

    return environment


def sh(script: str, **keys: object) -> dict[str, object]:
    return {"command": ["/bin/sh", "-c", script], **keys}


def test_other_arguments_are_another_checker(described: Described) -> None:
    commands = ["exit 3", "exit 4", "exit  3"]
    assert len({described("/bin/sh", "-c", words).digest for words in commands}) == len(commands)
    assert described("/bin/sh", "-c", "exit 3").digest == described("/bin/sh", "-c", "exit 3").digest
    assert described("/bin/sh", "-e", "{olean}").digest != described("/bin/sh", "{olean}").digest


def test_a_list_of_checkers_is_read_in_its_order_and_one_may_be_alone(described: Described) -> None:
    one = described("/bin/sh", "-c", "exit 3")
    assert one.checkers == described(checkers=[sh("exit 3")]).checkers
    assert one.digest == described(checkers=[sh("exit 3", reads="module")]).digest
    both = described(checkers=[sh("exit 3"), sh("exit 4"), {"command": ["/bin/cat"]}])
    assert [each.name for each in both.checkers] == ["sh (number 1)", "sh (number 2)", "cat"]
    assert (both.second, one.second) == ("sh (number 1) and sh (number 2) and cat", "sh")
    assert described(checkers=[]).checkers == ()
    reader = described(checkers=[sh("cat {export}", reads="export"), sh("exit 3")])
    assert [each.reads_export for each in reader.checkers] == [True, False]


def test_the_same_words_in_other_commands_are_other_checkers(described: Described) -> None:
    lists = [
        [["/bin/sh", "-c", "exit 3"], ["/bin/cat"]],
        [["/bin/cat"], ["/bin/sh", "-c", "exit 3"]],
        [["/bin/sh", "-c"], ["/bin/cat"]],
        [["/bin/sh", "-c", "exit 3"]],
        [["/bin/sh", "-c", "exit 3", "/bin/cat"]],
    ]
    assert len({described(checkers=[{"command": each} for each in one]).digest for one in lists}) == 5


@pytest.mark.parametrize(
    ("checkers", "said"),
    [
        ("/bin/sh", "checkers: must be a list"),
        (["/bin/sh"], "checkers, number 1: must be a table with the keys command and reads"),
        ([sh("true"), {"reads": "module"}], "checkers, number 2: command must be a list of strings"),
        ([{"command": "/bin/sh"}], "checkers, number 1: command must be a list of strings"),
        ([{"command": []}], "checkers, number 1: command must be a list of strings"),
        ([sh("true", read="module")], "checkers, number 1: must be a table with the keys"),
        ([sh("true", reads="export")], "number 1: a command with {export} has reads"),
        ([sh("cat {export}")], "number 1: a command with {export} has reads"),
        ([sh("true", reads="olean")], 'checkers, number 1: reads must be "module" or "export"'),
        ([sh("true"), {"command": ["/bin/none"]}], "checkers, number 2: /bin/none does not exist"),
    ],
)
def test_a_list_that_cannot_be_meant_is_refused_by_its_place(
    described: Described, checkers: object, said: str
) -> None:
    with pytest.raises(SettingsError, match=said):
        described(checkers=checkers)


def test_a_list_and_a_checker_and_no_audit_exclude_each_other(described: Described) -> None:
    with pytest.raises(SettingsError, match="checkers: there is a checker as well; move it into the list"):
        described("/bin/sh", checkers=[sh("true")])
    with pytest.raises(SettingsError, match="checkers: only audited modules are replayed"):
        described(checkers=[sh("true")], audit=False)


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
    shown = before.checkers[0].visible
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
