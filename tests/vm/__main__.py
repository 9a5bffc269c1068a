"""Run tests in a software-emulated machine with cgroup v2, as root and as an unprivileged user with a cgroup.

    python -m tests.vm [--as root] [--as delegated] [--seconds N] [what pytest takes]

The machine has this host's files under Debian's kernel. What the tests write stays in the machine's memory;
pytest's reports of which of them ran are in build/vm/root.xml and build/vm/delegated.xml.
"""

from __future__ import annotations

import argparse
import json
import shutil
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
#: Of the levels of isolation only the strongest, which the others are parts of; and no long series (of boxes,
#: of folders in each other), which are for machines that are not emulated.
_ONLY = "not rlimit and not [bwrap and not [cgroup- and not [cgroup] and not many_boxes and not seq"
_BOX = ("tests/vm/test_emulated.py", "tests/acceptance/test_isolation.py", "tests/acceptance/test_box.py")
_LEAN = [
    f"tests/acceptance/test_checker.py::test_a_case_gets_its_verdict[{case}]"
    for case in ("proved/term", "rejected/error")
]
_ORACLE = [
    f"tests/acceptance/test_oracle.py::test_the_box_and_benchexec_agree[{case}]"
    for case in ("works for a while", "never ends in a grandchild", "takes too much memory together")
]
#: What each user runs unless something else is asked for.
SELECTIONS = {
    "root": ["-m", "", "-k", _ONLY, *_BOX, *_LEAN, *_ORACLE],
    "delegated": ["-k", _ONLY, *_BOX],
}
#: By how much longer things take under emulation; `tests.processes.eventually` waits so much longer.
PATIENCE = 10
#: What one test may take, in place of pyproject.toml's 120 s.
TEST_SECONDS = 300


def main() -> int:
    """Run the tests and return 0 when all of them passed and there were some."""
    wanted, arguments = _arguments()
    if why := hidden(REPOSITORY):
        sys.stderr.write(f"test-vm: {why}\n")
        return 2
    begun = time.monotonic()
    try:
        parts = gathered(BUILD)
        with tempfile.TemporaryDirectory(dir=BUILD, prefix="run-") as name:
            results = Path(name)
            _write_job(results, {user: _selected(user, arguments) for user in wanted.users or SELECTIONS})
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


def hidden(repository: Path) -> str | None:
    """Return why the machine cannot see a checkout, None where it can: it mounts a /tmp of its own."""
    if Path("/tmp") not in repository.resolve().parents:
        return None
    return f"the machine has a /tmp of its own, which hides {repository}; move the checkout elsewhere"


def _arguments() -> tuple[argparse.Namespace, list[str]]:
    parser = argparse.ArgumentParser(
        prog="python -m tests.vm", description=__doc__.partition("\n")[0], allow_abbrev=False
    )
    parser.add_argument("--as", dest="users", action="append", choices=SELECTIONS, help="only as this user")
    parser.add_argument("--seconds", type=float, default=900.0, help="for all of it (900)")
    return parser.parse_known_args()


def _selected(user: str, arguments: list[str]) -> list[str]:
    """Return what pytest gets: the user's selection too, unless a file or folder is named."""
    named = any(Path(word.partition("::")[0]).exists() for word in arguments)
    return arguments if named else [*SELECTIONS[user], *arguments]


def _write_job(results: Path, selections: dict[str, list[str]]) -> None:
    environment = {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "LANG": "C.UTF-8",
        "COLUMNS": "110",
        "FARM_TEST_VM": "1",
        "FARM_TEST_PATIENCE": str(PATIENCE),
        "CI": "true",  # what is missing here is a failure, never a skip
    }
    options = [f"--timeout={TEST_SECONDS}", f"--color={'yes' if sys.stdout.isatty() else 'no'}"]
    runs = {user: [*options, *selection] for user, selection in selections.items()}
    job = {"runs": runs, "environment": environment}
    (results / "job.json").write_text(json.dumps(job))


def _told(results: Path) -> bool:
    """Say for each user how many tests ran, and return whether all passed and there were some."""
    passed = True
    for user, status in json.loads((results / DONE).read_text()).items():
        ran, skipped = _counted(results / f"{user}.xml")
        sys.stdout.write(f"test-vm: as {user}: {ran} tests ran, {skipped} skipped, status {status}\n")
        passed = passed and status == 0 and ran > 0
    return passed


def _counted(report: Path) -> tuple[int, int]:
    """Return how many tests ran and how many were skipped, from pytest's report, and keep that."""
    if not report.exists():
        return 0, 0
    suites = list(ElementTree.parse(shutil.copy(report, BUILD)).iter("testsuite"))
    skipped = sum(int(suite.get("skipped", 0)) for suite in suites)
    return sum(int(suite.get("tests", 0)) for suite in suites) - skipped, skipped


if __name__ == "__main__":
    sys.exit(main())
