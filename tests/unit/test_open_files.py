"""A worker's open files: it raises its limit, and runs no more checks at once than the limit allows."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest
from farm_workers.machine.descriptors import OF_CHECK, checks_at_once, needed, raise_limit
from farm_workers.machine.doctor import open_files

from farm.errors import SettingsError


def test_the_soft_limit_is_raised_to_the_hard_one() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(400, hard), hard))
    try:
        assert raise_limit() == hard
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("at_once", [1, 8, 64])
def test_as_many_checks_run_at_once_as_the_limit_has_files_for(
    at_once: int, caplog: pytest.LogCaptureFixture
) -> None:
    assert checks_at_once(at_once, needed(at_once)) == at_once
    assert not caplog.records
    assert checks_at_once(at_once + 1, needed(at_once) + OF_CHECK - 1) == at_once
    (record,) = caplog.records
    assert f"enough for {at_once} checks at once, not for {at_once + 1}" in record.getMessage()
    assert open_files(at_once, needed(at_once)).weak is False
    found = open_files(at_once + 1, needed(at_once))
    assert (found.ok, found.weak) == (True, True)


def test_a_worker_without_files_for_a_single_check_does_not_start() -> None:
    with pytest.raises(SettingsError, match="raise the hard limit"):
        checks_at_once(1, needed(1) - 1)
    assert not open_files(1, needed(1) - 1).ok
    few = f"ulimit -n {needed(1) - 1} && exec {sys.executable} -m farm worker"
    said = subprocess.run(["sh", "-c", few], capture_output=True, text=True, check=False)
    assert said.returncode == 2, said.stderr
    assert f"a worker needs {needed(1)}" in said.stderr
