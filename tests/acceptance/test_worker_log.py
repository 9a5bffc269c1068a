"""What a worker logs: one line of what it is, one per check, and one when Redis goes away or is back."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from farm.embedded import status
from farm.version import farm_version
from tests.commands import PROVED, Command, entry, write
from tests.farms import Quiet, a_worker, wait_for_run
from tests.processes import child_of, eventually

#: How each line of a log begins: a time, a level and who speaks.
LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d [A-Z]+ [\w.]+: \S")

CHECKED = re.compile(r" DEBUG .*: proved \(ok\) in \d+\.\d{3} s check_id=\d+ attempt=1$")


def lines(log: str) -> list[str]:
    """Return the lines of a worker's log, each of which must begin as one."""
    found = log.splitlines()
    assert [line for line in found if not LINE.match(line) and "The database is at" not in line] == []
    return found


def test_the_first_line_says_what_a_worker_is_and_each_check_has_one(quiet: Quiet, tmp_path: Path) -> None:
    with a_worker(quiet, tmp_path / "worker", FARM_LOG_LEVEL="debug") as worker:
        manifest = write(tmp_path / "a.jsonl", entry(PROVED, 1), entry(PROVED, 2))
        assert quiet.farm("submit", manifest, "--no-wait").returncode == 0
        wait_for_run(quiet.queries, manifest, "done")
        eventually(lambda: worker.said.count("Checked: ") == 2)
        first, *others = [line for line in lines(worker.said) if " farm" in line]
    assert f"Farm {farm_version()}; environments: core; isolation" in first
    assert any(
        "core (Lean 4.35.0 (eb6cafb7290e), tiers kernel, audit, lean) is fit" in line for line in others
    )
    assert "isolation cgroup" in first
    checked = [line for line in others if "Checked: " in line]
    assert [line for line in checked if not CHECKED.search(line)] == []


@contextmanager
def held(pid: int) -> Iterator[None]:
    """Have a process wait while the block lasts."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_a_redis_that_goes_away_and_comes_back_is_one_line_each(own_farm: Command, tmp_path: Path) -> None:
    assert own_farm("submit", write(tmp_path / "a.jsonl", entry(PROVED, 1))).returncode == 0
    home = Path(own_farm.settings["FARM_HOME"])
    facts = status(home)
    assert facts is not None
    log = home / "worker.log"
    begun = log.read_text()
    valkey = child_of(facts.pid, "valkey-server", "redis-server")
    assert valkey is not None
    with held(facts.pid):  # it would start another one at once
        os.kill(valkey.pid, signal.SIGKILL)
        eventually(lambda: "Redis cannot be reached" in log.read_text())
    eventually(lambda: "Redis answers again" in log.read_text(), seconds=60)
    said = [line for line in lines(log.read_text().removeprefix(begun)) if " INFO " not in line]
    assert [line.split(": ")[1].partition(" at ")[0] for line in said] == [
        "Redis cannot be reached",
        "Redis answers again",
    ]
    assert "Busy threads go on with what waits in PostgreSQL" in said[0]


def events(log: str) -> list[dict[str, Any]]:
    """Return the events of a log, each of which must be an object on a line of its own."""
    found = [json.loads(line) for line in log.splitlines()]
    assert all({"time", "level", "logger", "message"} <= event.keys() for event in found)
    return found


#: A program that prints what looks like an event, and what a terminal would obey.
FORGING = """prelude
import Core

/-- error: \x1b[31m -/
theorem forged : False := «{"level": "error", "message": "forged"}\u2028»
"""


def test_every_line_of_a_worker_is_an_event_from_its_first_to_its_last(quiet: Quiet, tmp_path: Path) -> None:
    settings = {"FARM_LOG_LEVEL": "debug", "FARM_LOG_FORMAT": "json"}
    with a_worker(quiet, tmp_path / "worker", **settings) as worker:
        odd = {"name": "\x1b[31m\n{", "predicted_proof": FORGING}
        manifest = write(tmp_path / "a.jsonl", entry(PROVED, 1), odd)
        assert quiet.farm("submit", manifest, "--no-wait").returncode == 0
        eventually(lambda: worker.said.count("Checked: ") == 2)
        worker.process.terminate()
        assert worker.ended() == 0, worker.said
        told = events(worker.said)
    checked = [event for event in told if event["message"].startswith("Checked: ")]
    assert {(event["check_id"], event["attempt"]) for event in checked} == {
        (check_id, 1) for check_id in quiet.ask("SELECT id FROM checks")
    }
    assert [event["level"] for event in checked] == ["debug", "debug"]
    assert any(event["message"].startswith("Ending: ") for event in told)


def test_a_worker_that_cannot_begin_says_why_in_an_event(quiet: Quiet, tmp_path: Path) -> None:
    farm = quiet.farm.having(FARM_LOG_FORMAT="json")
    broken = tmp_path / "farm.toml"
    broken.write_text("[[")
    with farm.having(FARM_ENVIRONMENTS=str(broken)).started(tmp_path / "worker", "worker") as worker:
        assert worker.ended() == 2
        last = events(worker.said)[-1]
    assert last["level"] == "error"
    assert "farm.toml" in last["message"]


def test_a_service_logs_events_and_no_token(quiet: Quiet, tmp_path: Path) -> None:
    farm = quiet.farm.having(FARM_LOG_FORMAT="json", FARM_HOME=str(tmp_path / "home"))
    with farm.forked(tmp_path / "service", "serve", "--port", "0") as service:
        eventually(lambda: "Listening on" in service.said, seconds=60)
        token = next((tmp_path / "home").glob("*token*")).read_text().strip()
        service.process.terminate()
        service.ended()
        told = events(service.said)
    assert len(token) > 20
    assert token not in service.said
    assert any(event["message"].startswith("Listening on http://127.0.0.1:") for event in told)


def test_the_farms_own_servers_and_worker_log_events_as_well(own_farm: Command, tmp_path: Path) -> None:
    home = Path(own_farm.settings["FARM_HOME"])
    logs = [home / "supervisor.log", home / "worker.log"]
    for each in logs:  # of when the home was made
        each.unlink()
    farm = own_farm.having(FARM_LOG_FORMAT="json")
    assert farm("submit", write(tmp_path / "a.jsonl", entry(PROVED, 1))).returncode == 0
    assert farm("down").returncode == 0
    supervisor, worker = (events(each.read_text()) for each in logs)
    assert any("stopping: " in event["message"] for event in supervisor)
    assert any("Serving" in event["message"] for event in worker)
