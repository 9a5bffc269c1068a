"""The farm as the first process of a container, where nobody else reaps and passes signals on."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.commands import ENDLESS, Command, Running, entry, write
from tests.farms import Quiet
from tests.processes import CODE, Process, child_of, eventually, family

#: Makes what follows it the first process of a pid namespace.
FIRST = (
    *("unshare", "--pid", "--fork", "--mount-proc", "--kill-child"),
    *(() if os.geteuid() == 0 else ("--user", "--map-root-user")),
)


@contextmanager
def first(farm: Command, folder: Path, *words: object) -> Iterator[tuple[Running, int]]:
    """Start a command as the first process of a container; give it and its number out here."""
    with farm.started(folder, *words, prefix=FIRST) as running:
        found: list[Process] = []

        def look() -> list[Process]:
            found.extend(each for each in [child_of(running.process.pid, Path(sys.executable).name)] if each)
            return found

        eventually(look)
        yield running, found[0].pid


def zombies(pid: int) -> list[str]:
    """Return the names of the dead children that a process has not reaped."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    stats = [Path(f"/proc/{child}/stat").read_text() for child in children]
    return [stat for stat in stats if stat.rpartition(")")[2].split()[0] == "Z"]


def boxed(pid: int) -> list[Process]:
    """Return the processes of the boxes below a process, when there is a command in one."""
    found = family(pid)
    bwraps = {each.pid for each in found if each.program == "bwrap"}
    inner = [each for each in found if each.parent in bwraps]
    return [each for each in found if each.pid in bwraps] + inner if inner else []


def test_a_worker_reaps_what_loses_its_parent_and_ends_in_order_when_it_is_told_to(
    quiet: Quiet, tmp_path: Path
) -> None:
    farm = quiet.farm.having(FARM_ISOLATION="bwrap", FARM_WAY="cold", FARM_GRACE_SECONDS="1")
    manifest = write(tmp_path / "a.jsonl", entry(ENDLESS, 1, timeout=100.0))
    with first(farm, tmp_path / "worker", "worker") as (worker, pid):
        eventually(lambda: "Serving" in worker.said, seconds=60)
        assert quiet.farm("submit", manifest, "--no-wait").returncode == 0
        eventually(lambda: boxed(pid), seconds=60)
        below = boxed(pid)
        for each in below:
            if each.program == "bwrap":
                with suppress(ProcessLookupError):
                    os.kill(each.pid, signal.SIGKILL)  # what is below it loses its parent
        eventually(lambda: not any(each.alive for each in below))
        eventually(lambda: not zombies(pid))
        os.kill(pid, signal.SIGTERM)
        assert worker.ended() == 0, worker.said
    assert quiet.ask("SELECT count(*) FROM checks WHERE status = 'running'") == [0]


#: A first process whose child leaves another one behind, and tells when it is gone.
ORPHAN = """
import os, sys, time
from farm.first_process import step_aside
step_aside()
there, here = os.pipe()
if os.fork() == 0:
    if os.fork() == 0:  # an orphan at once
        os.close(there)
        time.sleep(0.1)
        os.write(here, str(os.getpid()).encode())
        os._exit(0)
    os._exit(0)
os.close(here)
os.wait()
orphan = os.read(there, 100).decode()
while os.path.exists(f"/proc/{orphan}"):
    time.sleep(0.01)
print("reaped")
"""


def begun(program: str, *more: str) -> subprocess.CompletedProcess[str]:
    """Run a program in Python as the first process of a container."""
    command = [*FIRST, sys.executable, "-c", program, *more]
    environment = {**os.environ, "PYTHONPATH": CODE}
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=False)


def test_an_orphan_is_reaped() -> None:
    assert begun(ORPHAN).stdout == "reaped\n"


@pytest.mark.parametrize(("end", "status"), [("sys.exit(3)", 3), ("os.kill(os.getpid(), 15)", 128 + 15)])
def test_the_commands_end_is_that_of_the_container(end: str, status: int) -> None:
    program = f"import os, sys\nfrom farm.first_process import step_aside\nstep_aside()\n{end}"
    assert begun(program).returncode == status


def test_a_signal_ends_a_command_that_has_not_begun_to_listen() -> None:
    program = "from farm.first_process import step_aside\nstep_aside()\nprint(flush=True)\ninput()"
    environment = {**os.environ, "PYTHONPATH": CODE}
    command = [*FIRST, sys.executable, "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        process.stdout.readline()
        ((pid,),) = [[each.pid for each in family(process.pid) if each.parent == process.pid]]
        os.kill(pid, signal.SIGTERM)
        assert process.wait(20) == 128 + signal.SIGTERM


def test_what_is_typed_at_a_terminal_reaches_the_command_once() -> None:
    """Twice would be the second signal, at which a worker gives its checks back."""
    program = """
import signal, time
from farm.first_process import step_aside
step_aside()
said = []
signal.signal(signal.SIGINT, lambda *_: said.append(1))
print("ready", flush=True)
while not said:
    signal.pause()
time.sleep(0.3)  # a second one would be here by now
print(len(said), flush=True)
"""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvpe(FIRST[0], [*FIRST, sys.executable, "-c", program], {**os.environ, "PYTHONPATH": CODE})
    said = b""
    while b"ready" not in said:
        said += os.read(terminal, 1000)
    os.write(terminal, b"\x03")
    while b"1\r\n" not in said and b"2\r\n" not in said:
        said += os.read(terminal, 1000)
    assert b"1\r\n" in said
    os.waitpid(pid, 0)
    os.close(terminal)
