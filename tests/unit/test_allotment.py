"""What a process may use of its machine, by layouts of /proc and /sys/fs/cgroup that machines have."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from farm_workers.loop.memory import Memory
from farm_workers.machine.doctor import memory

from farm import allotment

MIB = 1 << 20
UNIFIED = "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate"
V1_MEMORY = "35 31 0:32 {root} /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory"
V1_CPU = "32 31 0:29 {root} /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct"
UNLIMITED_V1 = "9223372036854771712"


def machine(root: Path, cgroup: str, mounts: list[str], files: Mapping[str, str]) -> Path:
    """Write the files of a machine below a folder; those of control groups are below /sys/fs/cgroup."""
    written = {"proc/self/cgroup": cgroup, "proc/self/mountinfo": "\n".join(mounts)}
    written |= {f"sys/fs/cgroup/{name}": text for name, text in files.items()}
    for name, text in written.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{text}\n")
    return root


@pytest.fixture(autouse=True)
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a machine with more of everything than any of these groups allows."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(64)))
    monkeypatch.setattr(os, "sysconf", lambda name: MIB if name == "SC_PHYS_PAGES" else 1 << 20)


SLURM = "system.slice/slurmstepd.scope/job_7/step_0/user/task_0"


@pytest.mark.parametrize(
    ("cgroup", "mounts", "files", "cores", "mib"),
    [
        pytest.param("0::/", [UNIFIED], {}, 64, MIB, id="no limits"),
        pytest.param("", [], {}, 64, MIB, id="no control groups"),
        pytest.param(
            "0::/",
            [UNIFIED],
            {"memory.max": f"{2048 * MIB}", "cpu.max": "150000 100000"},
            2,
            2048,
            id="docker",
        ),
        pytest.param(
            "0::/system.slice/farm.service",
            [UNIFIED],
            {
                "system.slice/farm.service/memory.max": f"{4096 * MIB}",
                "system.slice/farm.service/cpu.max": "max 100000",
                "system.slice/memory.max": "max",
            },
            64,
            4096,
            id="systemd",
        ),
        pytest.param(
            f"0::/{SLURM}",
            [UNIFIED],
            {
                f"{SLURM}/memory.max": "max",
                "system.slice/slurmstepd.scope/job_7/memory.max": f"{900 * MIB}",
                "system.slice/slurmstepd.scope/job_7/cpu.max": "300000 100000",
                "system.slice/slurmstepd.scope/job_7/step_0/memory.high": f"{800 * MIB}",
            },
            3,
            800,
            id="a parent's limit",
        ),
        pytest.param(
            "4:memory:/docker/abc\n1:cpu,cpuacct:/docker/abc\n0::/",
            [V1_MEMORY.format(root="/docker/abc"), V1_CPU.format(root="/docker/abc")],
            {
                "memory/memory.limit_in_bytes": f"{512 * MIB}",
                "cpu,cpuacct/cpu.cfs_quota_us": "250000",
                "cpu,cpuacct/cpu.cfs_period_us": "100000",
            },
            3,
            512,
            id="docker of version 1",
        ),
        pytest.param(
            "4:memory:/slurm/uid_0/job_7\n1:cpu,cpuacct:/\n",
            [V1_MEMORY.format(root="/"), V1_CPU.format(root="/")],
            {
                "memory/slurm/uid_0/job_7/memory.limit_in_bytes": UNLIMITED_V1,
                "memory/slurm/uid_0/memory.limit_in_bytes": f"{700 * MIB}",
                "memory/memory.limit_in_bytes": UNLIMITED_V1,
                "cpu,cpuacct/cpu.cfs_quota_us": "-1",
                "cpu,cpuacct/cpu.cfs_period_us": "100000",
            },
            64,
            700,
            id="a parent's limit of version 1",
        ),
        pytest.param(
            "0::/../../other", [UNIFIED], {"memory.max": f"{300 * MIB}"}, 64, 300, id="outside of the mount"
        ),
        pytest.param("0::/gone", [UNIFIED], {"memory.max": f"{300 * MIB}"}, 64, 300, id="a group not shown"),
    ],
)
def test_the_least_limit_of_the_group_and_its_parents_counts(
    tmp_path: Path, cgroup: str, mounts: list[str], files: Mapping[str, str], cores: int, mib: int
) -> None:
    root = machine(tmp_path, cgroup, mounts, files)
    assert (allotment.cores(root, {}), allotment.memory_mib(root, {})) == (cores, mib)


@pytest.mark.parametrize(
    ("variables", "cores", "mib"),
    [
        ({"CPUS_PER_TASK": "4", "MEM_PER_CPU": "1000"}, 4, 4000),
        ({"CPUS_ON_NODE": "12", "MEM_PER_NODE": "8192"}, 12, 8192),
        ({"CPUS_ON_NODE": "12", "STEP_TASKS_PER_NODE": "3", "MEM_PER_NODE": "9000"}, 4, 3000),
        ({"JOB_CPUS_PER_NODE": "8(x2),6", "NODEID": "2", "MEM_PER_CPU": "10"}, 6, 60),
        ({"JOB_CPUS_PER_NODE": "8(x2),6", "NODEID": "1"}, 8, MIB),
        ({"MEM_PER_NODE": "0"}, 64, MIB),
        ({"CPUS_PER_TASK": "many", "MEM_PER_NODE": "4G", "JOB_CPUS_PER_NODE": "(x"}, 64, MIB),
        ({"CPUS_PER_TASK": "128"}, 64, MIB),
    ],
)
def test_the_variables_of_slurm_count(
    tmp_path: Path, variables: Mapping[str, str], cores: int, mib: int
) -> None:
    environ = {f"SLURM_{name}": value for name, value in variables.items()}
    assert (allotment.cores(tmp_path, environ), allotment.memory_mib(tmp_path, environ)) == (cores, mib)


def test_a_group_that_ran_out_of_memory_is_named_in_the_log_and_by_doctor(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = {"farm/memory.events.local": "low 0\nhigh 0\nmax 9\noom 0\noom_kill 0\noom_group_kill 0"}
    root = machine(tmp_path, "0::/farm/worker", [UNIFIED], {**files, "farm/worker/memory.max": "max"})
    looks = Memory(root)
    looks.look()
    assert not memory(2, root).weak
    group = tmp_path / "sys/fs/cgroup/farm"
    (group / "memory.events.local").write_text("low 0\nhigh 0\nmax 12\noom 2\noom_kill 0\noom_group_kill 0\n")
    with caplog.at_level(logging.ERROR):
        looks.look()
        looks.look()
    assert [f"{group} ran out of memory 2 times" in each.getMessage() for each in caplog.records] == [True]
    found = memory(2, root)
    assert found.weak
    assert f"{group} ran out of memory 2 times" in found.words


def test_a_kill_in_a_group_of_version_1_is_found(tmp_path: Path) -> None:
    control = "oom_kill_disable 0\nunder_oom 0\noom_kill 3"
    files = {"memory/farm/memory.oom_control": control, "memory/memory.oom_control": control}
    root = machine(tmp_path, "4:memory:/farm", [V1_MEMORY.format(root="/")], files)
    assert allotment.out_of_memory(root) == {tmp_path / "sys/fs/cgroup/memory/farm": 3}
