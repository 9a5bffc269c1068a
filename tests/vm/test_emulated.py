"""The machine has what the box's tests presuppose, by the kernel's own files and none of the farm's code."""

from __future__ import annotations

import contextlib
import os
import platform
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.processes import eventually

CONTROLLERS = {"cpu", "memory", "pids"}
Start = Callable[..., subprocess.Popen[bytes]]


def own_group() -> Path:
    """The cgroup of this process."""
    return Path("/sys/fs/cgroup") / Path("/proc/self/cgroup").read_text().strip().removeprefix("0::/")


def members(group: Path) -> list[str]:
    return (group / "cgroup.procs").read_text().split()


def counts(file: Path) -> dict[str, int]:
    return {name: int(value) for name, value in map(str.split, file.read_text().splitlines())}


@pytest.fixture
def group() -> Iterator[Path]:
    """A cgroup for one test below this process's own one, which holds no process of itself meanwhile."""
    mine = own_group()
    leaf, group = mine / "tests", mine / "group"
    leaf.mkdir()
    (leaf / "cgroup.procs").write_text("0")
    (mine / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in CONTROLLERS))
    group.mkdir()
    yield group
    (group / "cgroup.kill").write_text("1")
    eventually(lambda: not members(group))
    group.rmdir()
    (mine / "cgroup.subtree_control").write_text(" ".join(f"-{name}" for name in CONTROLLERS))
    (mine / "cgroup.procs").write_text("0")
    leaf.rmdir()


@pytest.fixture
def start(group: Path) -> Iterator[Start]:
    """Start a command in the cgroup."""
    with contextlib.ExitStack() as started:

        def start(*command: str) -> subprocess.Popen[bytes]:
            process = subprocess.Popen(command, preexec_fn=lambda: _join(group), stdout=subprocess.PIPE)
            started.enter_context(process)
            started.callback(process.kill)
            return process

        yield start


def _join(group: Path) -> None:
    (group / "cgroup.procs").write_text("0")


def python(text: str) -> Sequence[str]:
    return (sys.executable, "-I", "-c", text)


def test_the_kernel_is_the_machines_and_the_python_is_the_hosts() -> None:
    assert Path("/proc/version").read_text().startswith(f"Linux version {platform.release()} (debian-kernel@")
    assert Path(sys.prefix).name == ".venv"


def test_cgroups_are_of_version_2_with_every_controller_that_limits_need() -> None:
    assert "cgroup2 /sys/fs/cgroup cgroup2 " in Path("/proc/mounts").read_text()
    assert set((own_group() / "cgroup.controllers").read_text().split()) >= CONTROLLERS


def test_the_user_is_who_the_run_says_and_owns_its_cgroup() -> None:
    user = {"root.service": 0, "delegated.service": 65534}[own_group().name]
    assert (os.geteuid(), own_group().stat().st_uid) == (user, user)


def test_one_that_takes_too_much_memory_takes_its_group_along(group: Path, start: Start) -> None:
    (group / "memory.max").write_text(str(64 << 20))
    (group / "memory.oom.group").write_text("1")
    bystander = start("sleep", "600")
    greedy = start(*python("b'1' * (100 << 20)"))
    assert (greedy.wait(120), bystander.wait(120)) == (-9, -9)
    assert counts(group / "memory.events")["oom_group_kill"] == 1
    assert int((group / "memory.peak").read_text()) == 64 << 20


def test_a_group_takes_no_more_processes_than_it_may(group: Path, start: Start) -> None:
    (group / "pids.max").write_text("3")
    shell = start("sh", "-c", "sleep 600 & sleep 600 & sleep 600 & echo")
    assert shell.wait(120) != 0
    assert counts(group / "pids.events")["max"] == 1


def test_a_killed_group_leaves_nobody_who_left_the_session(group: Path, start: Start) -> None:
    start("sh", "-c", "(setsid sleep 600 &); sleep 600")
    eventually(lambda: len(members(group)) == 3, seconds=60)
    (group / "cgroup.kill").write_text("1")
    eventually(lambda: not members(group), seconds=60)


def test_a_groups_processor_time_is_that_of_its_processes(group: Path, start: Start) -> None:
    before = os.times()
    assert start(*python("sum(range(5_000_000))")).wait(120) == 0
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    assert counts(group / "cpu.stat")["usage_usec"] / 1e6 == pytest.approx(used, rel=0.1, abs=0.05)


def test_processor_time_passes_no_faster_than_time() -> None:
    wall, processor = time.monotonic(), time.process_time()
    sum(range(5_000_000))
    wall, processor = time.monotonic() - wall, time.process_time() - processor
    assert 0.3 * wall < processor < 1.05 * wall + 0.02


def test_bubblewrap_works_for_this_user_and_takes_the_network_away() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        connect = python(f"import socket; socket.create_connection(('127.0.0.1', {server.getsockname()[1]}))")
        here = subprocess.run(connect, check=False, capture_output=True)
        inside = [
            "bwrap",
            "--unshare-all",
            "--ro-bind",
            "/",
            "/",
            "--dev",
            "/dev",
            "--proc",
            "/proc",
            *connect,
        ]
        there = subprocess.run(inside, check=False, capture_output=True, text=True)
    assert here.returncode == 0
    assert there.returncode == 1
    assert "ConnectionRefusedError" in there.stderr or "Network is unreachable" in there.stderr
