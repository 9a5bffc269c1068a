"""Baselines of libraries: what differs from them, and what is no baseline."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import pytest
from farm_workers.cli.library import STANDARD, Library, LibraryAsked, Rests, known, write

from farm.errors import FarmError, UsageError

OLEANS = Path(__file__).with_name("olean")
ASKED = LibraryAsked(roots=[OLEANS], own=[OLEANS])


def test_a_library_equals_its_own_baseline(tmp_path: Path) -> None:
    library = Library.of(ASKED)
    assert library.rests["Goal.it"] == Rests(axioms=("cheat",))
    assert library.modules["Goal.it"] == "Real"
    write(library, tmp_path / "baseline.json")
    assert known(tmp_path / "baseline.json") == library.rests
    assert library.compared(library.rests).differences == ()


def test_what_is_new_other_or_gone_is_told() -> None:
    library = Library.of(ASKED)
    before = dict(library.rests)
    before["Goal.it"] = Rests(sorries=("once",))
    before["gone"] = Rests(axioms=("cheat",))
    del before["cheat"]
    found = library.compared(before)
    assert [(each.name, each.was) for each in found.differences] == [
        ("Goal.it", before["Goal.it"]),
        ("cheat", Rests()),
    ]
    assert found.gone == ("gone",)


def test_allowed_axioms_and_other_modules_are_left_out() -> None:
    assert Library.of(dataclasses.replace(ASKED, modules=["Parts"])).rests == {}
    allowed = Library.of(dataclasses.replace(ASKED, modules=["Real"], allowed=["cheat", *STANDARD]))
    assert not {"Goal.it", "cheat"} & allowed.rests.keys()
    folder = LibraryAsked(roots=[OLEANS], own=[OLEANS.parent / "nothing"])
    with pytest.raises(UsageError, match="no compiled modules"):
        Library.of(folder)
    with pytest.raises(UsageError, match="no compiled module is called Re,"):
        Library.of(dataclasses.replace(ASKED, modules=["Re"]))


def test_an_unreadable_module_is_an_error_where_it_matters(tmp_path: Path) -> None:
    folder = tmp_path / "library"
    shutil.copytree(OLEANS, folder)
    (folder / "Parts.olean.private").unlink()
    asked = LibraryAsked(roots=[folder], own=[folder])
    with pytest.raises(FarmError, match=r"Parts cannot be read: .* build it again"):
        Library.of(asked)
    with pytest.raises(FarmError, match="used rests on True, which no readable module declares"):
        Library.of(dataclasses.replace(asked, modules=["User"]))
    assert "Goal.it" in Library.of(dataclasses.replace(asked, modules=["Real"])).rests


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "no such file; write it"),
        ("theorem", "is no baseline"),
        ("[]", "is no baseline"),
        ("{}", "is no baseline"),
        ('{"farm_library_baseline": 1, "sets": [{"axioms": []}]}', "is no baseline"),
        ('{"farm_library_baseline": 2, "sets": []}', "of another version"),
    ],
)
def test_what_is_no_baseline_is_refused(tmp_path: Path, content: str | None, said: str) -> None:
    file = tmp_path / "baseline.json"
    if content is not None:
        file.write_text(content)
    with pytest.raises(UsageError, match=said):
        known(file)


def test_a_baseline_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="name a file that can be written"):
        write(Library.of(ASKED), tmp_path / "no" / "baseline.json")
    assert json.dumps(STANDARD) == '["Classical.choice", "Quot.sound", "propext"]'
