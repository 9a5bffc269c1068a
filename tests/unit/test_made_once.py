"""Folders that one of the processes of a run makes for all of them."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest

from tests.made_once import MadeOnce, copied


def _fill(folder: Path) -> None:
    with (folder.parent / "fillings").open("a") as file:
        file.write("x")
    (folder / "full").touch()


def _ask(base: Path) -> None:
    assert (MadeOnce(base)("a", _fill) / "full").exists()


def test_one_of_the_processes_that_ask_for_a_folder_fills_it(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    asking = [context.Process(target=_ask, args=(tmp_path,)) for _ in range(3)]
    for process in asking:
        process.start()
    for process in asking:
        process.join()
    assert [process.exitcode for process in asking] == [0, 0, 0]
    assert (tmp_path / "fillings").read_text() == "x"


def test_a_folder_that_could_not_be_filled_is_filled_by_who_asks_next(tmp_path: Path) -> None:
    def fails(folder: Path) -> None:
        (folder / "half").touch()
        raise OSError("no room")

    with pytest.raises(OSError, match="no room"):
        MadeOnce(tmp_path)("a", fails)
    made = MadeOnce(tmp_path)("a", _fill)
    assert [each.name for each in made.iterdir()] == ["full"]
    (tmp_path / "copies").mkdir()
    assert (copied(made, tmp_path / "copies") / "full").exists()
