"""Inside the machine: its first process, which hands out cgroups, runs pytest in them, and switches off."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import sys
import traceback
from pathlib import Path

from tests.vm.initramfs import RESULTS_AT
from tests.vm.machine import DONE, UP

CGROUPS = Path("/sys/fs/cgroup")
CONTROLLERS = ("cpu", "memory", "pids")
#: Users by what their runs are called. The second owns a cgroup as a service with User= and Delegate= does.
USERS = {"root": 0, "delegated": 65534}
#: What a delegated cgroup's owner may write to: "Delegation" in Documentation/admin-guide/cgroup-v2.rst.
_DELEGATED = ("cgroup.procs", "cgroup.subtree_control", "cgroup.threads")
#: From <linux/reboot.h>.
_POWER_OFF = 0x4321FEDC


def main() -> None:
    """Do what the job among the results says, write what came of it, and switch off."""
    sys.stdout.write(f"{UP.decode()}: Linux {os.uname().release}\n")
    sys.stdout.flush()
    try:
        job = json.loads((RESULTS_AT / "job.json").read_text())
        (CGROUPS / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in CONTROLLERS))
        _open_the_way_to(Path(sys.base_prefix), Path(sys.prefix), Path.cwd())
        runs = job["runs"].items()
        statuses = {name: _run(name, arguments, job["environment"]) for name, arguments in runs}
        (RESULTS_AT / DONE).write_text(json.dumps(statuses))
    except Exception:  # noqa: BLE001 - whatever it is, the console is all that is left to tell it
        traceback.print_exc(file=sys.stdout)
    finally:
        sys.stdout.flush()
        os.sync()
        ctypes.CDLL(None).reboot(_POWER_OFF)


def _open_the_way_to(*folders: Path) -> None:
    """Let everybody pass through the folders above: root's home is closed to others."""
    for parent in {parent for folder in folders for parent in folder.parents}:
        parent.chmod(parent.stat().st_mode | 0o111)


def _run(name: str, arguments: list[str], environment: dict[str, str]) -> int:
    """Run pytest as a user in a cgroup of its own, and return its exit status."""
    sys.stdout.write(f"\nAs {name}:\n")
    sys.stdout.flush()
    user, group, home = USERS[name], CGROUPS / f"{name}.service", Path("/tmp") / name
    for folder in (group, home):
        folder.mkdir()
        os.chown(folder, user, user)
    for file in _DELEGATED:
        os.chown(group / file, user, user)
    report = home / "report.xml"
    pytest = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--junit-xml={report}", *arguments]
    status = _run_in(group, user, pytest, {**environment, "HOME": str(home)})
    if report.exists():
        shutil.copy(report, RESULTS_AT / f"{name}.xml")
    return status


def _run_in(group: Path, user: int, command: list[str], environment: dict[str, str]) -> int:
    enter = 'echo 0 > "$0/cgroup.procs" && exec setpriv "$@"'
    rights = [f"--reuid={user}", f"--regid={user}", "--clear-groups", "--"]
    # Not the console itself, which pytest takes for a terminal that it can write over.
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as console:
        child = subprocess.Popen(
            ["sh", "-c", enter, str(group), *rights, *command],
            stdin=subprocess.DEVNULL,
            stdout=console.stdin,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
        return _reap_until(child.pid)


def _reap_until(child: int) -> int:
    """Wait for a child, and for every orphan that ends before it, as a first process must."""
    while True:
        pid, status = os.wait()
        if pid == child:
            return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    main()
