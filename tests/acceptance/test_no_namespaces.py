"""Machines without namespaces, with Landlock and without: why, who goes on, and what is said of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from farm_workers.box.isolation import STRANGER

from farm.embedded import down
from farm.judging.forgeable import FORGEABLE
from tests.commands import PROVED, Command, Running, entry, lines, write
from tests.farms import Quiet
from tests.isolation_levels import isolated
from tests.no_namespaces import NEITHER, PREFIX
from tests.processes import eventually

NO_LANDLOCK = (
    "Landlock is not available: this kernel has none, or a filter of system calls hides it; use Linux"
)
CAUSE = "Namespaces are not available: a filter of system calls (seccomp) refuses unshare (EPERM)"


@contextmanager
def a_worker(
    quiet: Quiet, folder: Path, prefix: Sequence[str] = NEITHER, **settings: str
) -> Iterator[Running]:
    with quiet.farm.having(**settings).started(folder, "worker", prefix=prefix) as worker:
        yield worker


def test_a_worker_started_by_hand_ends_and_its_first_words_are_the_cause_and_the_remedy(
    quiet: Quiet, tmp_path: Path
) -> None:
    with a_worker(quiet, tmp_path, FARM_ISOLATION="") as worker:
        assert worker.ended() == 2
        (said,) = worker.said.splitlines()
    assert "isolation landlock is required, but only " in said
    assert CAUSE in said
    assert NO_LANDLOCK in said
    assert "seccomp=unconfined" in said or "RestrictNamespaces=no" in said
    assert said.endswith(f"Here {FORGEABLE}; FARM_ISOLATION=rlimit accepts that.")


def test_a_worker_started_by_hand_serves_with_landlock(quiet: Quiet, tmp_path: Path) -> None:
    with a_worker(quiet, tmp_path, PREFIX, FARM_ISOLATION="") as worker:
        eventually(lambda: "Serving" in worker.said, seconds=60)
        first = worker.said.splitlines()[0]
    assert " INFO " in first
    assert first.endswith("landlock")


def test_a_worker_that_is_to_have_namespaces_does_not_serve_with_landlock(
    quiet: Quiet, tmp_path: Path
) -> None:
    with a_worker(quiet, tmp_path, PREFIX, FARM_ISOLATION="bwrap") as worker:
        assert worker.ended() == 2
        (said,) = worker.said.splitlines()
    assert "isolation bwrap is required, but only " in said
    assert said.endswith("RestrictNamespaces=no, and no SystemCallFilter= without @mount.") or CAUSE in said
    assert FORGEABLE not in said


def test_a_worker_that_is_told_to_do_without_serves_and_its_first_line_says_what_that_means(
    quiet: Quiet, tmp_path: Path
) -> None:
    with a_worker(quiet, tmp_path, FARM_ISOLATION="rlimit") as worker:
        eventually(lambda: "Serving" in worker.said, seconds=60)
        first = worker.said.splitlines()[0]
    assert " WARNING " in first
    assert f"{FORGEABLE} here." in first
    assert CAUSE in first


def test_a_worker_with_namespaces_says_so_first(quiet: Quiet, tmp_path: Path) -> None:
    with isolated(tmp_path / "work", "bwrap"):
        pass
    with quiet.farm.having(FARM_ISOLATION="").started(tmp_path, "worker") as worker:
        eventually(lambda: "Serving" in worker.said, seconds=60)
        assert worker.said.splitlines()[0].endswith("bwrap")


def run(farm: Command, folder: Path, *words: object, prefix: Sequence[str] = NEITHER) -> Running:
    """Run a command to its end where there are no namespaces."""
    with farm.started(folder, *words, prefix=prefix) as running:
        running.ended(seconds=200.0)
    return running


@pytest.mark.timeout(300)  # all of a farm is set up
def test_the_farms_own_worker_goes_on_and_everything_says_that_a_proof_could_forge_verdicts(
    home: Path, pair: str, tmp_path: Path
) -> None:
    farm = Command({"FARM_HOME": str(home), "FARM_SERVERS": pair})
    manifest = write(tmp_path / "a.jsonl", entry(PROVED, 1))
    submitted = run(farm, tmp_path / "submit", "submit", manifest)
    assert submitted.process.returncode == 0, submitted.said
    assert f"1 verdict was made where {FORGEABLE}" in submitted.out.read_text()
    (line,) = lines(manifest)
    assert (line["proof_status"], line["farm"]["forgeable"]) == ("completed", True)
    log = (home / "worker.log").read_text()
    assert f"{FORGEABLE} here." in log
    assert CAUSE in log

    assert farm.json("status")["forgeable"] == 1
    parts = json.loads(run(farm, tmp_path / "doctor", "doctor", "--json").out.read_text())["parts"]
    (isolation,) = [part for part in parts if part["part"] == "isolation"]
    assert (isolation["ok"], isolation["weak"]) == (True, True)
    assert CAUSE in isolation["words"]
    assert isolation["words"].endswith(f"Here {FORGEABLE}.")

    # The same farm, on a kernel with Landlock: its verdicts are worth their rewards.
    down(home)
    walled = write(tmp_path / "b.jsonl", entry(PROVED, 2))
    submitted = run(farm, tmp_path / "again", "submit", walled, prefix=PREFIX)
    assert submitted.process.returncode == 0, submitted.said
    assert FORGEABLE not in submitted.out.read_text()
    (line,) = lines(walled)
    assert (line["proof_status"], line["farm"]["forgeable"]) == ("completed", False)
    assert line["farm"]["isolation"].split("+")[-1] == "landlock"
    parts = json.loads(run(farm, tmp_path / "d", "doctor", "--json", prefix=PREFIX).out.read_text())["parts"]
    (isolation,) = [part for part in parts if part["part"] == "isolation"]
    assert (isolation["ok"], isolation["weak"]) == (True, False)


def test_a_check_goes_on_for_who_asks_for_it_and_says_so(prepared: Path, tmp_path: Path) -> None:
    program = tmp_path / "t.lean"
    program.write_text(str(entry(PROVED, 1)["predicted_proof"]))
    checked = run(Command({"FARM_HOME": str(prepared)}), tmp_path / "check", "check", program)
    assert checked.process.returncode == 0
    assert f"{FORGEABLE} here. {CAUSE}" in checked.said


EXPLAIN = "from farm_workers.box.obstacles import explain, look; print(explain(look()))"


def explained(*inside: str) -> str:
    """Return what is said of a place that these words of ``unshare`` and a script make."""
    unshare: Sequence[str] = ["unshare"] if os.geteuid() == 0 else ["unshare", "--map-root-user"]
    *options, script = inside
    command = [*unshare, *options, "sh", "-ec", f'{script}; exec "$@"', "sh", sys.executable, "-c", EXPLAIN]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_where_the_kernel_allows_no_more_namespaces_that_is_the_cause() -> None:
    said = explained("--user", "--map-root-user", "echo 0 > /proc/sys/user/max_user_namespaces")
    assert said.startswith("user.max_user_namespaces is 0; set it ")
    assert said.endswith("with: sudo sysctl -w user.max_user_namespaces=15000\n")


def test_where_proc_is_masked_that_is_the_cause() -> None:
    said = explained("--mount", "mount -t tmpfs none /proc/tty")
    assert said.startswith("/proc/tty are masked, so no new /proc can be mounted; ")


def test_where_nothing_is_refused_there_is_no_cause() -> None:
    assert explained("--mount", "true") == "None\n"


LOOK = """
import sys
from pathlib import Path
from farm.limits import Limits
from farm_workers.box import once as box
from farm_workers.box.isolation import prepared
with prepared(Path(sys.argv[1]), most="rlimit") as found:
    print(found.words)
    script = "id -u; echo a > $HOME/b; cat b"
    print(box.run(["sh", "-c", script], isolation=found, limits=Limits(), environment={}).stdout.split())
"""
#: What container runtimes leave to root by default; not among them is the right to read all files.
OF_CONTAINERS = "+chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid,+setpcap,+sys_chroot,+setfcap"


def looked(folder: Path, *capabilities: str) -> str:
    """Return what is said of the weakest level, and by a command in it, where root has these capabilities."""
    bound = ["setpriv", "--inh-caps=-all", f"--bounding-set={','.join(['-all', *capabilities])}"]
    command = [*bound, sys.executable, "-c", LOOK, str(folder)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")


@only_root
def test_a_root_worker_that_cannot_become_another_user_says_that_checks_are_root(tmp_path: Path) -> None:
    said = looked(tmp_path)
    assert "Checks run as root here, like the worker: " in said
    assert said.endswith("[b'0', b'a']\n")


@only_root
def test_a_root_worker_with_the_rights_of_a_container_makes_a_check_another_user(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    said = looked(tmp_path / "work", OF_CONTAINERS)
    assert "Checks run as root" not in said
    assert said.endswith(f"[b'{STRANGER}', b'a']\n")
