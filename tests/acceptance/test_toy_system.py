"""The page on adding a proof system is followed literally: its system judges lines in a copy of the farm."""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import farm_workers.systems.system
import pytest

import farm.systems.system
from tests.commands import lines
from tests.processes import PATIENCE

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "develop" / "add-a-proof-system.md"
_BLOCK = re.compile(r'^```(\w+) title="([^"]+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
BLOCKS = [(found[1], found[2], found[3]) for found in _BLOCK.finditer(PAGE.read_text())]
#: The tree that a developer's commands read.
_TREE = ("farm", "workers", "migrations", "pyproject.toml")
_SIDES = ("farm", "workers/farm_workers")


class Copy:
    """A copy of the farm with the system of the page."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder, self.home = folder, home
        self.folder.mkdir()
        for name in _TREE:
            source, target = ROOT / name, self.folder / name
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, target)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a Python module in the copy."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("FARM_")}
        path = os.pathsep.join(str(self.folder / each) for each in ("", "workers", "migrations"))
        return subprocess.run(
            [sys.executable, "-m", *words],
            cwd=self.folder,
            env={**inherited, "PYTHONPATH": path, "FARM_HOME": str(self.home)},
            capture_output=True,
            text=True,
            timeout=240 * PATIENCE,
        )

    def apply(self, block: tuple[str, str, str]) -> None:
        """Write the file of a block, or change the file as the block shows."""
        language, title, text = block
        file = (self.home if title == "farm.toml" else self.folder) / title
        if language == "diff":
            for hunk in text.split("@@\n"):
                self.replace(file, without(hunk, "+"), without(hunk, "-"))
        else:
            assert not file.exists(), f"{title} exists already"
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)

    def replace(self, file: Path, old: str, new: str) -> None:
        content = file.read_text()
        assert content.count(old) == 1, f"{file} has {content.count(old)} times:\n{old}"
        file.write_text(content.replace(old, new))

    def cut(self, file: Path, first: str, last: str) -> None:
        """Cut lines from the first through the last."""
        before, found, rest = file.read_text().partition(first)
        _, ended, after = rest.partition(last)
        assert found, f"{file} has no line:\n{first}"
        assert ended, f"{file} has behind it no line:\n{last}"
        file.write_text(before + after)

    def typed(self) -> str:
        """Return the messages of mypy on both lists of systems and on the records of the page."""
        files = [f"{side}/systems/{file}" for side in _SIDES for file in ("known.py", "sums/record.py")]
        return self.run("mypy", "--no-error-summary", *files).stdout


def without(hunk: str, sign: str) -> str:
    """Return the text of a hunk before or after its change."""
    return "".join(line[1:] for line in hunk.splitlines(keepends=True) if not line.startswith(sign))


@pytest.fixture
def copy(tmp_path: Path, copy_home: Callable[[], Path]) -> Iterator[Copy]:
    found = Copy(tmp_path / "farm", copy_home())
    yield found
    found.run("farm", "down")


def titles(language: str) -> list[str]:
    return [title for each, title, _ in BLOCKS if each == language]


def rows(page: str) -> list[Sequence[str]]:
    """Return the rows of the page's table of verdicts, as cells."""
    table = page.partition("| name | verdict | reason | detail |\n")[2].partition("\n\n")[0]
    return [line.replace("\\`", "`").strip("| ").split(" | ") for line in table.splitlines()[1:]]


def test_three_files_change() -> None:
    assert len(titles("diff")) == 3
    assert all((ROOT / each).is_file() for each in titles("diff"))
    assert titles("json") == ["sums.jsonl"]


@pytest.mark.parametrize("record", [farm.systems.system.System, farm_workers.systems.system.System])
def test_no_field_of_a_record_has_a_default(record: type[object]) -> None:
    fields = dataclasses.fields(cast("Any", record))
    assert fields
    assert all(each.default is each.default_factory is dataclasses.MISSING for each in fields)


@pytest.mark.timeout(600)
def test_the_system_of_the_page_judges_lines(copy: Copy) -> None:
    for block in BLOCKS:
        copy.apply(block)

    submitted = copy.run("farm", "submit", "sums.jsonl", "--environment", "sums")

    assert submitted.returncode == 3, submitted.stderr
    found = [(each["name"], each["farm"]) for each in lines(copy.folder / "sums.jsonl")]
    told = [[name, *(verdict[key] for key in ("verdict", "reason", "detail"))] for name, verdict in found]
    assert told == rows(PAGE.read_text())


@pytest.mark.timeout(600)
def test_an_incomplete_record_and_an_incomplete_list_are_type_errors(copy: Copy) -> None:
    # What mypy knows of the files that the page leaves as they are; it compares their contents.
    if (cache := ROOT / ".mypy_cache").exists():
        shutil.copytree(cache, copy.folder / cache.name)
    for block in BLOCKS:
        copy.apply(block)
    linted = copy.run("ruff", "check", *("farm", "workers"))
    assert linted.returncode == 0, linted.stdout
    assert copy.typed() == ""

    lines_record, checks_record = (copy.folder / side / "systems" / "sums" / "record.py" for side in _SIDES)
    copy.replace(lines_record, "    image=only_image,\n", "")
    copy.replace(checks_record, ", fault=fault)", ")")
    copy.replace(checks_record, "    def trial(", "    def tried(")
    for side in _SIDES:
        known = copy.folder / side / "systems" / "known.py"
        copy.cut(known, "        case Kind.METAMATH:\n", "            return METAMATH\n")
    said = copy.typed()

    assert 'Missing named argument "image" for "System"' in said
    assert 'Missing named argument "fault" for "System"' in said
    assert 'missing following "Judge" protocol member:' in said
    assert said.count('"Literal[Kind.METAMATH]"; expected "Never"') == 2
