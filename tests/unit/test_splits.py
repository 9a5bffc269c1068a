"""Splits by date: the side and the level of a theorem, without git."""

from __future__ import annotations

import pytest

from farm.datasets.history import Change
from farm.datasets.splits import Side, side

DAY = 1_000


@pytest.mark.parametrize(
    ("created", "file", "began", "expected"),
    [
        (999, 10, 1, ("train", None)),
        (999, None, 1, ("train", None)),
        (1000, 10, 1, ("test", "theorem")),
        (2000, None, 1, ("test", "theorem")),
        (2000, 999, 1, ("test", "theorem")),
        (2000, 1000, 1, ("test", "context")),
        (2000, 2000, 999, ("test", "context")),
        (2000, 2000, 1000, ("test", "project")),
    ],
)
def test_a_theorem_is_on_the_side_of_its_day_at_the_level_of_what_is_as_new(
    created: int, file: int | None, began: int, expected: tuple[str, str | None]
) -> None:
    own = Change(commit="a", seconds=created)
    of_file = None if file is None else Change(commit="b", seconds=file)
    found = side(DAY, created=own, file=of_file, began=began)
    assert found == Side(split=expected[0], level=expected[1])
