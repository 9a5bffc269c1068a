"""Box step: gives a command of another user files behind closed folders, as descriptors instead of paths.

Other users cannot enter a folder such as ``/root``, but a process with a descriptor of a file or folder below
it can read that: ``/proc/self/fd/9/file`` needs no right to any folder above number 9.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path


def is_open(path: Path) -> bool:
    """Whether all users may read a file or folder, and enter the folders above it."""
    return bool(path.stat().st_mode & stat.S_IROTH) and is_reached(path)


def is_reached(path: Path) -> bool:
    """Whether all users may enter the folders above a file or folder."""
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in path.resolve().parents)


def closed_folder(path: Path, *, above: bool) -> Path | None:
    """Return the first folder on a path that other users may not enter, None if they may enter all.

    With `above` the folders above it count as well: without namespaces a command passes through them.
    """
    real = path.resolve()
    places = [*reversed(real.parents), real] if above else [real]
    folders = [place for place in places if place.is_dir()]
    return next((each for each in folders if not each.stat().st_mode & stat.S_IXOTH), None)


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadablePaths:
    """Descriptors by path."""

    descriptors: Mapping[str, int]

    def word(self, text: str) -> str:
        """Return a word of a command, or a variable's value, with each path replaced by its descriptor."""
        for path, descriptor in self.descriptors.items():
            text = re.sub(rf"{re.escape(path)}(?![\w.-])", f"/proc/self/fd/{descriptor}", text)
        return text


NO_PATHS = ReadablePaths(descriptors={})


@contextlib.contextmanager
def readable_paths(paths: Iterable[Path]) -> Iterator[ReadablePaths]:
    """Open descriptors of the paths, the longest path first; they are closed at the end of the block."""
    with contextlib.ExitStack() as files:
        descriptors = {}
        for path in sorted({str(path) for path in paths}, key=len, reverse=True):
            descriptors[path] = os.open(path, os.O_PATH | os.O_CLOEXEC)
            files.callback(os.close, descriptors[path])
        yield ReadablePaths(descriptors=descriptors)
