"""The units for systemd are well formed, guard what they start, and agree with the farm."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from farm.settings import VARIABLES, Settings
from tests.commands import Command
from tests.deploy.unit import FOLDER, UNITS, Unit, environment_file

#: How exposed systemd may call them, in tenths: a worker makes namespaces for its checks.
MOST_EXPOSED = {"farm-worker": 35, "farm-serve": 15, "farm-metrics": 15, "farm-prune": 15}


@pytest.fixture(params=sorted(UNITS))
def unit(request: pytest.FixtureRequest) -> Unit:
    return UNITS[request.param]


def analyze(*words: str) -> subprocess.CompletedProcess[str]:
    assert shutil.which("systemd-analyze"), "install it: sudo apt-get install systemd"
    return subprocess.run(["systemd-analyze", *words], capture_output=True, text=True, check=False)


def test_systemd_finds_nothing_wrong(unit: Unit, tmp_path: Path) -> None:
    copy = _copy(unit.path, tmp_path)
    verified = analyze("verify", str(copy))
    assert (verified.returncode, verified.stdout, verified.stderr) == (0, "", "")


def _copy(path: Path, folder: Path) -> Path:
    """Copy a unit, and have it start a program that there is."""
    program = folder / "bin" / "farm"
    if not program.exists():
        program.parent.mkdir()
        program.symlink_to("/bin/true")
    copy = folder / path.name
    copy.write_text(path.read_text().replace("/opt/farm/bin/farm", str(program)))
    return copy


@pytest.mark.parametrize("timer", sorted(FOLDER.glob("*.timer")), ids=lambda path: path.stem)
def test_systemd_knows_when_a_timer_starts_its_unit(timer: Path, tmp_path: Path) -> None:
    _copy(UNITS[timer.stem].path, tmp_path)
    verified = analyze("verify", str(_copy(timer, tmp_path)))
    assert (verified.returncode, verified.stdout, verified.stderr) == (0, "", "")
    (when,) = re.findall(r"^OnCalendar=(.+)$", timer.read_text(), re.MULTILINE)
    assert "Next elapse" in analyze("calendar", when).stdout


def test_systemd_does_not_find_it_exposed(unit: Unit) -> None:
    most = MOST_EXPOSED[unit.name]
    found = analyze("security", "--offline=true", f"--threshold={most}", "--no-pager", str(unit.path))
    assert found.returncode == 0, found.stdout


def test_every_setting_is_one_of_the_farm_s(unit: Unit) -> None:
    named = set(re.findall(r"FARM_[A-Z_]+", unit.path.read_text() + environment_file().read_text()))
    assert named <= set(VARIABLES)


def test_the_settings_together_are_accepted(unit: Unit, tmp_path: Path) -> None:
    values = unit.variables()
    for name, url in (
        ("FARM_DATABASE_URL_FILE", "postgresql://farm@db/farm"),
        ("FARM_BROKER_URL_FILE", "redis://r/0"),
    ):
        (tmp_path / name).write_text(url)
        values[name] = str(tmp_path / name)
    settings = Settings.load(values)
    assert settings.home == Path("/var") / "lib" / unit["StateDirectory"]


def test_the_words_of_a_unit_are_the_farm_s(unit: Unit) -> None:
    said = Command()(*unit.command[1:], "--help")  # an option that there is not is refused first
    assert said.returncode == 0, said.stderr


def test_a_worker_has_the_time_that_it_gives_its_checks() -> None:
    worker = UNITS["farm-worker"]
    grace = Settings.load({"FARM_GRACE_SECONDS": worker.variables()["FARM_GRACE_SECONDS"]}).grace_seconds
    assert float(worker["TimeoutStopSec"]) >= grace + 15
    assert worker["KillMode"] == "mixed"  # a signal to Lean would look like a crash of the proof's


def test_what_bubblewrap_needs_is_left_to_a_worker() -> None:
    """As far as systemd could take it away: see systemd.exec(5) and docs/why/isolation.md."""
    worker = UNITS["farm-worker"]
    taken = {
        *("RestrictNamespaces", "PrivateUsers", "ProtectHostname", "ProtectKernelTunables"),
        *("ProtectKernelLogs", "ProtectProc", "ProcSubset", "ProtectControlGroups"),
    }
    assert not taken & set(worker.settings)
    assert "AF_NETLINK" in worker["RestrictAddressFamilies"]
    assert {"cpu", "memory", "pids"} == set(worker["Delegate"].split())
    assert worker["OOMPolicy"] == "continue"


def test_the_user_is_one_that_the_node_makes(unit: Unit, tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    made = ["systemd-sysusers", f"--root={tmp_path}", str(FOLDER / "farm.sysusers")]
    subprocess.run(made, check=True, capture_output=True)
    users = [line.split(":") for line in (tmp_path / "etc" / "passwd").read_text().splitlines()]
    (farm,) = [each for each in users if each[0] == unit["User"]]
    assert farm[5:] == [unit.variables()["FARM_HOME"], "/usr/sbin/nologin"]


def test_the_wrapper_is_sound_shell() -> None:
    subprocess.run([Path(sys.executable).with_name("shellcheck"), str(FOLDER / "farm-node")], check=True)
