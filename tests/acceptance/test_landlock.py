"""Landlock's walls: what a probe can do without them, that each kernel's hold, and what is said of them."""

from __future__ import annotations

import errno
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from farm_workers.box import landlock, seccomp
from farm_workers.box.isolation import Isolation, broken_promises, prepared
from farm_workers.box.landlock import SCOPES_ABI, Walls
from farm_workers.box.promises import BROKEN
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.exploits.corpus import judged, read

from farm.errors import SettingsError
from farm.judging.forgeable import is_forgeable
from farm.judging.tiers import Tier
from tests.isolation_levels import isolated
from tests.no_namespaces import CREATE_RULESET
from tests.processes import CODE


@pytest.fixture(scope="module")
def walled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Isolation]:
    with isolated(tmp_path_factory.mktemp("work"), "landlock") as isolation:
        yield isolation


def test_without_walls_a_probe_can_do_something_of_each_kind(walled: Isolation) -> None:
    assert set(broken_promises(replace(walled, walls=None))) == set(BROKEN)


def test_what_a_program_puts_in_its_modules_place_is_its_own_fault(
    walled: Isolation, core: LeanEnvironment, tmp_path: Path
) -> None:
    """Without namespaces the folder is on a disk of the machine, whose failures are the farm's."""
    with Checker(walled, home=tmp_path, concurrency=1) as checker:
        found = [judged(checker, core, case, Tier.KERNEL) for case in read() if "module's place" in case.name]
    assert len(found) > 1
    assert [each for each in found if not each.is_right] == []


@pytest.mark.parametrize("version", range(1, 8))
def test_the_walls_hold_with_what_each_kernel_has(walled: Isolation, version: int) -> None:
    """An older kernel knows fewer rights: what it does not know is left out here, too."""
    if version > landlock.abi():
        pytest.skip(f"this kernel's Landlock has version {landlock.abi()}")
    alone = version < SCOPES_ABI
    calls = seccomp.filter_for(platform.machine(), shared=True, alone=alone)
    walls = Walls(abi=version, calls=calls)
    assert broken_promises(replace(walled, walls=walls)) == ()
    assert broken_promises(replace(walled, walls=walls.weakest())) == ()


def test_a_level_whose_probe_could_do_what_it_must_not_is_weak_and_says_what(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")  # whose system calls the farm does not know
    with prepared(tmp_path, most="landlock") as isolation:
        assert isolation.name == "weak-landlock"
        (said,) = isolation.missing
        with pytest.raises(SettingsError, match="FARM_ISOLATION=rlimit accepts that"):
            isolation.require("landlock")
        isolation.require("rlimit")
    assert is_forgeable("weak-landlock")
    assert said.startswith("Landlock holds only in part here (Linux ")
    assert BROKEN["networks"] in said
    assert said.endswith("; use Linux 6.12 or newer on x86-64 or arm64.")


def test_a_folder_that_checks_may_read_is_no_place_for_the_farms_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with tempfile.TemporaryDirectory() as folder:  # not pytest's, which the user of a box cannot enter
        Path(folder).chmod(0o755)
        monkeypatch.setattr(sys, "base_prefix", folder)  # the folder of Python is readable to all checks
        monkeypatch.setattr(landlock, "_system", landlock._system.__wrapped__)
        with prepared(Path(folder) / "work", most="landlock") as isolation:
            assert isolation.name == "weak-landlock"
            assert "a probe could read files outside its folder" in isolation.missing[0]


WORDS = """
import sys
from pathlib import Path
from farm_workers.box.isolation import prepared
from tests.no_namespaces import refusing, take
take(refusing(int(sys.argv[2]), int(sys.argv[3])))
with prepared(Path(sys.argv[1]), most="landlock") as found:
    print(found.name, *found.missing)
"""


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (errno.ENOSYS, "use Linux 5.13 or newer"),
        (errno.EOPNOTSUPP, "add `landlock` to the list of the boot parameter lsm="),
        (errno.EPERM, "landlock_create_ruleset is refused (EPERM); use a container runtime from 2022"),
    ],
)
def test_a_kernel_or_runtime_without_landlock_is_told_with_the_remedy(
    tmp_path: Path, error: int, words: str
) -> None:
    command = [sys.executable, "-c", WORDS, str(tmp_path), str(CREATE_RULESET), str(error)]
    env = {**os.environ, "PYTHONPATH": CODE}
    said = subprocess.run(command, check=True, capture_output=True, text=True, env=env).stdout
    assert said.startswith("rlimit Landlock is not available: ")
    assert words in said
