"""What the tests of other proof systems share: the strongest isolation of this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from farm_workers.box import isolation as isolations


@pytest.fixture(scope="session")
def isolation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[isolations.Isolation]:
    """The strongest isolation that this machine offers, or less where FARM_TEST_ISOLATION asks for it."""
    most = os.environ.get("FARM_TEST_ISOLATION", "cgroup+bwrap")
    with isolations.prepared(tmp_path_factory.mktemp("isolation"), most=most) as found:
        assert not (os.environ.get("CI") and found.missing), found.missing
        yield found
