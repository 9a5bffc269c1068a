"""What the images are built of is there for amd64 and arm64. This asks the package index."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from farm_workers.box import seccomp

from tests.deploy.containers import ROOT

#: Of Debian 12, which the images are built on: PEP 600.
GLIBC = "manylinux_2_36"


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
@pytest.mark.parametrize("lock", ["build", "farm", "core"])
def test_every_package_of_a_lock_is_there_as_a_wheel(lock: str, machine: str, tmp_path: Path) -> None:
    command = [
        *(Path(sys.executable).with_name("uv"), "pip", "install", "--dry-run", "--no-deps"),
        *("--require-hashes", "--only-binary", ":all:", "--python-version", "3.12"),
        *("--python-platform", f"{machine}-{GLIBC}", "--target", tmp_path),
        *("-r", ROOT / "docker" / f"{lock}.lock"),
    ]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr


def test_the_filter_of_system_calls_is_known_for_both() -> None:
    assert seccomp.MACHINES.keys() == {"x86_64", "aarch64"}
