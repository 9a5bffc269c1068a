"""Which verdicts a proof could have forged."""

from __future__ import annotations

import pytest

from farm.judging.forgeable import is_forgeable


@pytest.mark.parametrize(
    "level", ["rlimit", "cgroup1", "cgroup2", "weak-landlock", "cgroup1+weak-landlock", "landlocked"]
)
def test_a_verdict_made_where_nothing_separates_processes_could_be_forged(level: str) -> None:
    assert is_forgeable(level)


@pytest.mark.parametrize("level", ["bwrap", "cgroup2+bwrap", "landlock", "cgroup1+landlock", "none", ""])
def test_a_verdict_made_in_namespaces_with_landlock_or_without_running_anything_could_not(level: str) -> None:
    assert not is_forgeable(level)
