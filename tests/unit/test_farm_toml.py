"""`farm.toml` changed by command: one table more or less, and every other byte as people wrote it."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from farm_workers.environments import table
from hypothesis import given
from hypothesis import strategies as st

from farm.errors import SettingsError, UsageError

THEIRS = """\
# My environments.

[environments.first]   # keep this
lean = "/x"
header = \"\"\"
[environments.last]
\"\"\"

# About the second.
[environments."second.1"]
options = [
    "-DmaxHeartbeats=400000", # why
]
"""
KEYS = {"lean": '/y "z"\\', "options": ["-D\x7f", "é\n"], "audit": False}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    found = tmp_path / "farm.toml"
    found.write_text(THEIRS)
    return found


def test_a_table_is_added_below_what_is_there_and_taken_away_again(file: Path) -> None:
    table.add(file, "mathlib-4.22", KEYS)
    assert file.read_text().startswith(THEIRS)
    assert tomllib.loads(file.read_text())["environments"]["mathlib-4.22"] == KEYS
    table.remove(file, "mathlib-4.22")
    assert file.read_text() == THEIRS


def test_a_table_between_others_is_cut_out_without_their_comments(file: Path) -> None:
    before = '# About the first.\n[environments.a]\nlean = "/a"\n'
    after = '\n# About the last.\n[environments.z]\nlean = "/z"\n'
    file.write_text(f"{before}\n[environments.'m']\n# of m\nlean = '/m'\n{after}")
    table.remove(file, "m")
    assert file.read_text() == f"{before}\n{after.lstrip()}"


def test_a_file_that_is_not_there_is_made(tmp_path: Path) -> None:
    file = tmp_path / "new" / "farm.toml"
    table.require_room(file, "m")
    table.add(file, "m", KEYS)
    assert tomllib.loads(file.read_text()) == {"environments": {"m": KEYS}}


def test_a_file_that_is_written_in_another_way_is_left_alone(file: Path) -> None:
    text = "environments = {}\n"
    file.write_text(text)
    with pytest.raises(SettingsError, match=r'cannot be changed; append to it:\n\[environments."m"\]'):
        table.add(file, "m", KEYS)
    assert file.read_text() == text


def test_a_table_whose_lines_cannot_be_told_is_left_alone(file: Path) -> None:
    text = "[environments]\nm = {lean = '/x'}\n"
    file.write_text(text)
    with pytest.raises(SettingsError, match="cannot be changed; remove its lines by hand"):
        table.remove(file, "m")
    assert file.read_text() == text


def test_a_header_that_stands_in_a_text_is_none(file: Path) -> None:
    with pytest.raises(UsageError, match=r"no environment is called 'last'; it has: first, second\.1"):
        table.remove(file, "last")
    table.remove(file, "second.1")
    assert tomllib.loads(file.read_text())["environments"].keys() == {"first"}


def test_the_files_mode_stays_and_a_link_is_followed(file: Path, tmp_path: Path) -> None:
    file.chmod(0o640)
    link = tmp_path / "link.toml"
    link.symlink_to(file)
    table.add(link, "m", KEYS)
    assert link.is_symlink()
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert "m" in tomllib.loads(file.read_text())["environments"]


def test_many_that_add_at_once_are_all_there(file: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from farm_workers.environments import table\n"
        "for number in range(20): table.add(Path(sys.argv[1]), f'{sys.argv[2]}-{number}', {'lean': '/x'})"
    )
    words = [sys.executable, "-c", program, str(file)]
    running = [subprocess.Popen([*words, str(number)], env={**os.environ}) for number in range(4)]
    assert [each.wait(60) for each in running] == [0] * 4
    assert len(tomllib.loads(file.read_text())["environments"]) == 2 + 80


_TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@given(
    st.dictionaries(st.sampled_from(["lean", "header", "toolchain"]), _TEXT), st.lists(_TEXT), st.booleans()
)
def test_every_table_is_read_back_as_it_was_meant(
    keys: dict[str, str], options: list[str], audit: bool
) -> None:
    meant = {**keys, "options": options, "audit": audit}
    assert tomllib.loads(table.text("a.b", meant)) == {"environments": {"a.b": meant}}
