"""The table of the long instruments."""

from __future__ import annotations

from tests.nightly.instruments import Ran, table


def test_the_table_says_how_long_each_took_and_which_failed() -> None:
    rows = table([Ran(name="chaos", status=0, seconds=90.0), Ran(name="load", status=1, seconds=6.0)])
    assert rows.splitlines() == [
        "chaos              1.5 min  passed",
        "load               0.1 min  failed with status 1",
    ]
