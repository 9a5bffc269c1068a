"""Run tests in a software-emulated machine with cgroup v2, as root and as an unprivileged user with a cgroup.

    python -m tests.vm [--as root] [--as delegated] [--seconds N] [what pytest takes]

The machine has this host's files under Debian's kernel. What the tests write stays in the machine's memory.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from tests.vm import initramfs
from tests.vm.machine import DONE, Machine, MachineFailed
from tests.vm.parts import MissingPart, gathered

REPOSITORY = Path(__file__).parents[2]
BUILD = REPOSITORY / "build" / "vm"
#: The machine's first process.
GUEST = ("/usr/bin/env", "-i", f"--chdir={REPOSITORY}", sys.executable, "-m", "tests.vm.guest")
USERS = ("root", "delegated")
SELECTION = (
    "tests/vm/test_emulated.py",
    "tests/acceptance/test_box.py",
    "tests/acceptance/test_isolation.py",
)
#: By how much longer things take under emulation; `tests.processes.eventually` waits so much longer.
PATIENCE = 10
#: What one test may take, in place of pyproject.toml's 120 s.
TEST_SECONDS = 300


def main() -> int:
    """Run the tests and return 0 when all of them passed and there were some."""
    wanted, arguments = _arguments()
    begun = time.monotonic()
    try:
        parts = gathered(BUILD)
        with tempfile.TemporaryDirectory(dir=BUILD, prefix="run-") as name:
            results = Path(name)
            _write_job(results, wanted.users or list(USERS), arguments or list(SELECTION))
            first_files = results / "initramfs"
            initramfs.write(first_files, parts, GUEST)
            Machine(kernel=parts.kernel, initramfs=first_files, results=results).run(seconds=wanted.seconds)
            passed = _told(results)
    except MissingPart as error:
        sys.stderr.write(f"The machine cannot be made here. What to do first:\n    {error}\n")
        return 2
    except MachineFailed as error:
        sys.stderr.write(f"\ntest-vm: {error}\n")
        return 3
    sys.stdout.write(f"test-vm: {time.monotonic() - begun:.0f} s\n")
    return 0 if passed else 1


def _arguments() -> tuple[argparse.Namespace, list[str]]:
    parser = argparse.ArgumentParser(prog="python -m tests.vm", description=__doc__.partition("\n")[0])
    parser.add_argument("--as", dest="users", action="append", choices=USERS, help="only as this user")
    parser.add_argument("--seconds", type=float, default=900.0, help="for all of it (900)")
    return parser.parse_known_args()


def _write_job(results: Path, users: list[str], arguments: list[str]) -> None:
    environment = {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "LANG": "C.UTF-8",
        "COLUMNS": "110",
        "FARM_TEST_VM": "1",
        "FARM_TEST_PATIENCE": str(PATIENCE),
        **{name: os.environ[name] for name in ("CI",) if name in os.environ},
    }
    options = [f"--timeout={TEST_SECONDS}", f"--color={'yes' if sys.stdout.isatty() else 'no'}"]
    job = {"as": users, "arguments": [*options, *arguments], "environment": environment}
    (results / "job.json").write_text(json.dumps(job))


def _told(results: Path) -> bool:
    """Say for each user how many tests ran, and return whether all passed and there were some."""
    statuses = json.loads((results / DONE).read_text())
    for user, status in statuses.items():
        ran, skipped = _counted(results / f"{user}.xml")
        sys.stdout.write(f"test-vm: as {user}: {ran} tests ran, {skipped} skipped, status {status}\n")
        statuses[user] = status or int(not ran)
    return not any(statuses.values())


def _counted(report: Path) -> tuple[int, int]:
    """Return how many tests ran and how many were skipped, from pytest's JUnit report."""
    suites = list(ElementTree.parse(report).iter("testsuite")) if report.exists() else []
    skipped = sum(int(suite.get("skipped", 0)) for suite in suites)
    return sum(int(suite.get("tests", 0)) for suite in suites) - skipped, skipped


if __name__ == "__main__":
    sys.exit(main())
