"""What is looked at here needs programs that no Python package brings: each missing one names its package."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

#: The program, and Debian's package of it.
PACKAGES = {"chromium": "chromium", "prometheus": "prometheus", "promtool": "prometheus"}


def program(name: str) -> str:
    """Return where a program is; fails, and says what to install, where it is missing."""
    found = shutil.which(name)
    if found is None:
        pytest.fail(f"there is no {name}; on Debian or Ubuntu: sudo apt-get install {PACKAGES[name]}")
    return found


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium, for the whole session."""
    with sync_playwright() as playwright:
        # Its own sandbox needs what a container may not have; it opens nothing but the tests' own pages.
        started = playwright.chromium.launch(executable_path=program("chromium"), args=["--no-sandbox"])
        yield started
        started.close()
