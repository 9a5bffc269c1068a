"""Which long instrument continuous integration runs."""

from __future__ import annotations

from tests.nightly.instruments import INSTRUMENTS, Ran, chosen, table


def test_commits_choose_every_short_instrument_in_turn() -> None:
    found = {chosen(f"{number:040x}").name for number in range(400)}
    assert found == {each.name for each in INSTRUMENTS if each.is_slice}


def test_a_commit_always_chooses_the_same_one() -> None:
    assert chosen("f5b4d59") == chosen("f5b4d59")


def test_the_table_says_how_long_each_took_and_which_failed() -> None:
    rows = table([Ran(name="chaos", status=0, seconds=90.0), Ran(name="load", status=1, seconds=6.0)])
    assert rows.splitlines() == [
        "chaos              1.5 min  passed",
        "load               0.1 min  failed with status 1",
    ]
