"""Debian's programs that the farm is looked at with; where one is missing, the test fails and names it."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest

#: The package of each program.
PACKAGES = {"prometheus": "prometheus", "promtool": "prometheus", "chromium": "chromium"}


@pytest.fixture(scope="session")
def program() -> Callable[[str], str]:
    """Return the path of a program by its name."""

    def find(name: str) -> str:
        found = shutil.which(name)
        if found is None:
            pytest.fail(f"{name} is missing; install it with: sudo apt-get install {PACKAGES[name]}")
        return found

    return find
