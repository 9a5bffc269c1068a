"""Environment step, inside: finds the places that symbolic links in some folders lead to.

A toolchain can consist of links: Nix, the modules of a cluster and ``elan toolchain link`` make such ones. A
box shows only listed paths, so each place on the way of a link is listed, too.
"""

from __future__ import annotations

import functools
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

#: A folder with more such files is shown as a whole: a tree of links has one for each module.
_MOST_FILES = 32
#: The system's own places, which every box has.
_SYSTEM = tuple(map(Path, ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/proc", "/dev", "/sys")))
#: A longer chain of links leads nowhere.
_MOST_HOPS = 40


@functools.lru_cache(maxsize=64)
def reached(folders: tuple[Path, ...], _digest: str) -> tuple[Path, ...]:
    """Return the folders and files, and the places that links in them lead to; remembered by a digest.

    The walk through a toolchain takes some 10 ms, and is done once.
    """
    shown = list(dict.fromkeys(place for each in folders for place in (each, each.resolve())))
    left = list(shown)
    files: list[Path] = []
    while left:
        for place in _outside(left.pop(), shown):
            if place.is_dir():
                shown.append(place)
                left.append(place)
            else:
                files.append(place)
    return (*shown, *_together(dict.fromkeys(files), shown))


def _outside(folder: Path, shown: Sequence[Path]) -> Iterator[Path]:
    """Yield the places that links below a folder lead to and that neither `shown` nor the system has."""
    found: set[Path] = set()
    for here, below, names in os.walk(folder):
        for name in (*below, *names):
            for place in _hops(Path(here, name)):
                known = (*shown, *_SYSTEM, *found)
                if place not in found and not any(map(place.is_relative_to, known)) and place.exists():
                    found.add(place)
                    yield place


def _hops(path: Path) -> Iterator[Path]:
    """Yield each place on the way of a link, and its real path; nothing for a path that is no link."""
    for _ in range(_MOST_HOPS):
        if not path.is_symlink():
            return
        path = Path(os.path.normpath(path.parent.resolve() / path.readlink()))
        yield path
        yield Path(os.path.realpath(path))


def _together(files: dict[Path, None], shown: Sequence[Path]) -> Iterator[Path]:
    """Yield the files outside the shown folders, or the folder of files that share it in large numbers."""
    left = [file for file in files if not any(map(file.is_relative_to, shown))]
    number = Counter(file.parent for file in left)
    many = {folder for folder, times in number.items() if times > _MOST_FILES}
    yield from sorted(many)
    yield from (file for file in left if file.parent not in many)
