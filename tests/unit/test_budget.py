"""Budgets of time: what a run of tests used, and which excess fails a build."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.budget import MARGIN, TEST, TEST_MARGIN, Durations
from tests.processes import PATIENCE

ROOT = Path(__file__).parents[2]


def excesses(processes: int = 1, **seconds: float) -> list[str]:
    named = {f"tests/{name}": each * PATIENCE for name, each in seconds.items()}
    return list(Durations(processes=processes, seconds=named).excesses())


def test_a_folder_and_a_test_may_exceed_their_budgets_as_a_busy_machine_makes_them() -> None:
    assert excesses(**{f"unit/test_a.py::{n}": 0.9 * MARGIN * TEST for n in range(6)}) == []


def test_a_test_that_takes_far_too_long_is_named() -> None:
    (found,) = excesses(4, **{"unit/test_a.py::one": 1.1 * TEST_MARGIN * TEST})
    assert found.startswith("tests/unit/test_a.py::one takes ")


def test_a_folder_that_takes_far_too_long_is_named_by_the_time_that_its_processes_share() -> None:
    tests = {f"unit/test_a.py::{n}": TEST for n in range(40)}
    (found,) = excesses(2, **tests)
    assert found.startswith("tests/unit takes ")
    assert excesses(4, **tests) == []


@pytest.mark.parametrize("options", [(), ("-n", "2")], ids=["alone", "processes"])
def test_a_run_leaves_its_durations_in_a_file_and_prints_a_table(
    options: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "test_it.py").write_text("def test_one(): pass\ndef test_two(): pass\n")
    program = (
        "import pathlib, sys, pytest; from tests import budget; "
        "budget.FILE = pathlib.Path(sys.argv[1]); sys.exit(pytest.main(sys.argv[2:]))"
    )
    file = tmp_path / "durations.json"
    words = (str(file), "-p", "tests.budget", *options, "-c", "/dev/null", "--rootdir", tmp_path, tmp_path)
    ended = subprocess.run(
        [sys.executable, "-c", program, *map(str, words)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "test_it.py::test_two" in ended.stdout.partition("budgets of time")[2]
    found = json.loads(file.read_text())
    assert {*found["seconds"]} == {"test_it.py::test_one", "test_it.py::test_two"}
    assert found["processes"] == max(1, len(options))
