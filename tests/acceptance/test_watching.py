"""Looking at the whole farm: farm status --workers, farm status --watch, and farm status without a run."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import NullPool, create_engine, text

from farm.version import farm_version
from tests.commands import ENDLESS, HEADER, PROVED, WRONG, Command, Running, entry
from tests.farms import Quiet, a_worker, load
from tests.processes import eventually
from tests.services import serving_http

#: What a terminal would obey, and more than one line.
HOSTILE = "odd\x1b[31m\x9b\u202e\nsecond"


def workers(quiet: Quiet) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = quiet.farm.json("status", "--workers")["workers"]
    return found


def busy_for_long(number: int, **more: object) -> dict[str, object]:
    """Return a manifest line whose check lasts as long as a test."""
    return entry(ENDLESS, number, timeout=300, **more)


# farm workers


def test_a_worker_is_shown_as_it_serves_works_is_stopped_ends_and_is_gone(
    quiet: Quiet, tmp_path: Path
) -> None:
    with a_worker(quiet, tmp_path / "worker") as worker:
        _is_listed(quiet, worker)
        lines = [busy_for_long(2, name=HOSTILE), *[busy_for_long(n) for n in range(3, 7)]]
        run_id = load(quiet.store, tmp_path / "a.jsonl", entry(PROVED, 1), *lines)
        eventually(lambda: quiet.queries.tally(run_id).statuses == {"done": 1, "running": 2, "queued": 3})
        _is_at_work(quiet, run_id)
        assert quiet.farm.json("status")["queues"][0]["workers"] == 1
        assert quiet.farm("status").stderr == ""
        os.kill(worker.process.pid, signal.SIGSTOP)
        eventually(lambda: workers(quiet)[0]["silent"])
        os.kill(worker.process.pid, signal.SIGCONT)
        eventually(lambda: not workers(quiet)[0]["silent"])
        eventually(lambda: workers(quiet)[0]["checks"])
        worker.process.terminate()
        eventually(lambda: workers(quiet)[0]["state"] == "stopping")
        worker.process.terminate()
        assert worker.ended() == 0, worker.said
    assert workers(quiet) == []
    assert "start one with: farm worker" in quiet.farm("status", "--workers").stderr


def _is_listed(quiet: Quiet, worker: Running) -> None:
    (found,) = workers(quiet)
    said = quiet.farm("status", "--workers")
    assert (found["pid"], found["node"]) == (worker.process.pid, os.uname().nodename)
    assert (found["state"], found["silent"], found["checks"]) == ("serving", False, [])
    assert (found["busy"], found["threads"], found["farm_version"]) == (0, 2, farm_version())
    (core,) = found["environments"]
    assert (core["name"], core["toolchain"][:11]) == ("core", "Lean 4.35.0")
    assert "kernel" in core["tiers"]
    assert found["isolation"]
    assert found["name"] in said.stdout
    assert said.stderr == ""


def _is_at_work(quiet: Quiet, run_id: str) -> None:
    eventually(lambda: workers(quiet)[0]["busy"] == 2)
    ((at_work, _),) = [sorted(each["checks"], key=lambda check: check["line"]) for each in workers(quiet)]
    assert (at_work["run"], at_work["line"], at_work["name"]) == (run_id, 2, HOSTILE)
    assert (at_work["environment"], at_work["attempt"]) == ("core", 1)
    assert at_work["seconds"] >= 0
    said = quiet.farm("status", "--workers").stdout
    assert f"{run_id}:2 odd\\x1b[31m\\x9b\\u202e\\nsecond" in said
    assert not set(said) & set("\x1b\x9b\u202e")


def test_a_worker_that_was_killed_is_marked_and_it_is_said_what_to_do_and_names_stand_as_text(
    quiet: Quiet, tmp_path: Path
) -> None:
    with a_worker(quiet, tmp_path / "worker") as worker:
        worker.process.send_signal(signal.SIGSTOP)
        load(quiet.store, tmp_path / "a.jsonl", entry(PROVED, 1, name=f"[red]{HOSTILE}"))
        name = f"{os.uname().nodename}:{worker.process.pid}"
        quiet.store.claim(["core"], worker=name, lease_seconds=600)
        shown = quiet.farm("status", "--watch").stdout
        worker.process.kill()
    assert "[red]odd\\x1b[31m\\x9b\\u202e\\nsecond" in shown
    assert not set(shown) & set("\x1b\x9b\u202e")
    eventually(lambda: workers(quiet)[0]["silent"])
    said = quiet.farm("status", "--workers")
    assert re.search(r"\bsilent\b", said.stdout)
    assert "longer than its lease" in said.stderr
    assert "farm worker" in said.stderr
    assert said.returncode == 0


# farm status without a run


def test_the_whole_farm_is_shown_where_no_run_is_named(quiet: Quiet, tmp_path: Path) -> None:
    ended = load(quiet.store, tmp_path / "ended.jsonl", entry(PROVED, 1), entry(WRONG, 2))
    quiet.judge(ended, 1, 2)
    open_run = load(quiet.store, tmp_path / "open.jsonl", entry(PROVED, 3), entry(PROVED, 4))
    quiet.judge(open_run, 1)
    said = quiet.farm("status")
    assert said.returncode == 0
    (row,) = [row for row in said.stdout.splitlines() if open_run in row]
    assert "1/2" in row
    assert "open.jsonl" in row
    (line,) = [line for line in said.stdout.splitlines() if "Newest finished run" in line]
    assert f"{ended}, ended.jsonl: 2 of 2 lines judged (2 proved)" in line
    assert re.search(r"core .*batch .*kernel .*1 .*none", said.stdout)
    assert "1 check waits in core on the tier kernel, and no worker takes them" in said.stderr
    assert "farm worker" in said.stderr


def test_the_whole_farm_for_scripts_adds_to_the_newest_run(quiet: Quiet, tmp_path: Path) -> None:
    first = load(quiet.store, tmp_path / "first.jsonl", entry(PROVED, 1))
    ended = load(quiet.store, tmp_path / "ended.jsonl", entry(PROVED, 2))
    quiet.judge(ended, 1)
    alone = quiet.farm.json("status", ended)
    whole = quiet.farm.json("status")
    assert alone["run"] == ended
    assert {key: whole[key] for key in alone} == alone
    assert [each["run"] for each in whole["unfinished_runs"]] == [first]
    assert whole["unfinished_runs"][0]["statuses"] == {"queued": 1}
    assert whole["newest_finished_run"] == ended
    ((queue,),) = [whole["queues"]]
    assert queue.pop("oldest_seconds") >= 0
    assert queue == {"environment": "core", "class": "batch", "tier": "kernel", "waiting": 1, "workers": 0}


def test_unfinished_batches_are_counted_and_not_listed(quiet: Quiet, tmp_path: Path) -> None:
    with serving_http(quiet.farm, tmp_path / "service") as service:
        items = [{"program": f"{HEADER}theorem b{n} : True := trivial"} for n in range(3)]
        posted = service.post(*items, status=202, wait_seconds=0)
    said = quiet.farm("status")
    assert "1 batch is unfinished, with 3 items left." in said.stdout
    assert posted["batch"] not in said.stdout
    assert "Newest finished run" not in said.stdout
    whole = quiet.farm.json("status")
    assert (whole["unfinished_batches"], whole["unfinished_items"]) == (1, 3)
    assert "run" not in whole


def test_a_farm_at_rest_says_how_the_newest_run_ended(quiet: Quiet, tmp_path: Path) -> None:
    ended = load(quiet.store, tmp_path / "ended.jsonl", entry(PROVED, 1))
    quiet.judge(ended, 1)
    said = quiet.farm("status")
    assert said.stdout.splitlines()[0] == "Nothing is unfinished."
    assert f"See it: farm status {ended}" in said.stdout
    assert said.stderr == ""


def test_a_newest_run_with_unjudged_lines_is_told_by_the_exit_status(quiet: Quiet, tmp_path: Path) -> None:
    ended = load(quiet.store, tmp_path / "ended.jsonl", entry(PROVED, 1))
    quiet.judge(ended, 1, box_error="the disk is full")
    said = quiet.farm("status")
    assert said.returncode == 3
    assert f"farm show {ended} --verdict judge_error" in said.stderr
    assert quiet.farm("status", "--json").returncode == 3


# farm status --watch


def test_without_a_terminal_one_picture_is_printed(quiet: Quiet, tmp_path: Path) -> None:
    run_id = load(quiet.store, tmp_path / "a.jsonl", *[entry(PROVED, n) for n in range(1, 5)])
    quiet.judge(run_id, 1, 2, 3)
    said = quiet.farm("status", "--watch")
    assert (said.returncode, said.stderr) == (0, "")
    assert "0.1 checks/s over the last minute" in said.stdout
    assert "proved 100.0%" in said.stdout
    assert "timeouts 0.0%, judge errors 0.0%" in said.stdout
    assert re.search(r"core .*batch .*kernel .*1 .*none", said.stdout)
    assert "There are no workers" in said.stdout
    facts = quiet.farm.json("status", "--watch")
    assert (facts["checks_per_second"], facts["threads"], facts["workers"]) == (0.05, 0, [])
    assert facts["verdicts"] == {"last_60_seconds": {"proved": 3}, "last_300_seconds": {"proved": 3}}
    (queue,) = facts["queues"]
    assert (queue["environment"], queue["priority"], queue["waiting"]) == ("core", "batch", 1)
    assert (queue["tier"], queue["workers"], queue["is_cut"]) == ("kernel", 0, False)


@dataclass
class Terminal:
    """A terminal with a `farm` command in it."""

    process: subprocess.Popen[bytes]
    descriptor: int
    device: str
    shown: bytearray = field(default_factory=bytearray)

    def press(self, keys: bytes) -> None:
        os.write(self.descriptor, keys)

    def read(self) -> None:
        while True:
            try:
                data = os.read(self.descriptor, 1 << 16)
            except OSError:  # nobody has it open any more
                return
            self.shown += data

    def modes(self) -> list[Any]:
        return termios.tcgetattr(self.descriptor)


@contextmanager
def in_a_terminal(farm: Command, *words: str) -> Iterator[Terminal]:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "farm", *words],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**farm.environment, "TERM": "xterm", "LINES": "50"},
        start_new_session=True,
        preexec_fn=lambda: _control(theirs),
    )
    terminal = Terminal(process, ours, os.ttyname(theirs))
    reading = threading.Thread(target=terminal.read, daemon=True)
    reading.start()
    try:
        yield terminal
    finally:
        process.kill()
        process.wait()
        os.close(theirs)
        reading.join(10)
        os.close(ours)


def _control(descriptor: int) -> None:
    """Make this the terminal whose Ctrl-C this process hears."""
    fcntl.ioctl(descriptor, termios.TIOCSCTTY, 0)


def test_ctrl_c_ends_the_picture_and_the_terminal_is_as_before(quiet: Quiet) -> None:
    with in_a_terminal(quiet.farm, "status", "--watch") as terminal:
        before = terminal.modes()
        eventually(lambda: b"checks/s" in terminal.shown)
        assert terminal.modes() != before
        _ended_by(terminal, b"\x03")
        assert terminal.modes() == before


def _ended_by(terminal: Terminal, key: bytes) -> None:
    terminal.press(key)
    assert terminal.process.wait(60) == 0, terminal.shown.decode()
    assert b"Traceback" not in terminal.shown


def test_the_picture_is_drawn_anew_and_tells_of_a_postgresql_that_goes_away_till_a_key_ends_it(
    quiet: Quiet, tmp_path: Path
) -> None:
    with in_a_terminal(quiet.farm, "status", "--watch") as terminal:
        before = terminal.modes()
        eventually(lambda: b"Nothing waits." in terminal.shown)
        with refused(quiet):
            eventually(lambda: b"does not answer" in terminal.shown)
            at = len(terminal.shown)
        eventually(lambda: b"Nothing waits." in terminal.shown[at:])
        load(quiet.store, tmp_path / "a.jsonl", entry(PROVED, 1))
        eventually(lambda: b"oldest" in terminal.shown)
        _ended_by(terminal, b"q")
        assert terminal.modes() == before


@contextmanager
def refused(quiet: Quiet) -> Iterator[None]:
    """Have PostgreSQL let nobody into this database, and end those who are in it."""
    name = quiet.engine.url.database
    elsewhere = quiet.engine.url.set(database="postgres")
    admin = create_engine(elsewhere, isolation_level="AUTOCOMMIT", poolclass=NullPool)
    with admin.connect() as connection:
        connection.execute(text(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false'))
        others = "FROM pg_stat_activity WHERE datname = :name AND pid <> pg_backend_pid()"
        connection.execute(text(f"SELECT pg_terminate_backend(pid) {others}"), {"name": name})
        try:
            yield
        finally:
            connection.execute(text(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true'))
