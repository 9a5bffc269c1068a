"""The temporary disk of a worker: small, its own, and to be filled."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_MIB = 1024 * 1024
#: What a worker with its compiled library and its snapshots needs several times over.
_SIZE_MIB = 64


@dataclass(frozen=True)
class Disk:
    """A folder of a worker's, on a file system of its own where that can be had.

    Where nothing may be mounted its folders are closed to their owner instead of filled: to the worker it is
    another error at the same places. Root, which may not mount in some containers, is not kept out by that.
    """

    folder: Path
    mounted: bool

    @property
    def words(self) -> str:
        if self.mounted:
            return f"a tmpfs of {_SIZE_MIB} MiB"
        kept_out = "closed instead of filled" if os.geteuid() else "which root cannot be kept out of"
        return f"a plain folder, {kept_out} (nothing can be mounted here)"

    @contextmanager
    def full(self) -> Iterator[None]:
        """Let nothing be written to it inside the block."""
        with self._filled() if self.mounted else self._closed():
            yield

    @contextmanager
    def _filled(self) -> Iterator[None]:
        filler = self.folder / "filler"
        try:
            with filler.open("wb", buffering=0) as file:
                _fill(file.fileno())
            yield
        finally:
            filler.unlink(missing_ok=True)

    @contextmanager
    def _closed(self) -> Iterator[None]:
        folders = [self.folder, *(each for each in self.folder.rglob("*") if each.is_dir())]
        modes = {folder: folder.stat().st_mode for folder in folders}
        try:
            for folder in folders:
                folder.chmod(0o500)
            yield
        finally:
            for folder, mode in modes.items():
                if folder.exists():
                    folder.chmod(mode)


def _fill(descriptor: int) -> None:
    for size in (_MIB, 4096):
        try:
            while True:
                os.write(descriptor, bytes(size))
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise


@contextmanager
def disk(folder: Path) -> Iterator[Disk]:
    """Give a folder that is a disk of its own, where this machine lets one be mounted."""
    folder.mkdir(mode=0o700)
    options = f"size={_SIZE_MIB}m,mode=0700"
    command = ["mount", "-t", "tmpfs", "-o", options, "farm-chaos", str(folder)]
    mounted = os.geteuid() == 0 and subprocess.run(command, capture_output=True).returncode == 0
    try:
        yield Disk(folder, mounted)
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)
