"""A few mutated programs through all that reads them, and hostile texts of some length: see `make fuzz`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from farm.assembly.declaration import kept_target
from tests.counted import assert_linear
from tests.fuzz.families import FAMILIES, steps
from tests.fuzz.mutants import Example
from tests.fuzz.programs import Checks, run, wrong_with


@pytest.mark.parametrize("first", range(0, 200, 100))
def test_what_reads_programs_stands_every_change(first: int) -> None:
    found = run(0, range(first, first + 100))
    assert found.failure is None, found.failure[1]
    assert found.done == 100


def test_a_failure_is_told_and_can_be_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fuzz.programs.header_end", lambda text: len(text) + 1)
    found = run(0, range(5))
    assert found.failure is not None
    number, wrong, kept = found.failure
    assert (number, found.done) == (0, 1)
    assert "AssertionError" in wrong
    assert wrong_with(Checks(Example.read(kept))) == wrong
    monkeypatch.undo()
    assert wrong_with(Checks(Example.read(kept))) is None


@pytest.mark.whole
@pytest.mark.parametrize("family", FAMILIES)
def test_hostile_texts_take_work_that_grows_with_their_length(family: str) -> None:
    for name in dict(steps(family, 100)):

        def working(size: int, name: str = name) -> Callable[[], object]:
            kept_target.cache_clear()
            return dict(steps(family, size))[name]

        assert_linear(working, 4000, timed=16_000)
