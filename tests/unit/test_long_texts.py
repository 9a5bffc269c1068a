"""Texts that nobody should wait for: whatever a worker does with a text is done in a moment."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from farm_workers.checking.policy import screened
from farm_workers.checking.stages import AskedCandidate
from farm_workers.environments.lean_environment import LeanEnvironment

from farm.assembly.challenge import Challenge
from farm.assembly.segments import LineMap, Location, Segment, starts_in
from farm.judging.assurance import Assurance
from farm.judging.job import Check
from farm.judging.tiers import Tier
from farm.lean_text.policy.screen import LONGEST_READ
from tests.counted import assert_few

CHARACTERS = 1_000_000
HEADER = "import A\n"
ENVIRONMENT = LeanEnvironment(
    name="core", digest="d", toolchain="t", lean=("lean",), lean_path=(), header=HEADER
)
CHALLENGE = Challenge(program=f"{HEADER}theorem t : 1 = 1 := sorry\n", name="t")
PIECES = (
    *("(", "⟨", '"', '\\"', "\\", "'", "«", " ", "\n", "x", "x.", "1", "@[", "@[simp] ", "#", "-- x\n"),
    *("/-", "/--/", "open a\n", "import A.B\n", "set_option a.b true\n", "attribute ", "run_x ", 's!"{'),
    *("prelude\n", "theorem t : 1 = 1 := "),
)


def all_that_a_worker_does(text: str) -> None:
    """Read a program as a worker does, before it is given to Lean."""
    check = Check.of(program=text, challenge=CHALLENGE, assurance=Assurance(tier=Tier.LEAN))
    screened(AskedCandidate.of(check, ENVIRONMENT, lambda: False, None))


#: So many times as long as looking at each character: a fifth of that is common, ten times that unbounded.
@pytest.mark.parametrize(
    ("characters", "each", "timed", "times"),
    [(LONGEST_READ + 100, 5, CHARACTERS, 40), (4000, 40, LONGEST_READ - 100, 1000)],
)
@pytest.mark.parametrize("piece", PIECES)
def test_no_text_holds_a_worker_up(
    piece: str, characters: int, each: float, timed: int, times: float
) -> None:
    for begun in ("", HEADER, f"{HEADER}theorem t : 1 = 1 := by\n  exact "):

        def reading(size: int, begun: str = begun) -> Callable[[], object]:
            return partial(all_that_a_worker_does, begun + piece * (size // len(piece)))

        assert_few(reading, characters, each=each, timed=timed, times=times)


def test_the_places_of_many_messages_in_a_long_program_are_found_without_reading_it_again() -> None:
    places: list[Location | None] = []

    def locating(size: int) -> Callable[[], object]:
        text, whole = "\n" * size, (Segment(0, size, "generation", 0),)
        lines = LineMap(whole, text, starts_in(whole, {"generation": text}))
        return lambda: places.extend(lines.locate(size - back, 0) for back in range(200))

    assert_few(locating, 20_000, each=5, timed=CHARACTERS, times=40)
    last = [place and place.line for place in places[-200:]]
    assert last[0] is not None
    assert last == [last[0] - back for back in range(200)]
