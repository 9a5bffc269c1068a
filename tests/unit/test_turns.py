"""Which files of tests a commit runs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.order import longest
from tests.turns import ALWAYS, TURNS, chosen, takes_turns, turns

ROOT = Path(__file__).parents[2]
FILES = sorted(str(each.relative_to(ROOT)) for each in ROOT.glob("tests/*/test_*.py"))


def test_the_files_that_always_run_are_there() -> None:
    assert set(FILES) >= ALWAYS


def test_every_file_runs_in_some_turn_and_the_turns_take_about_as_long() -> None:
    waiting = [file for file in FILES if takes_turns(file, "wheels")]
    groups, taken, seconds = turns(waiting, longest()), Counter[int](), longest()
    assert set(groups) == set(waiting)
    for file, group in groups.items():
        taken[group] += round(seconds.get(file, 0.0))
    assert set(taken) == set(range(TURNS))
    assert max(taken.values()) <= 1.2 * min(taken.values())


def test_the_tests_of_the_store_take_turns_on_the_second_pair_of_servers_only() -> None:
    file = "tests/integration/test_store.py"
    assert (takes_turns(file, "wheels"), takes_turns(file, "system")) == (False, True)


def test_a_turn_is_a_number_or_all() -> None:
    assert (chosen("all"), chosen("2")) == (None, 2)
    assert chosen(None) in range(TURNS)
    for wrong in (str(TURNS), "-1", "some", ""):
        with pytest.raises(pytest.UsageError, match=f"say all, or a number from 0 to {TURNS - 1}"):
            chosen(wrong)
