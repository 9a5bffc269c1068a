"""Environment step: the tables of ``farm.toml``, each of which describes one Lean environment."""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from farm.errors import SettingsError
from farm_workers.environments import digest
from farm_workers.environments import fit as fits
from farm_workers.environments.lean_environment import (
    DIGEST_VERSION,
    KernelChecker,
    LeanEnvironment,
    own_folder,
)
from farm_workers.environments.toolchain import Toolchain, find, search_path

_KEYS = frozenset(
    {"lean", "lean_path", "workspace", "options", "header", "headers", "toolchain", "visible"}
    | {"checker", "checkers", "audit", "packages", "probes", "fits", "library_sorries"}
)

#: The values of `library_sorries`: whether proofs may rest on declarations of the library with a sorry.
_LIBRARY_SORRIES = {"refuse": False, "permit": True}
#: The keys that name checkers: one, or a list.
_CHECKERS = ("checker", "checkers")
#: Stands in a checker's command for the file of an export.
_EXPORT = "{export}"


def tables(file: Path, *, required: bool) -> dict[str, object]:
    """Return the tables of an environments file by name; none if the file is missing and not `required`.

    Raises SettingsError when the file cannot be read as a whole.
    """
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        if not required:
            return {}
        raise SettingsError(f"{file}: no such file; FARM_ENVIRONMENTS must name one") from error
    except OSError as error:
        raise SettingsError(
            f"{file}: {error.strerror}; make it readable, or unset FARM_ENVIRONMENTS"
        ) from error
    except ValueError as error:
        raise SettingsError(f"{file}: not TOML: {error}") from error
    tables = content.pop("environments", {})
    if content or not isinstance(tables, dict):
        raise SettingsError(f"{file}: expected tables [environments.NAME] and nothing else")
    return tables


def _with_known_keys(table: object) -> Mapping[str, object]:
    if not isinstance(table, dict):
        raise SettingsError("must be a table")
    if unknown := sorted(table.keys() - _KEYS):
        close = difflib.get_close_matches(unknown[0], sorted(_KEYS), n=1, cutoff=0.0)[0]
        known = ", ".join(sorted(_KEYS))
        raise SettingsError(f"unknown key {unknown[0]!r}; did you mean {close}? Known: {known}")
    return table


@dataclass(frozen=True, kw_only=True, slots=True)
class Parts:
    """The parts of an environment that its digest covers, with their places on this machine."""

    toolchain: Toolchain
    packages: str
    options: tuple[str, ...]
    lean_path: tuple[str, ...]
    checkers: tuple[KernelChecker, ...]
    permits_library_sorries: bool = False

    @property
    def folders(self) -> list[Path]:
        """The folders with compiled modules; the last is Lean's own, where it has one.

        Two builds of one version and commit can differ.
        """
        own = self.toolchain.lean.parent.parent / "lib" / "lean"
        return [*map(Path, self.lean_path), *[own] * own.is_dir()]

    @property
    def programs(self) -> list[Path]:
        """Lean itself, and the plugins and programs that an option or a checker names."""
        named = [Path(word.rpartition("=")[2]) for word in self.options]
        plugins = [each for each in named if each.is_absolute() and each.is_file()]
        words = [word for checker in self.checkers for word in checker.command]
        return [
            self.toolchain.lean,
            *plugins,
            *(file for word in words for path in _named(word) for file in _files(path)),
        ]

    def digest(self, contents: str) -> str:
        """Return the environment's digest, given that of the contents of its files."""
        own = [DIGEST_VERSION, self.toolchain.says, self.packages, *self.options, contents]
        permits = ["\0library_sorries"] if self.permits_library_sorries else []
        return digest.sha256([*own, *self._checker_words, *permits])

    @property
    def _checker_words(self) -> Iterator[str]:
        """The words of all checkers, with one between two that no command can have.

        Where a file lies decides nothing: its contents are among those of the programs.
        """
        for place, checker in enumerate(self.checkers):
            yield from ["\0"] * (place > 0)
            yield from (Path(word).name if _named(word) == [Path(word)] else word for word in checker.command)


def digests(home: Path) -> Path:
    """Return the file with the digests that are remembered by the sizes and times of files."""
    return home / "environments" / "digests.json"


class Table:
    """One table of the environments file; raises SettingsError that names the key and the remedy."""

    def __init__(self, name: str, table: object) -> None:
        self._name, self._table = name, _with_known_keys(table)

    def parts(self) -> Parts:
        """Return all parts, as they are on this machine now."""
        workspace = self._workspace()
        toolchain = self._toolchain(workspace)
        folders = self._folders("lean_path") if workspace is None else search_path(toolchain.lake, workspace)
        return Parts(
            toolchain=toolchain,
            packages=_packages(self._manifest(workspace)),
            options=tuple(self._texts("options")),
            lean_path=tuple(folders),
            checkers=self._checkers(),
            permits_library_sorries=self._permits_library_sorries(),
        )

    def environment(self, home: Path) -> LeanEnvironment:
        """Return the environment that the table describes."""
        headers = self._headers()
        parts = self.parts()
        remembered = digests(home)
        identity = parts.digest(digest.modules(parts.folders, remembered, programs=parts.programs))
        return LeanEnvironment(
            name=self._name,
            digest=identity,
            toolchain=parts.toolchain.name,
            lean=(str(parts.toolchain.lean), *parts.options),
            lean_path=parts.lean_path,
            header=_line(self._text("header") or next(iter(headers), "")),
            headers=headers,
            visible=tuple(self._folders("visible")),
            checkers=parts.checkers,
            audited=self._audited(),
            fit=fits.load(home, identity, self._fits()),
            probes=self._probes(),
            permits_library_sorries=parts.permits_library_sorries,
        )

    def _fits(self) -> str:
        path = self._text("fits") or ""
        if path and not (Path(path).is_absolute() and Path(path).is_dir()):
            raise SettingsError(f"fits: {path} is not the absolute path of a folder; fix or remove it")
        return path

    def _permits_library_sorries(self) -> bool:
        value = self._text("library_sorries") or "refuse"
        if value not in _LIBRARY_SORRIES:
            raise SettingsError(f'library_sorries: must be "refuse" or "permit", not {value!r}')
        return _LIBRARY_SORRIES[value]

    def _probes(self) -> str:
        path = self._text("probes") or ""
        if path and not (Path(path).is_absolute() and Path(path).is_file()):
            raise SettingsError(f"probes: {path} is not the absolute path of a file; fix or remove it")
        return path

    def _text(self, key: str) -> str | None:
        value = self._table.get(key)
        if value is not None and not isinstance(value, str):
            raise SettingsError(f"{key}: must be a string")
        return value

    def _texts(self, key: str) -> list[str]:
        value = self._table.get(key, [])
        if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
            raise SettingsError(f"{key}: must be a list of strings")
        return value

    def _headers(self) -> tuple[str, ...]:
        header = self._text("header")
        headers = self._texts("headers") if "headers" in self._table else [header] if header else []
        return tuple(map(_line, headers))

    def _audited(self) -> bool:
        audited = self._table.get("audit", True)
        if not isinstance(audited, bool):
            raise SettingsError("audit: must be true or false")
        if not audited and (key := next((key for key in _CHECKERS if key in self._table), None)):
            raise SettingsError(f"{key}: only audited modules are replayed; remove {key} or audit")
        return audited

    def _checkers(self) -> tuple[KernelChecker, ...]:
        """Return the checker of the key `checker`, or those of the list `checkers`."""
        if all(key in self._table for key in _CHECKERS):
            raise SettingsError("checkers: there is a checker as well; move it into the list")
        if "checkers" not in self._table:
            words = self._texts("checker")
            return (_checker("checker", words),) if words else ()
        listed = self._table["checkers"]
        if not isinstance(listed, list):
            raise SettingsError('checkers: must be a list, such as [{command = ["/opt/kernel"]}]')
        found = [_listed(f"checkers, number {number}", each) for number, each in enumerate(listed, 1)]
        return tuple(_told_apart(found))

    def _workspace(self) -> str | None:
        workspace = self._text("workspace")
        if workspace is not None and "lean_path" in self._table:
            raise SettingsError(
                "lean_path: a workspace has its own search path; give workspace or lean_path, not both"
            )
        if workspace is not None and not (Path(workspace).is_absolute() and Path(workspace).is_dir()):
            raise SettingsError(
                f"workspace: no workspace at {workspace}; give the absolute path of a folder built with Lake"
            )
        return workspace

    def _manifest(self, workspace: str | None) -> Path | None:
        """Return the manifest of the workspace, or of the one that the modules were taken from."""
        named = self._text("packages")
        if named is None:
            return found if workspace and (found := Path(workspace, "lake-manifest.json")).exists() else None
        if workspace is not None:
            raise SettingsError("packages: a workspace has its own manifest; give workspace or packages")
        if not (Path(named).is_absolute() and Path(named).is_file()):
            raise SettingsError(f"packages: {named} is not the absolute path of a file; fix or remove it")
        return Path(named)

    def _folders(self, key: str) -> list[str]:
        for path in self._texts(key):
            if not Path(path).is_absolute() or not Path(path).exists():
                raise SettingsError(f"{key}: {path} is not an existing absolute path; fix or remove it")
        return self._texts(key)

    def _toolchain(self, workspace: str | None) -> Toolchain:
        try:
            found = find(self._text("lean"), workspace)
        except SettingsError as error:
            raise SettingsError(f"lean: {error}") from error
        registered = self._text("toolchain")
        try:
            known = registered is None or found.is_registered_as(registered)
        except ValueError as error:
            raise SettingsError(
                f'toolchain: {registered!r} is not a version; write it as "4.22.0" or "{found.name}"'
            ) from error
        if not known:
            raise SettingsError(
                f"toolchain: {found.lean} is {found.name}, a different version than registered "
                f"({registered}); install that one, or change toolchain"
            )
        return found


#: The characters of a path inside a word of a command, so that shell scripts are searched as well.
_PATH = re.compile(r"/[^\s'\"`;|&<>()=,:]+")


def _named(word: str) -> list[Path]:
    """Return the files and folders that a word of a command names by absolute paths, also inside a text."""
    if word.startswith("/") and Path(word).exists():
        return [Path(word)]
    return [path for found in _PATH.findall(word) if (path := Path(found)).exists()]


def _files(path: Path) -> list[Path]:
    """Return a file, or the files below a folder; none of a device."""
    if path.is_dir():
        return sorted(each for each in path.rglob("*") if each.is_file())
    return [path] if path.is_file() else []


def _listed(place: str, described: object) -> KernelChecker:
    """Return a checker of the list; raises SettingsError that names its place."""
    if not isinstance(described, dict) or described.keys() - {"command", "reads"}:
        raise SettingsError(f"{place}: must be a table with the keys command and reads")
    words, reads = described.get("command"), described.get("reads", "module")
    if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
        raise SettingsError(f"{place}: command must be a list of strings")
    if reads not in ("module", "export"):
        raise SettingsError(f'{place}: reads must be "module" or "export"')
    if (reads == "export") != any(_EXPORT in word for word in words):
        raise SettingsError(
            f'{place}: a command with {_EXPORT} has reads = "export", and no other has; correct one'
        )
    return replace(_checker(place, words), reads_export=reads == "export")


def _checker(place: str, words: list[str]) -> KernelChecker:
    """Return the checker of a command; raises SettingsError that names its place in the table."""
    _require_program(place, words[0])
    for word in words[1:]:
        if word.startswith("/") and not Path(word).exists():
            raise SettingsError(f"{place}: there is no {word}; correct the path, or create the file")
    named = [path for word in words for path in _named(word)]
    visible = [path for each in named for path in (own_folder(each), each.resolve())]
    return KernelChecker(
        name=Path(words[0]).name, command=tuple(words), visible=tuple(dict.fromkeys(visible))
    )


def _told_apart(checkers: list[KernelChecker]) -> Iterator[KernelChecker]:
    """Yield checkers with their places in the names that several have."""
    names = Counter(each.name for each in checkers)
    for number, each in enumerate(checkers, 1):
        yield each if names[each.name] == 1 else replace(each, name=f"{each.name} (number {number})")


def _require_program(place: str, word: str) -> None:
    """Raise SettingsError if a word is no executable program."""
    path = Path(word)
    if not path.is_absolute():
        problem = "is not the absolute path of a program; fix or remove it"
    elif path.is_dir():
        problem = f"is a folder; name the program in it, such as {path / 'leanchecker'}"
    elif not path.exists():
        problem = "does not exist; install it, or correct the path"
    elif not (path.is_file() and os.access(path, os.X_OK)):
        problem = f"is no program that can be run; run chmod +x {path}, or name another"
    else:
        return
    raise SettingsError(f"{place}: {word} {problem}")


def _line(header: str) -> str:
    return header if header.endswith("\n") or not header else f"{header}\n"


def _packages(manifest: Path | None) -> str:
    """Return the pinned packages of a Lake manifest, "" without one."""
    if manifest is None:
        return ""
    try:
        return digest.packages(manifest.read_text(encoding="utf-8"))
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise SettingsError(
            f"workspace: {manifest} is not a Lake manifest ({error}); create it again with `lake update`"
        ) from error
