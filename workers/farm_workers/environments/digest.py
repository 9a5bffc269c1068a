"""Environment step, inside: digests of everything that can change a verdict."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path


def sha256(parts: Iterable[str | bytes]) -> str:
    """Hash the parts so that no two lists of parts look alike; in hex."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


def packages(manifest: str) -> str:
    """Return the pins of ``lake-manifest.json`` in canonical form: name, source and revision of each package.

    Other fields of Lake's (its own version, folders, inherited settings) cannot change a verdict. Raises
    ValueError when the text is no such manifest.
    """
    listed = json.loads(manifest)["packages"]
    pinned = [
        {
            "name": str(package["name"]),
            "source": package.get("url") or package.get("type"),
            "rev": package.get("rev"),
        }
        for package in listed
    ]
    return json.dumps(sorted(pinned, key=lambda package: package["name"]), sort_keys=True)


#: The files that Lean reads of an imported module: its data in up to three parts, and its code, which runs if
#: programs extend Lean. A module may also be compiled to a library. ``.ilean`` is for editors only, and
#: Lake's traces for Lake.
_DECISIVE = (".olean", ".olean.server", ".olean.private", ".ir", ".ir.sig", ".so", ".dylib", ".dll")


def modules(folders: Sequence[Path], cache: Path, *, programs: Sequence[Path] = ()) -> str:
    """Return a digest of all files that Lean reads of compiled modules, and of some programs and libraries.

    The files are read once per state. The result is cached in `cache` under the files' names, sizes and
    times, because reading all of Mathlib takes seconds. Two processes at once lose one entry at worst.
    """
    files = named(folders, programs)
    states = ((str(file), file.stat()) for file in files.values())
    key = sha256(f"{name} {state.st_size} {state.st_mtime_ns}" for name, state in states)
    known = _remembered(cache)
    if key not in known:
        known[key] = of_listed({name: of_file(file) for name, file in files.items()})
        _remember(cache, known)
    return known[key]


def forget(cache: Path) -> None:
    """Drop all cached digests: the next one is computed from the bytes."""
    cache.unlink(missing_ok=True)


def named(folders: Sequence[Path], programs: Sequence[Path]) -> dict[str, Path]:
    """Return the files that such a digest covers, in its order, by machine-independent names."""
    files = {
        f"{place} {file.relative_to(folder)}": file
        for place, folder in enumerate(folders)
        for file in sorted(_compiled(folder))
    }
    return files | {f"program {place}": program for place, program in enumerate(programs)}


def of_listed(hashes: Mapping[str, str]) -> str:
    """Return the digest of files by their names and SHA-256, as given by `named` and `of_file`."""
    return sha256(part for pair in hashes.items() for part in pair)


def of_file(file: Path) -> str:
    """Return the SHA-256 of a file, in hex."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _compiled(folder: Path) -> Iterator[Path]:
    """Yield the files that Lean reads of the modules below a folder, through symbolic links too."""
    walked = set()
    for here, below, names in os.walk(folder, followlinks=True):
        walked.add(os.path.realpath(here))
        # In order, so that of two paths to a folder every machine takes the same.
        below[:] = [name for name in sorted(below) if os.path.realpath(f"{here}/{name}") not in walked]
        yield from (Path(here, name) for name in names if name.endswith(_DECISIVE))


def _remembered(cache: Path) -> dict[str, str]:
    try:
        known = json.loads(cache.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # not there yet, or damaged: it only saves time
        return {}
    return known if isinstance(known, dict) else {}


def _remember(cache: Path, known: dict[str, str]) -> None:
    with contextlib.suppress(OSError):  # no room, say: it only saves time
        cache.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache.parent, prefix="digests-") as folder:
            new = Path(folder) / cache.name
            new.write_text(json.dumps(known), encoding="utf-8")
            new.replace(cache)
