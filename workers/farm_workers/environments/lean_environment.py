"""Environment step: one Lean with the modules that programs may import, as a value."""

from __future__ import annotations

import functools
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from farm.judging.tiers import Tier
from farm.kinds import Kind
from farm_workers.binding import description
from farm_workers.environments.fit import Fit

#: The name of the environment that the farm brings along.
EMBEDDED = "core"
#: Bump when a change to running programs or comparing modules can change a verdict: every digest contains it.
DIGEST_VERSION = "4"


@dataclass(frozen=True, kw_only=True, slots=True)
class KernelChecker:
    """A command that has the kernel check a compiled module, for the tier kernel.

    In `command`, ``{module}`` stands for the module's name, ``{olean}`` for its file and ``{path}`` for the
    environment's folders, with colons; ``{export}`` stands for a text with the module and all that it rests
    on (`farm_workers.audit.export`), which is written if `reads_export`. Status 0 accepts the module, 1
    rejects it. `visible` are the paths that the command must be able to read besides the environment. `name`
    is for people. `is_ours` marks the farm's own replay, which adds nothing to a seal: the kernel is the
    same.
    """

    name: str
    command: tuple[str, ...]
    visible: tuple[Path, ...]
    is_ours: bool = False
    reads_export: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class LeanEnvironment:
    """One Lean with the modules that programs may import.

    `lean` is the command and its fixed options; a first word ending in ``.so`` is Lean's shared library (see
    `farm_workers.box.launch`). `lean_path` are the folders with compiled modules, `visible` other paths that
    Lean must be able to read. `header` works at the start of any program here: canaries begin with it. The
    images of `headers` are made before a program needs them. `digest` is a SHA-256, in hex, over everything
    that can change a verdict: Lean's version and commit, options, pinned packages, the compiled modules'
    contents; equal on all machines. `toolchain` is for people. All `checkers` must accept a module on the
    tier kernel, and are asked in their order. `audited` is False if the table declares that the audit cannot
    read modules either. `fit` says how its Lean can be forked, None if nobody has tried. `probes` is a
    manifest of lines that must be proved here, "" without one. With `permits_library_sorries` proofs may rest
    on declarations of its modules that contain a sorry.
    """

    name: str
    digest: str
    toolchain: str
    lean: tuple[str, ...]
    lean_path: tuple[str, ...]
    header: str
    headers: tuple[str, ...] = ()
    visible: tuple[str, ...] = ()
    checkers: tuple[KernelChecker, ...] = ()
    audited: bool = True
    fit: Fit | None = None
    probes: str = ""
    permits_library_sorries: bool = False

    def __hash__(self) -> int:
        """Return a hash that takes no time: each check looks up processes by its environment."""
        return hash(self.digest)

    @property
    def kind(self) -> Kind:
        """The proof system."""
        return Kind.LEAN

    @property
    def second(self) -> str | None:
        """The names of its checkers, None where it has none."""
        return " and ".join(each.name for each in self.checkers) or None

    @property
    def tiers(self) -> tuple[Tier, ...]:
        """The tiers that can be had here, the strongest first."""
        if not self.audited:
            return (Tier.LEAN,)
        return tuple(Tier) if self.checkers or self.forks else (Tier.AUDIT, Tier.LEAN)

    @property
    def other_kernels(self) -> tuple[KernelChecker, ...]:
        """The checkers other than the farm's, which check the modules that a seal has accepted."""
        return tuple(each for each in self.checkers if not each.is_ours)

    @property
    def library(self) -> Path | None:
        """Lean's shared library, None where it is at no known place."""
        lean = Path(self.lean[0])
        if lean.suffix == ".so":
            return lean
        found = lean.resolve().parent.parent / "lib" / "lean" / "libleanshared.so"
        return found if found.exists() else None

    @property
    def forks(self) -> bool:
        """Whether its Lean can be forked: it fits here, or the farm's tests have run its release."""
        if self.library is None:
            return False
        return has_run(self.toolchain) if self.fit is None else bool(self.fit.way)

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders and files that Lean reads besides the system's, for a box that shows it nothing else.

        Where one is reached through symbolic links, or has such links in it, the places that they lead to are
        among them.
        """
        named = [own_folder(Path(self.lean[0])), *map(Path, self.lean_path), *map(Path, self.visible)]
        return reached(tuple(named), self.digest)


def module_folders(environment: LeanEnvironment) -> list[Path]:
    """Return the folders in which modules are looked up: the search path, then Lean's own library."""
    own = Path(environment.lean[0]).parent.parent / "lib" / "lean"
    return [*map(Path, environment.lean_path), *[own] * own.is_dir()]


def environment_variables(environment: LeanEnvironment) -> dict[str, str]:
    """Return the variables that Lean needs, which are all that it gets."""
    return {"LEAN_PATH": ":".join(environment.lean_path), "LEAN_NUM_THREADS": "1"}


def has_run(toolchain: str) -> bool:
    """Return whether the farm's tests have run all that it uses of a toolchain's release."""
    found = re.search(r"(\d+)\.(\d+)\.\d+", toolchain)
    return found is not None and description.has_run(int(found[1]), int(found[2]))


def own_folder(lean: Path) -> Path:
    """Return the folder in which Lean finds its own parts, or the program alone if it is in none."""
    if lean.suffix == ".so":
        return lean.parent
    prefix = lean.parent.parent
    return prefix if (prefix / "lib" / "lean").is_dir() else lean


# A toolchain can consist of links: Nix, the modules of a cluster and ``elan toolchain link`` make such ones.
# A box shows only listed paths, so each place on the way of a link is listed, too.


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
