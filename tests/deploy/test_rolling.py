"""A release takes over from the one before it while both are at work: nothing is lost or judged twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.processes import PATIENCE
from tests.rolling import releases
from tests.rolling.releases import Release
from tests.rolling.run import Plan, roll

pytestmark = pytest.mark.timeout(600 * PATIENCE)


@pytest.fixture(scope="module")
def this(tmp_path_factory: pytest.TempPathFactory) -> Release:
    return releases.this(tmp_path_factory.mktemp("this"))


@pytest.mark.long  # `make rolling` is its longer form
@pytest.mark.skipif(not releases.PREVIOUS_IS_KNOWN, reason="needs a git repository")
def test_this_release_takes_over_from_the_one_before(this: Release, tmp_path: Path) -> None:
    result = roll(Plan(old=releases.previous(tmp_path), new=this))
    assert not result.complaints, result.story
    assert set(result.made_by) == {result.plan.old.version, this.version}


def test_a_next_release_takes_over_from_this_one_and_this_one_may_begin_anew_meanwhile(
    this: Release, tmp_path: Path
) -> None:
    assert this.takes_newer
    result = roll(Plan(old=this, new=releases.following(tmp_path)))
    assert not result.complaints, result.story
    assert set(result.made_by) == {result.plan.new.version, this.version}
