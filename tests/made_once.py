"""Folders that are made once for all processes of a run of tests, each of which copies or only reads them."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class MadeOnce:
    """The folders with these names below `base`, which belongs to all processes of a run."""

    base: Path

    def __call__(self, name: str, fill: Callable[[Path], object]) -> Path:
        """Return the folder with this name; `fill` has filled it in the process that asked first."""
        made, unfinished = self.base / name, self.base / f"{name}-unfinished"
        with (self.base / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not made.exists():
                shutil.rmtree(unfinished, ignore_errors=True)
                unfinished.mkdir()
                fill(unfinished)
                unfinished.rename(made)
        return made


def copied(folder: Path, into: Path) -> Path:
    """Copy a folder into another and return the copy."""
    # Not shutil.copytree: the servers insist on whose their files are.
    subprocess.run(["cp", "-a", str(folder), str(into)], check=True)
    return into / folder.name


def forget_power_cuts(home: Path) -> None:
    """Let the PostgreSQL of a home wait for no disk: it loses nothing while the machine runs.

    A database of a test's own then costs a third, and a commit waits for no other process of the run.
    """
    with (home / "postgres" / "postgresql.conf").open("a") as settings:
        settings.write("fsync = off\nfull_page_writes = off\nwal_level = minimal\nmax_wal_senders = 0\n")
