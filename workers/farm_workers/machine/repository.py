"""Repository step: finds and reads the Lean files of a folder that others may have made."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from farm.datasets.theorems import SourceFile, module_of
from farm.errors import UsageError

#: The folder of Lake's builds and downloads, and the file that describes a workspace.
_LAKE, _LAKEFILE = ".lake", "lakefile.lean"
#: No Lean file comes near this size.
_MOST_MIB = 64


class NoSource(Exception):
    """A file cannot be read as a text: has the reason."""


def root_of(path: Path) -> Path:
    """Return the folder below which files have their names."""
    return path.parent if path.is_file() else path


def sources(path: Path, modules: str) -> Iterator[tuple[str, Path]]:
    """Yield the name and the place of each Lean file of a path whose module fits a pattern, in order.

    Links that leave the folder are passed over: a repository of others must not name files outside of it.
    Raises UsageError for a path without any file.
    """
    if not path.exists():
        raise UsageError(f"{path}: there is no such file or folder; give a Lean file, or a folder of them")
    root, found = root_of(path), False
    for file in [path] if path.is_file() else sorted(path.rglob("*.lean")):
        name = PurePosixPath(file.relative_to(root))
        is_own = path.is_file() or (_is_named(name) and _is_inside(file, root))
        if is_own and fnmatchcase(module_of(str(name)), modules):
            found = True
            yield str(name), file
    if not found:
        raise UsageError(f"{path}: there is no Lean file whose module is {modules!r}")


def _is_named(name: PurePosixPath) -> bool:
    """Return whether a file is one of the folder's own, by its name."""
    return name.name != _LAKEFILE and not any(part == _LAKE or part.startswith(".") for part in name.parts)


def _is_inside(file: Path, root: Path) -> bool:
    """Return whether a file is in a folder, also after its links are followed."""
    try:
        return file.resolve().is_relative_to(root.resolve())
    except (OSError, RuntimeError):  # links that lead to each other
        return False


def source_of(name: str, file: Path) -> SourceFile:
    """Return a Lean file. Raises NoSource for one that cannot be read as text."""
    try:
        if not file.is_file():  # a pipe would never end
            raise NoSource("it is no regular file")
        if file.stat().st_size > _MOST_MIB << 20:
            raise NoSource(f"it is larger than {_MOST_MIB} MiB")
        return SourceFile.of(PurePosixPath(name), file.read_bytes().decode())
    except OSError as error:
        raise NoSource(f"it cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise NoSource(f"byte {error.start} is not UTF-8; save the file as UTF-8") from error
