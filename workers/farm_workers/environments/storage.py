"""Environment step, by command: measures the disk on which the compiled modules lie."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_MIB = 1024 * 1024
#: At most this much is read, for at most this long: enough to distinguish a disk from a slow network.
_MOST_BYTES, _MOST_SECONDS = 64 * _MIB, 2.0
#: A smaller set of modules is not measured: reading it takes no time from anywhere.
_LEAST_BYTES = 16 * _MIB
#: A disk below this is slow: `import Mathlib` reads gigabytes.
SLOW_MIB_PER_SECOND = 100.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Storage:
    """The reading speed of modules that were on disk only, their file system, and their size."""

    folder: Path
    filesystem: str
    mib: float
    mib_per_second: float

    def warning(self, least: float = SLOW_MIB_PER_SECOND) -> str:
        """Return a warning if the disk reads fewer than `least` MiB a second, else ""."""
        if self.mib_per_second >= least:
            return ""
        seconds = self.mib / self.mib_per_second
        return (
            f"the modules in {self.folder} ({self.filesystem}) are read at {self.mib_per_second:.0f} MiB/s: "
            f"reading all {self.mib:.0f} MiB takes {seconds:.0f} s when they are not in memory. Put them on "
            "a local disk: farm environments pack, and add --from there"
        )


def measure(folders: Sequence[Path]) -> Storage | None:
    """Measure how fast modules below these folders are read; None if they are too few for a measurement."""
    files = sorted(_modules(folders), key=lambda each: -each[1])
    total = sum(size for _, size, _ in files)
    if total < _LEAST_BYTES or not hasattr(os, "posix_fadvise"):
        return None
    read, seconds = 0, 0.0
    for file, _, _ in files:
        if read >= _MOST_BYTES or seconds >= _MOST_SECONDS:
            break
        taken, needed = _read(file, _MOST_BYTES - read, _MOST_SECONDS - seconds)
        read, seconds = read + taken, seconds + needed
    folder = files[0][2]  # where the largest module lies, most of the others do
    return Storage(
        folder=folder,
        filesystem=filesystem(folder),
        mib=total / _MIB,
        mib_per_second=read / _MIB / max(seconds, 1e-6),
    )


def filesystem(path: Path, mountinfo: Path = Path("/proc/self/mountinfo")) -> str:
    """Return the type of the file system that a path lies on, such as ext4 or nfs4: proc_pid_mountinfo(5)."""
    real = path.resolve()
    best, kind = -1, "unknown"
    try:
        lines = mountinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # there is no /proc
        return kind
    for line in lines:
        place, _, rest = line.partition(" - ")
        mounted = Path(place.split()[4].encode().decode("unicode_escape"))
        if real.is_relative_to(mounted) and len(mounted.parts) >= best:
            best, kind = len(mounted.parts), rest.split()[0]
    return kind


def _modules(folders: Sequence[Path]) -> Iterator[tuple[Path, int, Path]]:
    """Yield each module, its size, and which of the folders it lies in."""
    for folder in folders:
        for here, _, names in os.walk(folder):
            for name in names:
                if name.endswith(".olean"):
                    file = Path(here, name)
                    yield file, file.stat().st_size, folder


def _read(file: Path, most: int, longest: float) -> tuple[int, float]:
    """Return how many bytes of a file were read from where it is stored, and the seconds that this took."""
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)  # only written pages can be dropped
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        started, read, seconds = time.perf_counter(), 0, 0.0
        while read < most and seconds < longest and (piece := os.read(descriptor, _MIB)):
            read += len(piece)
            seconds = time.perf_counter() - started
        return read, seconds
    finally:
        os.close(descriptor)
