"""The farm's own worker follows the settings of the commands that use it, and its failure is told to them."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest
from farm_workers.environments.lean_environment import LeanEnvironment

from farm import embedded
from farm.client import Client
from farm.connections import Connections
from farm.embedded import down, status
from tests.acceptance.test_machine import IMPOSSIBLE
from tests.commands import ENDLESS, HEADER, PROGRAMS, PROVED, Command, entry, lines, write
from tests.farms import asking
from tests.processes import PATIENCE, Process, child_of, eventually
from tests.toolchains import toolchain

PYTHON = Path(sys.executable).name
#: Those of the lines that are written so far.
NUMBERS = count(2)
HEADER_LINE = r'header = "prelude\nimport Core"'


def home_of(farm: Command) -> Path:
    return Path(farm.settings["FARM_HOME"])


def worker(farm: Command) -> Process:
    """Return the process of the farm's own worker."""
    facts = status(home_of(farm))
    assert facts is not None
    found = child_of(facts.pid, PYTHON)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def own_farm(copy_home: Callable[[], Path], pair: str) -> Iterator[Command]:
    """The `farm` command with servers and a worker that tests may end: the next submit starts others."""
    home = copy_home()
    settings = {"FARM_SERVERS": pair, "FARM_LEASE_SECONDS": "2", "FARM_CONCURRENCY": "2"}
    yield Command({"FARM_HOME": str(home), **settings})
    down(home)


@pytest.fixture(scope="module")
def one(own_farm: Command, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A manifest of one line that the farm's own worker has judged."""
    path = write(tmp_path_factory.mktemp("one") / "one.jsonl", entry(PROVED, 1))
    assert own_farm("submit", path).returncode == 0
    return path


def renewed(path: Path) -> Path:
    """Write another line into a manifest, which no run has and no verdict answers."""
    return write(path, entry(PROVED, next(NUMBERS)))


def test_the_worker_goes_on_while_nothing_it_was_begun_with_changes(own_farm: Command, one: Path) -> None:
    assert own_farm("submit", renewed(one)).returncode == 0
    # The home had its tables before: upgrading them is a command that no other start needs.
    log = (Path(own_farm.settings["FARM_HOME"]) / "worker.log").read_text()
    assert log.count("The database is at revision") == 1
    before = worker(own_farm)
    unread = own_farm.having(FARM_ENVIRONMENT="core", FARM_QUEUE_LIMIT="7", FARM_TOKEN="t")
    assert unread("submit", one).returncode == 0
    assert worker(own_farm) == before


def test_a_changed_setting_reaches_the_worker_of_a_command_in_another_folder(
    own_farm: Command, one: Path, tmp_path: Path
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("")
    assert own_farm("submit", renewed(one)).returncode == 0
    before = worker(own_farm)
    changed = own_farm.having(FARM_ENVIRONMENTS=str(file))
    assert changed("status", "--runs").returncode == 0
    assert before.alive  # who only looks gives a worker no orders
    assert changed("submit", renewed(one)).returncode == 0
    assert not before.alive
    told = Path(f"/proc/{worker(own_farm).pid}/environ").read_text().split("\0")
    assert f"FARM_ENVIRONMENTS={file}" in told


def test_a_demand_that_cannot_be_met_is_an_error_that_says_why_whatever_an_earlier_worker_served(
    own_farm: Command, one: Path
) -> None:
    demanding = own_farm.having(FARM_ISOLATION=IMPOSSIBLE)
    for _ in ("in place of a worker that serves", "in a farm that starts"):
        said = demanding("submit", renewed(one))
        assert said.returncode == 1
        assert "worker" in said.stderr
        assert f"isolation {IMPOSSIBLE} is required" in said.stderr
        assert own_farm("down").returncode == 0


def test_what_runs_when_the_settings_change_is_given_back_and_not_lost(
    own_farm: Command, one: Path, tmp_path: Path
) -> None:
    farm = own_farm.having(FARM_GRACE_SECONDS="0.1")
    path = write(tmp_path / "long.jsonl", entry(ENDLESS, 1, timeout=40))
    run = str(farm.json("submit", path, "--no-wait")["run"])
    with asking(farm) as (_, queries):
        eventually(lambda: queries.tally(run).statuses.get("running"))
        assert farm.having(FARM_CONCURRENCY="1")("submit", renewed(one), "--no-wait").returncode == 0
        # The new worker may have begun with the line already: that attempt has no outcome yet.
        ended = [attempt["outcome"] for attempt in queries.attempts(run, 0, 1) if attempt["ended_at"]]
        assert ended == ["returned"]
        eventually(lambda: queries.tally(run).statuses.get("running"))
    assert farm("cancel", run).returncode == 0


def test_a_service_starts_the_farm_s_own_servers_again_where_they_have_ended(
    own_farm: Command, tmp_path: Path
) -> None:
    items = [{"program": HEADER + PROGRAMS[PROVED].format(n=number)} for number in range(3)]
    with own_farm.started(tmp_path / "serve", "serve", "--port", 0) as service:
        eventually(lambda: "Listening" in service.said, seconds=120)
        told = json.loads((home_of(own_farm) / "http.json").read_text())
        token = (home_of(own_farm) / "http.token").read_text().strip()
        with Client(
            told["url"], token=token, deadline=120 * PATIENCE, accept=["unchecked", "forgeable"]
        ) as client:
            assert client.check(items[0]).reward == 1.0
            facts = status(home_of(own_farm))
            assert facts is not None
            os.kill(facts.pid, signal.SIGKILL)
            eventually(lambda: status(home_of(own_farm)) is None)
            assert client.check(items[1]).reward == 1.0
            assert "farm serve" in own_farm("down").stderr
            assert client.check(items[2]).reward == 1.0
        service.process.terminate()
        assert service.ended() == 0


def test_a_worker_whose_restart_takes_long_is_waited_for(
    own_farm: Command, one: Path, core: LeanEnvironment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert own_farm("submit", renewed(one)).returncode == 0
    table = toolchain(tmp_path / "toolchain", core).table("late", f'lean_path = ["{core.lean_path[0]}"]')
    (home_of(own_farm) / "farm.toml").write_text(table + HEADER_LINE)
    for name, value in own_farm.settings.items():
        monkeypatch.setenv(name, value)
    followed = embedded.follow

    def slowly(home: Path) -> None:
        """Restart the worker, and return when the last sign of the worker before is older than a lease."""
        followed(home)
        facts = status(home)
        assert facts is not None and facts.worker_since is not None
        begun = facts.worker_since
        eventually(lambda: time.time() > begun + 3.0)

    monkeypatch.setattr(embedded, "follow", slowly)
    with closing(Connections.here()) as connections:
        assert "late" in {each.name for each in connections.environments()}


def test_an_environment_that_is_written_down_while_the_worker_runs_is_served(
    own_farm: Command, one: Path, core: LeanEnvironment, tmp_path: Path
) -> None:
    assert own_farm("submit", renewed(one)).returncode == 0
    table = toolchain(tmp_path / "toolchain", core).table("mine", f'lean_path = ["{core.lean_path[0]}"]')
    (home_of(own_farm) / "farm.toml").write_text(table + HEADER_LINE)
    said = own_farm("submit", renewed(one), "--environment", "mine", "--tier", "audit")
    assert said.returncode == 0, said.stderr
    assert [(line["farm"]["environment"], line["farm"]["verdict"]) for line in lines(one)] == [
        ("mine", "proved")
    ]
