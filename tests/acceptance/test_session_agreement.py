"""Proof scripts have the same outcome tactic by tactic as in one text: some of `--only session-agreement`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from farm_workers.box.isolation import Isolation
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.images.image import lean_image
from farm_workers.images.images import Images

from tests.agreement.comparing import Comparing
from tests.agreement.scripts import Script, scripts

#: One script in so many is compared.
_EACH = 15


@pytest.fixture(scope="module")
def comparing(isolation: Isolation, core: LeanEnvironment, checker: Checker) -> Iterator[Comparing]:
    with closing(Images(isolation, lean_image, most=2)) as images:
        yield Comparing(core, images, checker)


def test_scripts_have_the_same_outcome_by_state_as_in_one_text(comparing: Comparing) -> None:
    found = list(comparing.compared(list(scripts(made=240, seed=7))[::_EACH]))
    assert len(found) > 40
    assert sum(each.by_text == "proved" for each in found) > len(found) / 2
    differing = [each for each in found if not each.agrees]
    assert not [str(each) for each in differing if each.by_text == "proved"]
    assert len(differing) <= 1, differing  # docs/use/sessions.md names it


def test_several_lines_are_one_step_and_the_text_of_the_proof_has_them_as_well(comparing: Comparing) -> None:
    lines = "rw [← k]\nrw [h]"
    script = Script(
        name="lines",
        statement="theorem t (a b c : Nat) (h : a = b) (k : b = c) : a + 1 = c + 1",
        body=lines,
        tactics=(lines,),
    )
    (found,) = comparing.compared([script])
    assert (found.by_text, found.by_state, found.steps) == ("proved", "proved", (lines,))
