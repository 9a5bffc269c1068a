"""The corpus as files: every case is there, with its texts and what a judge must say of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from farm_workers.exploits import publishing
from farm_workers.exploits.corpus import read
from farm_workers.exploits.publishing import ACCEPT, DECLINE, REJECT

from farm.errors import UsageError


def lines(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / publishing.LIST).read_text().splitlines()]


def test_every_case_is_written_with_all_its_texts(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "tricks"
    counts = publishing.write(folder, publishing.HEADER)
    cases, found = list(read()), lines(folder)
    assert [each["name"] for each in found] == [case.name for case in cases]
    assert counts == (sum(not case.is_honest for case in cases), sum(case.is_honest for case in cases))
    folders = {each.name for each in folder.iterdir() if each.is_dir()}
    assert folders == {each["folder"] for each in found}
    assert len(folders) == len(cases)
    for case, each in zip(cases, found, strict=True):
        assert (each["expected"] == ACCEPT) == case.is_honest, case.name
        texts = {"Challenge.lean": "challenge", "Submission.lean": "submission", "Before.lean": "before"}
        for file, field in texts.items():
            path = folder / str(each["folder"]) / file
            assert (path.read_bytes().decode() if path.exists() else None) == each[field], case.name
        assert (each["challenge"] is None) == (not case.statement)
        assert case.program in str(each["submission"])
    words = {each["expected"] for each in found}
    assert words == {ACCEPT, REJECT, DECLINE}
    readme = (folder / "README.md").read_text()
    assert all(word in readme for word in [*words, *found[0]])
    assert (folder / "Core.lean").read_text().count("\n") > 1000


def test_programs_begin_with_the_header_that_is_asked_for(tmp_path: Path) -> None:
    publishing.write(tmp_path / "tricks", "import Mathlib\n")
    found, cases = lines(tmp_path / "tricks"), {case.name: case for case in read()}
    assert len(found) == sum(not case.core_only for case in cases.values())
    for each in found:
        own = cases[str(each["name"])].header is not None
        assert own or str(each["submission"]).startswith("import Mathlib\n"), each["name"]
        assert "import Core" not in str(each["challenge"])
    assert not (tmp_path / "tricks" / "Core.lean").exists()


def test_a_folder_that_is_there_stays_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is there"):
        publishing.write(tmp_path, publishing.HEADER)
    assert list(tmp_path.iterdir()) == []
