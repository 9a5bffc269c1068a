"""What this machine checks with, as its commands tell it: isolation, environments, canaries."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from farm_workers.box.isolation import Isolation
from farm_workers.environments.lean_environment import LeanEnvironment

from tests.commands import ENDLESS, HEADER, PROGRAMS, PROVED, Command, entry, verdicts, write
from tests.farms import Quiet, wait_for_run
from tests.processes import eventually
from tests.toolchains import Toolchain, credulous, toolchain

#: No machine has both, so no worker can have it.
IMPOSSIBLE = "cgroup1+cgroup2"


def program(kind: tuple[str, str]) -> bytes:
    return (HEADER + PROGRAMS[kind].format(n=1)).encode()


def file_of(folder: Path, *tables: str) -> Path:
    file = folder / "environments.toml"
    file.write_text("".join(tables))
    return file


@pytest.fixture
def mine(core: LeanEnvironment, tmp_path: Path) -> Toolchain:
    """The embedded Lean dressed as a toolchain."""
    return toolchain(tmp_path / "toolchain", core)


@pytest.fixture
def mixed(core: LeanEnvironment, mine: Toolchain, quiet: Quiet, tmp_path: Path) -> Quiet:
    """A farm whose machine has a sound environment, one without a Lean, and one with a credulous Lean."""
    sound = mine.table("mine", f'lean_path = ["{core.lean_path[0]}"]', r'header = "prelude\nimport Core\n"')
    broken = '[environments.broken]\nlean = "/no/such/lean"\n'
    file = file_of(tmp_path, sound, broken, credulous(tmp_path / "credulous").table("credulous"))
    return Quiet(quiet.farm.having(FARM_ENVIRONMENTS=str(file)), quiet.engine, quiet.redis)


# farm check


def test_a_check_tells_how_lean_was_run_and_what_held_it(prepared: Path, isolation: Isolation) -> None:
    farm = Command({"FARM_HOME": str(prepared)})
    facts = json.loads(farm("check", "-", "--json", stdin=program(PROVED)).stdout)
    assert (facts["way"], facts["isolation"]) == ("forked", isolation.name)
    assert facts["cpu_seconds"] > 0
    assert facts["peak_memory_mib"] > 0
    said = farm("check", "-", stdin=program(PROVED)).stdout
    assert f"way forked, isolation {isolation.name}, " in said


def test_a_check_can_be_made_in_another_way(prepared: Path) -> None:
    asked = ("check", "-", "--json", "--way", "cold")
    facts = json.loads(Command({"FARM_HOME": str(prepared)})(*asked, stdin=program(PROVED)).stdout)
    assert (facts["way"], facts["verdict"]) == ("cold", "proved")


def test_processor_time_has_a_limit_of_its_own(prepared: Path) -> None:
    asked = ("check", "-", "--json", "--timeout", "60", "--cpu", "0.5")
    facts = json.loads(Command({"FARM_HOME": str(prepared)})(*asked, stdin=program(ENDLESS)).stdout)
    assert (facts["verdict"], facts["reason"]) == ("timeout", "cpu_limit")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--cpu", "0"), ("processor time", "above 0")),
        (("--cpu", "nan"), ("processor time", "above 0")),
        (("--way", "warm"), ("--way warm", "forked, prepared, cold")),
    ],
)
def test_a_check_that_cannot_be_made_so_is_bad_usage(
    prepared: Path, arguments: tuple[str, ...], says: tuple[str, ...]
) -> None:
    said = Command({"FARM_HOME": str(prepared)})("check", "-", *arguments, stdin=program(PROVED))
    assert (said.returncode, said.stdout) == (2, "")
    assert [words for words in says if words not in said.stderr] == []


def test_a_check_on_a_machine_without_the_isolation_that_is_demanded_is_not_made(prepared: Path) -> None:
    farm = Command({"FARM_HOME": str(prepared), "FARM_ISOLATION": IMPOSSIBLE})
    said = farm("check", "-", stdin=program(PROVED))
    assert (said.returncode, said.stdout) == (2, "")
    assert IMPOSSIBLE in said.stderr


def test_a_check_is_not_made_without_the_cgroup_that_is_named(prepared: Path) -> None:
    farm = Command({"FARM_HOME": str(prepared), "FARM_CGROUP": "/no/such/cgroup"})
    said = farm("check", "-", stdin=program(PROVED))
    assert (said.returncode, said.stdout) == (2, "")
    assert "/no/such/cgroup" in said.stderr


def test_a_home_that_is_no_folder_is_named(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.touch()
    said = Command({"FARM_HOME": str(home)})("check", "-", stdin=program(PROVED))
    assert (said.returncode, said.stdout) == (1, "")
    assert f"FARM_HOME is {home}" in said.stderr


def test_a_check_in_an_environment_that_is_broken_here_says_why(mixed: Quiet) -> None:
    said = mixed.farm("check", "-", "--environment", "broken", stdin=program(PROVED))
    assert said.returncode == 2
    assert "lean: no program '/no/such/lean'" in said.stderr


# farm submit


@pytest.mark.parametrize(("given", "stored"), [((), 3.0), (("--cpu", "0.25"), 0.25)])
def test_a_run_stores_its_limit_of_processor_time(
    quiet: Quiet, tmp_path: Path, given: tuple[str, ...], stored: float
) -> None:
    manifest = write(tmp_path / "a.jsonl", entry(PROVED, 1))
    said = quiet.farm("submit", manifest, "--no-wait", "--timeout", "1.5", *given)
    assert said.returncode == 0, said.stderr
    assert quiet.ask("SELECT cpu_seconds FROM checks") == [stored]


def test_a_run_with_a_limit_that_is_none_is_bad_usage(quiet: Quiet, tmp_path: Path) -> None:
    said = quiet.farm("submit", write(tmp_path / "a.jsonl", entry(PROVED, 1)), "--cpu", "-1")
    assert said.returncode == 2
    assert "processor time" in said.stderr
    assert quiet.rows() == {}


# farm environments, farm doctor


def test_environments_are_listed_with_who_serves_them_and_what_is_wrong(mixed: Quiet) -> None:
    listed = {each["name"]: each for each in mixed.farm.json("environments")["environments"]}
    assert list(listed) == ["broken", "core", "credulous", "mine"]
    core, mine, broken = listed["core"], listed["mine"], listed["broken"]
    assert (core["installed"], core["served"], core["served_digest"]) == (True, True, "d1")
    assert (mine["installed"], mine["served"], mine["headers"]) == (True, False, ["prelude\nimport Core\n"])
    assert mine["toolchain"] == core["toolchain"] != ""
    assert len(mine["digest"]) == 64
    assert (broken["installed"], broken["digest"], broken["toolchain"]) == (False, None, None)
    assert "no program '/no/such/lean'" in broken["problem"]
    said = mixed.farm("environments")
    assert (said.returncode, said.stderr) == (0, "")
    for words in ("never served; installed here", "another digest", "broken here", mine["digest"][:12]):
        assert words in said.stdout


def test_an_environment_that_was_served_long_ago_is_not_called_served(mixed: Quiet) -> None:
    with mixed.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE environments SET seen_at = now() - interval '1 hour'")
    core = mixed.farm.json("environments")["environments"][1]
    assert (core["name"], core["served"]) == ("core", False)
    assert core["silent_seconds"] >= 3600


def test_the_doctor_tells_isolation_environments_and_canaries(mixed: Quiet, isolation: Isolation) -> None:
    facts = mixed.farm.json("doctor", status=1)
    found = {part["part"]: (part["ok"], part["words"]) for part in facts["parts"]}
    ok, words = found["isolation"]
    assert ok
    assert words.startswith(f"in force: {isolation.name} (at least rlimit was asked for).")
    for name in ("core", "mine"):
        ok, words = found[f"environment {name}"]
        assert ok
        assert "Lean 4.35.0" in words
        assert "digest" in words
        ok, words = found[f"canaries of {name}"]
        assert ok, words
        assert re.match(r"all 1\d judged correctly in ", words)
    ok, words = found["environment broken"]
    assert not ok
    assert "no program '/no/such/lean'" in words
    assert "canaries of broken" not in found
    ok, words = found["canaries of credulous"]
    assert not ok
    assert "error (cold)" in words
    assert "came out as ok" in words


def test_the_doctor_names_an_isolation_that_is_missing_and_still_looks_at_the_rest(quiet: Quiet) -> None:
    facts = quiet.farm.having(FARM_ISOLATION=IMPOSSIBLE).json("doctor", status=1)
    found = {part["part"]: part for part in facts["parts"]}
    assert not found["isolation"]["ok"]
    assert IMPOSSIBLE in found["isolation"]["words"]
    assert found["canaries of core"]["ok"], found


# farm worker


def test_a_worker_serves_what_is_fit_and_its_log_says_what_is_not(mixed: Quiet, tmp_path: Path) -> None:
    known = "SELECT name FROM environments WHERE seen_at IS NOT NULL ORDER BY name"
    with mixed.farm.forked(tmp_path / "worker", "worker", "--concurrency", "1") as worker:
        eventually(lambda: mixed.ask(known) == ["core", "mine"], seconds=60.0)
        eventually(lambda: worker.said.count("Not serving: ") >= 2)
        eventually(lambda: len(mixed.queries.pending()) == 2)  # `core` starts a trial of its own
        states = {each.name: each for each in mixed.queries.pending()}
        assert {name: each.state for name, each in states.items()} == {
            "broken": "unfit",
            "credulous": "unfit",
        }
        refused = write(tmp_path / "b.jsonl", entry(PROVED, 1, environment="broken"))
        told = mixed.farm("submit", refused, "--no-wait")
        assert told.returncode == 2
        assert "the environment 'broken' cannot be served: unfit for" in told.stderr
        assert "no program '/no/such/lean'" in told.stderr
        shown = mixed.farm("status", "--workers")
        assert "credulous is unfit for" in shown.stderr
        (listed,) = (e for e in mixed.farm.json("environments")["environments"] if e["name"] == "credulous")
        assert [each["state"] for each in listed["pending"]] == ["unfit"]
        said = worker.said
        manifest = write(tmp_path / "a.jsonl", entry(PROVED, 1, environment="mine"))
        assert mixed.farm("submit", manifest, "--no-wait", "--tier", "audit").returncode == 0
        wait_for_run(mixed.queries, manifest, "done")
        worker.process.terminate()
        worker.ended()
    assert "Not serving: " in said
    assert "environment 'broken': lean: no program '/no/such/lean'" in said
    assert "environment 'credulous' (Lean 4.35.0 (eb6cafb7290e)) is not fit to judge" in said
    work = Path(mixed.farm.settings["FARM_HOME"], "work")
    assert list(work.iterdir()) == []


def test_a_worker_without_the_isolation_that_is_demanded_refuses_to_start(
    quiet: Quiet, tmp_path: Path
) -> None:
    with quiet.farm.having(FARM_ISOLATION=IMPOSSIBLE).forked(tmp_path, "worker") as worker:
        assert worker.ended() == 2
        assert IMPOSSIBLE in worker.said


def test_a_worker_serves_an_environment_that_is_mended_while_it_runs(
    quiet: Quiet, core: LeanEnvironment, tmp_path: Path
) -> None:
    folder, away = tmp_path / "modules", tmp_path / "away"
    shutil.copytree(core.lean_path[0], away)
    folder.mkdir()
    mine = toolchain(tmp_path / "mine", core)
    header = r'header = "prelude\nimport Core\n"'
    file = file_of(tmp_path, mine.table("core", f'lean_path = ["{folder}"]', header, "audit = false"))
    with quiet.farm.having(FARM_ENVIRONMENTS=str(file)).forked(tmp_path / "worker", "worker") as worker:
        unfit = "'core' (Lean 4.35.0 (eb6cafb7290e)) is not fit to judge"
        eventually(lambda: unfit in worker.said, seconds=60.0)
        told = [("core", "unfit")]
        eventually(lambda: [(each.name, each.state) for each in quiet.queries.pending()] == told)
        folder.rmdir()
        away.rename(folder)
        eventually(lambda: "Serving environments=core" in worker.said, seconds=60)
        assert quiet.queries.pending() == []


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_a_checker_that_never_ends_is_unfit_in_the_end_and_holds_up_nothing(
    quiet: Quiet, core: LeanEnvironment, tmp_path: Path
) -> None:
    made, header = toolchain(tmp_path / "made", core), r'header = "prelude\nimport Core\n"'
    lines = (f'lean_path = ["{core.lean_path[0]}"]', header, 'checker = ["/bin/sleep", "100000"]')
    farm = quiet.farm.having(FARM_ENVIRONMENTS=str(file_of(tmp_path, made.table("slow", *lines))))
    with farm.forked(tmp_path / "worker", "worker") as worker:
        manifest = write(tmp_path / "a.jsonl", entry(PROVED, 1))
        assert farm("submit", manifest).returncode == 0
        assert verdicts(manifest) == [PROVED]
        (slow,) = quiet.queries.pending()
        assert (slow.name, slow.state) == ("slow", "starting")
        assert "slow: starting for" in farm("status", "--workers").stdout
        with farm.started(tmp_path / "doctor", "doctor") as doctor:
            eventually(lambda: "canaries of core" in doctor.out.read_text(), seconds=60)
        eventually(lambda: [each.state for each in quiet.queries.pending()] == ["unfit"], seconds=300)
        (slow,) = quiet.queries.pending()
        assert "kernel_time" in slow.reason
        again = write(tmp_path / "b.jsonl", entry(PROVED, 2))
        assert farm("submit", again).returncode == 0
        assert worker.process.poll() is None


def test_a_worker_with_nothing_but_broken_environments_refuses_to_start(quiet: Quiet, tmp_path: Path) -> None:
    file = file_of(tmp_path, '[environments.core]\nlean = "/no/such/lean"\n')
    with quiet.farm.having(FARM_ENVIRONMENTS=str(file)).forked(tmp_path / "worker", "worker") as worker:
        assert worker.ended() == 2
        assert "no environment is usable" in worker.said
