"""What the tests of boxes share: the levels of isolation of this machine, and finding what outlives a box."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from farm_workers.box.isolation import Isolation, prepared

from farm.judging.report import Execution
from farm.limits import Limits
from tests.processes import PATIENCE, Process, processes

#: Every change is tried without any privilege and with all that this machine has; the other levels are long.
LEVELS = (
    pytest.param("rlimit", marks=pytest.mark.long),
    "landlock",
    pytest.param("bwrap", marks=pytest.mark.long),
    pytest.param("cgroup", marks=pytest.mark.long),
    pytest.param("cgroup+landlock", marks=pytest.mark.long),
    "cgroup+bwrap",
)
LIMITS = Limits(
    wall_seconds=20.0 * PATIENCE, cpu_seconds=10.0 * PATIENCE, memory_mib=256, output_kib=64, processes=16
)

Shell = Callable[..., Execution]


def limits(**changes: float) -> Limits:
    """Return the limits with changes; wall time is that of a common machine."""
    if "wall_seconds" in changes:
        changes["wall_seconds"] *= PATIENCE
    return Limits(**{name: changes.get(name, getattr(LIMITS, name)) for name in LIMITS.__slots__})


@contextlib.contextmanager
def isolated(folder: Path, level: str) -> Iterator[Isolation]:
    """Prepare a level; without it the test fails in continuous integration, and is skipped elsewhere."""
    with prepared(folder, most=level) as isolation:
        if isolation.missing:
            reason = f"this machine has no {level}: {' '.join(isolation.missing)}"
            pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
        yield isolation


class Mark:
    """A sleep that no other process on this machine does, so that whoever does it is known."""

    def __init__(self) -> None:
        self._seconds = f"60.{uuid.uuid4().int}"
        #: Ends at once when things go well, and by itself when they do not.
        self.sleep = f"sleep {self._seconds}"

    def found(self) -> list[Process]:
        """Return the processes that sleep it now, or are shells that will."""
        return [each for each in processes() if self._seconds in each.command]


def open_files() -> set[str]:
    return {f"{each.name} {each.readlink()}" for each in Path("/proc/self/fd").iterdir() if each.exists()}


def own_children() -> set[str]:
    return {
        pid for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()
    }


def groups(isolation: Isolation) -> set[Path]:
    """Return the control groups that are there for this isolation's cells."""
    folders = isolation.groups.folders.values() if isolation.groups else ()
    return {cell for folder in folders for cell in folder.iterdir() if cell.is_dir()}
