"""What the tests of servers share: waiting for a condition, and knowing which processes are alive."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_CHECKOUT = Path(__file__).parents[1]
#: Where Python finds the farm's packages, and the tests' own: a value of PYTHONPATH.
CODE = os.pathsep.join(f"{_CHECKOUT}/{each}" for each in ("", "workers/", "migrations/"))
#: By how much longer things may take on this machine than on a common one.
PATIENCE = float(os.environ.get("FARM_TEST_PATIENCE", "1"))


def eventually(condition: Callable[[], object], *, seconds: float = 20.0) -> None:
    """Wait until a condition holds; fail when it does not within the time, which is of a common machine."""
    seconds *= PATIENCE
    deadline, pause = time.monotonic() + seconds, 0.01
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds:g} s"
        time.sleep(pause)
        pause = min(1.2 * pause, 0.05)  # looking takes processor time from what is waited for


@dataclass(frozen=True)
class Process:
    """A process by its number and the time of its start, which together are never used twice."""

    pid: int
    parent: int
    begun: str
    command: str

    @property
    def program(self) -> str:
        return Path(self.command.partition(" ")[0]).name

    @property
    def alive(self) -> bool:
        now = process(self.pid)
        return now is not None and now.begun == self.begun


def process(pid: int) -> Process | None:
    """Return a process that runs now; a zombie does not."""
    try:
        # The name, in brackets, may hold anything: proc_pid_stat(5).
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, parent, begun = fields[0], int(fields[1]), fields[19]
    return None if state in "ZX" else Process(pid, parent, begun, command)


def processes() -> list[Process]:
    """Return every process that runs now."""
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [found for pid in pids if (found := process(pid))]


def family(pid: int) -> list[Process]:
    """Return a process and all that descends from it."""
    everyone = processes()
    found = [each for each in everyone if each.pid == pid]
    for member in found:
        found += [each for each in everyone if each.parent == member.pid]
    return found


def child_of(pid: int, *programs: str) -> Process | None:
    """Return the one child of a process that runs one of these programs, None when there is none."""
    found = [each for each in processes() if each.parent == pid and each.program in programs]
    assert len(found) <= 1
    return found[0] if found else None
