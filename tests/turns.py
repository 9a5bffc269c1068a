"""Turns: a plugin of pytest that leaves out what other commits test, for ``make test``.

The acceptance tests take more processor time than a change has. The files in `ALWAYS` run each time: they
test what must never go wrong. The others take turns: each is in one of `TURNS` groups, which take about as
long as each other, and the id of the last commit chooses the group. ``FARM_TEST_TURN=all`` runs all of them,
a number that group.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from tests.order import longest

#: The number of groups.
TURNS = 6
_ALL = "all"
_ROOT = Path(__file__).parents[1]
_ACCEPTANCE = "tests/acceptance/"
#: Files outside of the acceptance tests that take turns: the tests of the store run on both pairs of servers,
#: on the distribution's only some each time.
_ALSO = ("tests/integration/test_query_growth.py",)
_ON_SYSTEM = "tests/integration/"

#: No false proof, no lost line, no failure of the farm that is a proof's; and the first steps of a user.
ALWAYS = frozenset(
    f"{_ACCEPTANCE}test_{each}.py"
    for each in (
        *("audit", "checker", "corpus", "disproofs", "forbidden", "hostile", "hostile_sessions", "isolation"),
        "landlock",
        *(
            "around_holes",
            "holes",
            "nothing_passes_on",
            "own_text",
            "partial",
            "replay",
            "seal",
            "sealed_parts",
        ),
        *("second_kernel", "tasks", "tokens", "trust", "given_answers", "end_mark", "bundle"),
        *("cli", "farm_failures", "quickstart", "recovery", "submit", "statement_sorries", "dependencies"),
    )
)


def takes_turns(file: str, servers: str) -> bool:
    """Return whether a file of tests runs for some commits only, with these servers."""
    if servers == "system" and file.startswith(_ON_SYSTEM):
        return True
    return file in _ALSO or (file.startswith(_ACCEPTANCE) and file not in ALWAYS)


def turns(files: Iterable[str], seconds: Mapping[str, float]) -> dict[str, int]:
    """Return the group of each file: the longest first, each joins the group that takes least."""
    taken = [0.0] * TURNS
    found = {}
    for file in sorted(files, key=lambda file: (-seconds.get(file, 0.0), file)):
        found[file] = taken.index(min(taken))
        taken[found[file]] += seconds.get(file, 0.0) + 1.0
    return found


def chosen(said: str | None) -> int | None:
    """Return the group that runs, None if all do. Raises `pytest.UsageError` for what names none."""
    if said == _ALL:
        return None
    if said is None:
        return _of_commit()
    if not said.isdigit() or int(said) >= TURNS:
        raise pytest.UsageError(f"FARM_TEST_TURN={said}: say all, or a number from 0 to {TURNS - 1}")
    return int(said)


def _of_commit() -> int:
    """Return the group of the last commit, the first one outside of a repository."""
    git = subprocess.run(["git", "rev-parse", "HEAD"], cwd=_ROOT, capture_output=True, text=True, check=False)
    return int(git.stdout, 16) % TURNS if git.returncode == 0 else 0


def pytest_report_header() -> str | None:
    """Say what is left out."""
    turn = chosen(os.environ.get("FARM_TEST_TURN"))
    if turn is None:
        return None
    return f"turn {turn} of {TURNS}: some files run for other commits; FARM_TEST_TURN=all runs all of them"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the files whose turn it is not."""
    turn = chosen(os.environ.get("FARM_TEST_TURN"))
    if turn is None:
        return
    servers = os.environ.get("FARM_TEST_SERVERS", "")
    files = {item.nodeid.partition("::")[0] for item in items}
    groups = turns((file for file in files if takes_turns(file, servers)), longest())
    left_out = [item for item in items if groups.get(item.nodeid.partition("::")[0], turn) != turn]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        kept = set(left_out)
        items[:] = [item for item in items if item not in kept]
