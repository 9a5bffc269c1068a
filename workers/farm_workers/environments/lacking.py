"""Environment step, lacking modules: says why a header cannot be imported, and what its author can do.

No verdict depends on this: Lean alone decides whether it can import a header.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from pathlib import Path

from farm.lean_text.header import imported
from farm_workers.environments.lean_environment import LeanEnvironment, module_folders

#: The most modules of a header that are looked up, and that a sentence names; the most of a folder's entries
#: that are compared with a misspelt name.
_MOST_LOOKED_UP, _MOST_NAMED, _MOST_ENTRIES = 1000, 3, 20_000
_COMPILED = ".olean"


def lacking(text: str, environment: LeanEnvironment) -> list[str]:
    """Return the modules that a text imports and an environment does not have, in the text's order."""
    folders = module_folders(environment)
    return [each for each in imported(text)[:_MOST_LOOKED_UP] if not _has(folders, each)]


def remedy(text: str, environment: LeanEnvironment, others: Iterable[LeanEnvironment]) -> str:
    """Return a sentence about the modules that a text imports and an environment lacks, "" if it has all.

    It names the environments among `others` that have them all, or else the likeliest correction.
    """
    missing = lacking(text, environment)
    if not missing:
        return ""
    more = " and others" if len(missing) > _MOST_NAMED else ""
    named = f"{', '.join(missing[:_MOST_NAMED])}{more}"
    has = [each.name for each in others if each.name != environment.name and not lacking(text, each)]
    plural = "s" * (len(missing) > 1)
    return f"The environment {environment.name!r} has no module{plural} {named}; " + (
        _elsewhere(sorted(has)) if has else _correction(missing[0], environment)
    )


def damaged(environment: LeanEnvironment) -> str:
    """Return a sentence about a module that is there and that Lean cannot load."""
    return (
        f"The environment {environment.name!r} has every module that the header names, but Lean cannot load "
        "one of them, or one below them: list changed files with "
        f"farm environments verify {environment.name}, and build that module again."
    )


def _elsewhere(names: list[str]) -> str:
    several = " and ".join(map(repr, names[:_MOST_NAMED]))
    verb = "has" if len(names) == 1 else "have"
    field = f'"environment": "{names[0]}" in the line or request'
    return f"{several} {verb} all that the header imports: use --environment {names[0]}, or {field}."


def _correction(module: str, environment: LeanEnvironment) -> str:
    if module == "Init":
        begins = " and ".join(f"`{line}`" for line in environment.header.splitlines() if line.strip())
        return f"a text without `prelude` imports Init: begin it with {begins}."
    if found := _similar(module, module_folders(environment)):
        return f"it has {found}: correct the import."
    return "correct the import, or add an environment that has it: farm environments add --help"


def _similar(module: str, folders: list[Path]) -> str:
    """Return a module with nearly the same name, or one below it; "" if there is none."""
    parts = module.split(".")
    for depth in range(len(parts), -1, -1):
        names = sorted(set(_names(folders, parts[:depth])))
        if depth == len(parts):
            alike = [each for each in ("Basic", "Defs") if each in names] or names
        else:
            alike = get_close_matches(parts[depth], names, n=1)
        if alike:
            return ".".join([*parts[:depth], alike[0]])
        if names:
            return ""
    return ""


def _names(folders: list[Path], parts: list[str]) -> Iterator[str]:
    """Yield the last parts of the names of modules in a folder of each search path."""
    for folder in folders:
        place = _place(folder, parts)
        with contextlib.suppress(OSError, ValueError):
            for _, each in zip(range(_MOST_ENTRIES), place.iterdir() if place else (), strict=False):
                if each.suffix == _COMPILED:
                    yield each.stem


def _has(folders: list[Path], module: str) -> bool:
    *above, last = module.split(".")
    for folder in folders:
        place = _place(folder, [*above, f"{last.strip('«»')}{_COMPILED}"])
        with contextlib.suppress(OSError, ValueError):  # a name that no file can have
            if place is not None and place.exists():
                return True
    return False


def _place(folder: Path, parts: list[str]) -> Path | None:
    """Return the place of a module's file, None for a name that leads out of the folder."""
    plain = [each.strip("«»") for each in parts]
    return None if any("/" in each or each in ("", "..") for each in plain) else folder.joinpath(*plain)
