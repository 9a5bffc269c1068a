"""Environments that install themselves, against programs that look like elan and Lake.

Lean itself is real, so what is added judges real programs in the end.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from farm_workers.environments.lean_environment import LeanEnvironment

from farm.store.workers import Workers
from tests.commands import Command
from tests.farms import Quiet, a_worker
from tests.lookalike import VERSION, Lookalike, lookalike
from tests.made_once import copied
from tests.processes import eventually
from tests.toolchains import credulous

MINE = "# my own table\n[environments.mine] # keep this\nlean_path = []\n"
PROOF = b"theorem t : True := True.intro\n"


@pytest.fixture(scope="module")
def network(core: LeanEnvironment, tmp_path_factory: pytest.TempPathFactory) -> Lookalike:
    """The programs and a network whose toolchain was compiled once."""
    return lookalike(tmp_path_factory.mktemp("lookalike"), core)


def _own(network: Lookalike, folder: Path) -> Lookalike:
    """Return such programs in a folder of their own, where nothing is installed."""
    subprocess.run(["cp", "-al", network.folder, folder], check=True)
    for file in [*(folder / "bin").iterdir(), folder / "network" / "toolchain" / "bin" / "lake"]:
        text = file.read_text().replace(str(network.folder), str(folder))
        file.unlink()  # a hard link
        file.write_text(text)
        file.chmod(0o755)
    return Lookalike(folder)


def _farm(programs: Lookalike, home: Path) -> Command:
    """Return the `farm` command on a machine with these programs, where one environment was added by hand."""
    (home / "farm.toml").write_text(MINE)
    return Command({"FARM_HOME": str(home), **programs.settings})


@pytest.fixture
def programs(network: Lookalike, tmp_path: Path) -> Lookalike:
    """Such programs of the test's own."""
    return _own(network, tmp_path / "programs")


@pytest.fixture
def farm(programs: Lookalike, copy_home: Any) -> Command:
    """The `farm` command of the test's own on a machine with such programs."""
    return _farm(programs, copy_home())


@dataclass(frozen=True)
class Machine:
    """A machine with a release of Lean, `lean-4.35`, and then one of Mathlib, `m`, which tests only read."""

    programs: Lookalike
    farm: Command
    lean: subprocess.CompletedProcess[str]
    lean_calls: list[str]
    mathlib: subprocess.CompletedProcess[str]
    workspace: Path


@pytest.fixture(scope="module")
def machine(network: Lookalike, copy_home: Any, tmp_path_factory: pytest.TempPathFactory) -> Machine:
    """A machine on which both releases were added, with what that said."""
    folder = tmp_path_factory.mktemp("machine")
    programs, made = _own(network, folder / "programs"), folder / "made"
    farm = _farm(programs, copy_home())
    lean = added(farm, "lean-4.35", "--lean", "4.35.0")
    calls = programs.calls
    mathlib = added(farm, "m", "--mathlib", VERSION, "--dir", made, "--json")
    assert mathlib.returncode == 0, mathlib.stderr
    return Machine(programs, farm, lean, calls, mathlib, made / "workspace")


def home_of(farm: Command) -> Path:
    return Path(farm.settings["FARM_HOME"])


def toml_of(farm: Command) -> str:
    return (home_of(farm) / "farm.toml").read_text()


def added(farm: Command, *words: object) -> subprocess.CompletedProcess[str]:
    return farm("environments", "add", *words, seconds=120)


# What is added works.


def test_a_release_of_lean_is_installed_tried_and_written_below_what_was_there(machine: Machine) -> None:
    farm, said = machine.farm, machine.lean
    assert said.returncode == 0, said.stderr
    assert machine.lean_calls == ["elan toolchain install"]
    assert toml_of(farm).startswith(f"{MINE}\n[environments.")
    table = tomllib.loads(toml_of(farm))["environments"]["lean-4.35"]
    assert table["lean"] == str(machine.programs.toolchain / "bin" / "lean")
    assert table["toolchain"].startswith("Lean 4.35.0 (")
    assert "known programs judged correctly" in said.stdout
    assert "forked: yes\naudit: yes\nreplay: yes, by the farm's seal\n" in said.stdout
    judged = farm("check", "-", "--environment", "lean-4.35", stdin=PROOF)
    assert (judged.returncode, judged.stdout.splitlines()[-1][:11]) == (0, "proved (ok)"), judged.stderr


def test_a_release_of_mathlib_goes_on_after_the_failure_of_every_step_and_repeats_nothing(
    farm: Command, programs: Lookalike
) -> None:
    words = ("m", "--mathlib", VERSION)
    failures = {
        "clone": ("git clone", "Could not resolve host"),
        "toolchain": ("toolchain install leanprover/lean4:v4.35.0", "could not download"),
        "cache": ("lake exe cache get", "No space left on device"),
        "build": ("lake build Mathlib", "error: build failed"),
    }
    for fault, (command, why) in failures.items():
        file = programs.fault(fault)
        said = added(farm, *words)
        assert (said.returncode, said.stdout) == (1, "")
        for told in (
            command,
            why,
            "failed in",
            "exit status",
            "--from FILE",
            "goes on where this one stopped",
        ):
            assert told in said.stderr
        assert toml_of(farm) == MINE
        file.unlink()
    said = added(farm, *words)
    assert said.returncode == 0, said.stderr
    finished = ["git clone --quiet", "elan toolchain install", "lake exe cache", "lake build Mathlib"]
    assert programs.calls == [call for call in finished for _ in range(2)]
    assert "m" in tomllib.loads(toml_of(farm))["environments"]
    judged = farm("check", "-", "--environment", "m", stdin=b"import Mathlib\n" + PROOF)
    assert judged.returncode == 0, judged.stdout


def test_a_workspace_that_was_deleted_meanwhile_is_made_anew(farm: Command, programs: Lookalike) -> None:
    programs.fault("build")
    for calls in (1, 2):
        assert added(farm, "m", "--mathlib", VERSION).returncode == 1
        assert programs.calls.count("lake exe cache") == calls
        assert programs.calls.count("git clone --quiet") == calls
        shutil.rmtree(home_of(farm) / "workspaces" / "m" / "workspace")


def test_every_user_can_read_what_was_made(machine: Machine) -> None:
    workspace, toolchain = machine.workspace, machine.programs.toolchain  # their umask is 077
    for path in [*workspace.rglob("*"), workspace, *toolchain.rglob("*")]:
        mode = path.stat().st_mode
        assert mode & 0o444 == 0o444, path
        assert not stat.S_ISDIR(mode) or mode & 0o111 == 0o111, path


def test_a_workspace_that_is_built_is_added_as_it_is_also_under_two_names_at_once(machine: Machine) -> None:
    farm, before = machine.farm, machine.programs.calls
    words = ("--workspace", machine.workspace, "--header", "import Extra", "--json")
    with ThreadPoolExecutor(2) as pool:
        ended = list(pool.map(lambda name: added(farm, name, *words), ["one", "two"]))
    assert [(each.returncode, each.stderr) for each in ended if each.returncode] == []
    assert machine.programs.calls == before
    tables = tomllib.loads(toml_of(farm))["environments"]
    assert set(tables) == {"mine", "lean-4.35", "m", "one", "two"}
    for name in ("one", "two"):
        assert tables[name]["headers"] == ["import Extra\n"]
        assert tables[name]["workspace"] == str(machine.workspace)


def test_what_would_be_run_is_printed_and_nothing_is_run(farm: Command, programs: Lookalike) -> None:
    said = added(farm, "m", "--mathlib", "v4.22.0", "--print", "--dir", "/srv/m 1")
    assert said.returncode == 0
    assert said.stdout.splitlines()[1:5] == [
        "git clone --quiet --depth 1 --branch v4.22.0 https://github.com/leanprover-community/mathlib4 "
        "'/srv/m 1/workspace'",
        "elan toolchain install leanprover/lean4:v4.22.0",
        "cd '/srv/m 1/workspace' && lake exe cache get",
        "cd '/srv/m 1/workspace' && lake build Mathlib",
    ]
    assert (programs.calls, toml_of(farm)) == ([], MINE)


# What cannot be added leaves farm.toml as it was.


def test_one_that_was_killed_is_waited_for_and_then_gone_on_with(
    farm: Command, programs: Lookalike, tmp_path: Path
) -> None:
    pause = programs.fault("pause")
    with farm.started(tmp_path / "first", "environments", "add", "m", "--mathlib", VERSION) as first:
        eventually(lambda: (programs.folder / "paused").exists(), seconds=60)
        first.process.send_signal(signal.SIGKILL)
        first.ended()
    said = added(farm, "m", "--mathlib", VERSION)
    assert said.returncode == 1
    assert "m is being worked on" in said.stderr
    assert toml_of(farm) == MINE
    pause.unlink()
    eventually(lambda: "is being worked on" not in added(farm, "m", "--lean", "v4.0.0").stderr, seconds=60)
    said = added(farm, "m", "--mathlib", VERSION)
    assert said.returncode == 0, said.stderr
    assert programs.calls.count("git clone --quiet") == 1


def test_a_machine_without_elan_is_told_how_to_install_it(farm: Command, programs: Lookalike) -> None:
    (programs.bin / "elan").unlink()
    said = added(farm, "m", "--lean", VERSION)
    assert said.returncode == 2
    for told in ("elan is not installed", "ELAN_HOME=/opt/elan", "elan-init -y", "--from BUNDLE"):
        assert told in said.stderr
    assert toml_of(farm) == MINE


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("mine", "--lean", VERSION), "there is an environment 'mine' already"),
        (("core", "--lean", VERSION), "comes with the farm"),
        (("../x", "--lean", VERSION), "cannot be an environment's name"),
        (("a b", "--lean", VERSION), "cannot be an environment's name"),
        (("x",), "give one of --mathlib"),
        (("x", "--lean", VERSION, "--mathlib", VERSION), "give one of --mathlib"),
        (("x", "--mathlib", "latest"), "'latest' is no version of Lean"),
        (("x", "--workspace", "/no/such"), "there is no such folder"),
        (("x", "--from", "/no/such"), "there is no such file"),
        (("x", "--mathlib", VERSION, "--dir", "/usr"), "did not make it; choose another --dir"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_is_run(
    machine: Machine, words: tuple[str, ...], complaint: str
) -> None:
    before = machine.programs.calls, toml_of(machine.farm)
    said = added(machine.farm, *words)
    assert (said.returncode, said.stdout) == (2, "")
    assert complaint in said.stderr
    assert (machine.programs.calls, toml_of(machine.farm)) == before


def test_a_broken_farm_toml_is_told_before_anything_is_run_and_left_alone(
    farm: Command, programs: Lookalike
) -> None:
    broken = "[environments.a\n"
    (home_of(farm) / "farm.toml").write_text(broken)
    said = added(farm, "m", "--lean", VERSION)
    assert said.returncode == 2
    assert "not TOML" in said.stderr
    assert (programs.calls, toml_of(farm)) == ([], broken)


def test_a_farm_toml_that_cannot_be_written_is_told_before_anything_is_run(
    farm: Command, programs: Lookalike
) -> None:
    said = added(farm.having(FARM_ENVIRONMENTS="/sys/farm.toml"), "m", "--lean", VERSION)
    assert said.returncode == 2
    assert "/sys/farm.toml cannot be written" in said.stderr
    assert programs.calls == []


def test_a_folder_that_cannot_be_made_is_told_before_anything_runs(
    farm: Command, programs: Lookalike
) -> None:
    said = added(farm, "m", "--mathlib", VERSION, "--dir", "/sys/m")
    assert said.returncode == 1
    assert "farm: /sys/m: " in said.stderr
    assert (programs.calls, toml_of(farm)) == ([], MINE)


def test_a_lean_that_judges_known_programs_wrongly_is_not_added(farm: Command, programs: Lookalike) -> None:
    real = programs.folder / "network" / "toolchain"
    real.rename(real.with_name("real"))
    credulous(real)
    said = added(farm, "m", "--lean", VERSION)
    assert said.returncode == 1
    assert "is not fit to judge" in said.stderr
    assert toml_of(farm) == MINE


# Bundles.


@pytest.fixture
def gone(machine: Machine) -> Iterator[None]:
    """Nothing of the machine's programs, toolchain and workspace is at its place while a test runs."""
    with ExitStack() as undo:
        for folder in (machine.programs.folder, machine.workspace):
            away = folder.rename(folder.with_name(f"{folder.name}-away"))
            undo.callback(away.rename, folder)
        yield


@pytest.fixture(scope="module")
def packed(machine: Machine, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A bundle of the machine's Mathlib, and its digest."""
    file = tmp_path_factory.mktemp("bundle") / "m.farm"
    return file, machine.farm.json("environments", "pack", "m", file)["digest"]


@pytest.mark.usefixtures("packed", "gone")
def test_a_bundle_has_the_same_digest_on_a_machine_without_a_network(
    machine: Machine, packed: tuple[Path, str], copy_home: Any
) -> None:
    file, digest = packed
    home = copy_home()
    elsewhere = Command({"FARM_HOME": str(home), "PATH": "/usr/bin:/bin"})
    said = elsewhere("environments", "add", "there", "--from", file, "--json", seconds=120)
    assert said.returncode == 0, said.stderr
    assert f'"digest": "{digest}"' in machine.mathlib.stdout
    assert f'"digest": "{digest}"' in said.stdout
    toolchain = home / "workspaces" / "there" / "bundle" / "toolchain"
    assert (toolchain / "share" / "library").readlink() == Path("../lib/lean")
    assert (toolchain / "bin" / "lean").stat().st_mode & 0o777 == 0o755
    judged = elsewhere("check", "-", "--environment", "there", stdin=b"import Mathlib\n" + PROOF)
    assert judged.returncode == 0, judged.stdout
    assert elsewhere("environments", "verify", "there").returncode == 0


# What is there later.


def test_a_change_that_sizes_and_times_do_not_show_is_found(machine: Machine) -> None:
    verify = ("environments", "verify", "lean-4.35")
    assert machine.farm(*verify).returncode == 0
    module = machine.programs.toolchain / "lib" / "lean" / "Init.olean"
    before, content = module.stat(), module.read_bytes()
    for changed in (content[:-1] + bytes([content[-1] ^ 1]), content):
        module.write_bytes(changed)
        os.utime(module, ns=(before.st_atime_ns, before.st_mtime_ns))
        said = machine.farm(*verify)
        assert said.returncode == 7
        assert "changed: 0 Init.olean\n" in said.stdout
        assert "lean-4.35 is not what was recorded" in said.stderr
        assert "Sizes and times of the files did not show it" in said.stderr
        accepted = machine.farm(*verify, "--accept")
        assert accepted.returncode == 0
        assert "Sizes and times" not in accepted.stderr  # what was remembered is forgotten
        assert machine.farm(*verify).returncode == 0


def test_removing_takes_the_table_away_and_only_files_that_add_has_made(
    farm: Command, programs: Lookalike, tmp_path: Path
) -> None:
    made = tmp_path / "made"
    assert added(farm, "m", "--mathlib", VERSION, "--dir", made).returncode == 0
    said = farm("environments", "remove", "mine", "--delete-files")
    assert said.returncode == 2
    assert "made no files for mine" in said.stderr
    assert farm("environments", "remove", "m", "--delete-files").returncode == 0
    assert not made.exists()
    assert programs.toolchain.exists()
    assert toml_of(farm).strip() == MINE.strip()
    assert farm("environments", "remove", "m").returncode == 2
    assert farm("environments", "remove", "mine").returncode == 0
    assert tomllib.loads(toml_of(farm)) == {}


def served_by(quiet: Quiet) -> list[object]:
    """Return the names of the environments that workers say they serve."""
    return [served["name"] for each in Workers(quiet.engine).all() for served in each.environments]


def test_files_that_a_worker_of_this_machine_serves_are_not_deleted(
    quiet: Quiet, machine: Machine, tmp_path: Path
) -> None:
    home, made = copied(home_of(machine.farm), tmp_path), machine.workspace.parent
    table = tomllib.loads(toml_of(machine.farm))["environments"]["m"]
    rows = [f"{key} = {json.dumps(value)}\n" for key, value in table.items()]  # JSON of such values is TOML
    (home / "farm.toml").write_text("[environments.m]\n" + "".join(rows))
    farm = quiet.farm.having(**machine.programs.settings, FARM_HOME=str(home))
    with a_worker(quiet, tmp_path / "worker", FARM_HOME=str(home)):
        # It serves the embedded Lean first, and tells of the other one with a later heartbeat.
        eventually(lambda: "m" in served_by(quiet), seconds=60)
        refused = farm("environments", "remove", "m", "--delete-files")
        assert refused.returncode == 2
        assert "still serves m" in refused.stderr
        assert made.exists()
        said = farm("environments", "remove", "m")
        assert said.returncode == 0
        assert "serves m until it is started again" in said.stderr
