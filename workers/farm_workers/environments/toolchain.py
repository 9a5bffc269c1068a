"""Environment step, inside: finds the Lean that a table of the environments file names, and its version."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from farm.errors import SettingsError

#: Seconds that Lean and Lake get to answer: a Lake workspace may have to be elaborated first.
_ANSWER_SECONDS = 120.0
#: Examining an environment fetches nothing: git refuses all transports, and a proxy that is not there answers
#: other downloads, such as those of Lake and of an elan that was not recognized.
_NOWHERE = "http://127.0.0.1:9"
_OFFLINE = {
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_TERMINAL_PROMPT": "0",
    **{f"{name}_proxy": _NOWHERE for name in ("http", "https", "all")},
    **{f"{name}_PROXY": _NOWHERE for name in ("HTTP", "HTTPS", "ALL")},
    "no_proxy": "",
    "NO_PROXY": "",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Toolchain:
    """One Lean: its program, and its ``lean --version``: version, platform, commit, kind of build."""

    lean: Path
    says: str

    @property
    def name(self) -> str:
        """The version for people, such as ``Lean 4.35.0 (eb6cafb7290e)``."""
        return short_version(self.says)

    @property
    def lake(self) -> str:
        """The Lake of the same toolchain, or the one on PATH."""
        beside = self.lean.with_name("lake")
        if beside.is_file():
            return str(beside)
        found = shutil.which("lake")
        if found is not None and is_shim(Path(found)):
            raise SettingsError(f"{self.lean.parent} has no lake; name the lean of a complete toolchain")
        return "lake"

    def is_registered_as(self, words: str) -> bool:
        """Whether this is the version that `words` name.

        They are a version, the content of a ``lean-toolchain`` file, or a version with the beginning of its
        commit: ``4.35.0``, ``leanprover/lean4:v4.35.0``, ``Lean 4.35.0 (eb6cafb7)``. Raises ValueError for
        others.
        """
        asked = _REGISTERED.fullmatch(words)
        if asked is None:
            raise ValueError(words)
        found = _version(self.says)
        return asked[1] == found[1] and (found[2] or "").startswith(asked[2] or "")


_REGISTERED = re.compile(r"(?:Lean |leanprover/lean4:)?v?([0-9][^\s(]*)(?: \(([0-9a-f]+)\))?")


def short_version(said: str) -> str:
    """Turn the output of ``lean --version`` into ``Lean 4.35.0 (eb6cafb7290e)``; raises SettingsError."""
    found = _version(said)
    return f"Lean {found[1]}" + (f" ({found[2][:12]})" if found[2] else "")


def _version(said: str) -> re.Match[str]:
    found = re.search(r"version ([^,\s)]+)(?:.*commit ([0-9a-f]{12,}))?", said)
    if found is None:
        raise SettingsError(f"not a Lean executable: `--version` printed {said[:200]!r}; set `lean` to one")
    return found


def find(given: str | None, folder: str | None) -> Toolchain:
    """Find the Lean that is called `given`, or the one on PATH, as resolved in a folder.

    Elan's programs on PATH choose another toolchain in every folder, so the real program is looked up and
    used from then on. Raises SettingsError with the problem and the remedy.
    """
    found = shutil.which(given or "lean")
    if found is None:
        raise SettingsError(_not_there(given))
    if is_shim(Path(found)):
        found = str(chosen(Path(found), Path(folder or "/")))
    prefix = ask([found, "--print-prefix"], folder).strip()
    real = Path(prefix, "bin", "lean")
    lean = real if real.is_file() else Path(found).absolute()
    says = ask([str(lean), "--version"], folder)
    _version(says)
    return Toolchain(lean=lean, says=says)


def _not_there(given: str | None) -> str:
    if given is None:
        return "no program 'lean' on PATH; install a toolchain, or set `lean` to the path of its bin/lean"
    if Path(given).is_dir():
        return f"{given} is a folder; set `lean` to the executable in it, such as {given}/bin/lean"
    if Path(given).exists():
        return f"{given} is not executable; run chmod +x on it, or set `lean` to another"
    return f"no program {given!r}; install that toolchain, or set `lean` to the path of a bin/lean"


def search_path(lake: str, workspace: str) -> list[str]:
    """Return the folders in which a Lake workspace finds compiled modules, as printed by ``lake env``.

    Lake lists a folder for every package, even if it has no compiled module: missing folders are left out, as
    Lean does. Raises SettingsError when no folder exists.
    """
    said = ask([lake, "env", "printenv", "LEAN_PATH"], workspace)
    named = [str(Path(workspace, entry)) for entry in said.strip().rpartition("\n")[2].split(":") if entry]
    there = [folder for folder in named if Path(folder).is_dir()]
    if not there:
        raise SettingsError(
            f"workspace: nothing is compiled in {workspace}; run `lake build` in it, "
            "with Mathlib after `lake exe cache get`"
        )
    return there


def ask(command: list[str], folder: str | None) -> str:
    """Run a program of the toolchain in a folder and return its output; raises SettingsError."""
    try:
        asked = subprocess.run(
            command,
            cwd=folder,
            env=os.environ | _OFFLINE,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_ANSWER_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        said = _said(error)
        raise SettingsError(
            f"`{' '.join(command)}` failed: {said}; run it in {folder or 'a shell'} and fix its error"
        ) from error
    return asked.stdout


def _said(error: OSError | subprocess.SubprocessError) -> str:
    """Return the last line that a program printed before it failed, or the error itself."""
    printed = getattr(error, "stderr", None) or ""
    printed = printed.decode(errors="replace") if isinstance(printed, bytes) else printed
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("error")]
    return (errors or lines or [str(error)])[-1].rstrip(".:")


_ORIGIN = "leanprover/lean4"
_NAME = re.compile(r"(?:([\w-]+/[\w-]+):)?([\w.-]+)", re.ASCII)
#: Names of releases that change: only the network knows their versions.
_CHANNELS = ("stable", "beta", "nightly")
#: elan has some 10 MB: files are compared as a whole only where their sizes are equal.
_BLOCK = 1 << 20


def is_shim(program: Path) -> bool:
    """Whether a program on PATH is elan under another name: a link to elan, or a copy beside it."""
    real = program.resolve()
    if real.name in ("elan", "elan-init"):
        return True
    for folder in dict.fromkeys((program.parent, real.parent, home() / "bin")):
        if (elan := folder / "elan").is_file() and _is_same(elan, real):
            return True
    return False


def _is_same(one: Path, other: Path) -> bool:
    if one.samefile(other):
        return True
    if one.stat().st_size != other.stat().st_size:
        return False
    with one.open("rb") as left, other.open("rb") as right:
        while block := left.read(_BLOCK):
            if block != right.read(_BLOCK):
                return False
    return True


def home(environ: Mapping[str, str] = os.environ) -> Path:
    """Return elan's folder."""
    return Path(environ.get("ELAN_HOME") or Path.home() / ".elan")


def chosen(shim: Path, folder: Path, environ: Mapping[str, str] = os.environ) -> Path:
    """Return the program that elan would run for `shim` in a folder."""
    name, source = _named(folder.resolve(), environ)
    toolchain, place = _installed(name, home(environ) / "toolchains")
    program = place / "bin" / shim.name
    if not program.is_file():
        release = toolchain.rpartition(":")[2]
        raise SettingsError(
            f"toolchain {release} is not installed ({source} names it); "
            f"run elan toolchain install {toolchain}"
        )
    return program


def _named(folder: Path, environ: Mapping[str, str]) -> tuple[str, str]:
    """Return the name of a folder's toolchain, and the file that has the name."""
    if name := environ.get("ELAN_TOOLCHAIN"):
        return name, "ELAN_TOOLCHAIN"
    file = home(environ) / "settings.toml"
    settings = _settings(file)
    named = settings.get("overrides")
    overrides: dict[str, object] = named if isinstance(named, dict) else {}
    for place in (folder, *folder.parents):
        if isinstance(own := overrides.get(str(place)), str):
            return own, str(file)
        if name := _first_line(place / "lean-toolchain"):
            return name, str(place / "lean-toolchain")
    if isinstance(usual := settings.get("default_toolchain"), str):
        return usual, str(file)
    raise SettingsError(
        f"elan has no toolchain for {folder}: there is no lean-toolchain in it and elan has no default; "
        "write one there, or set `lean` to the path of a bin/lean"
    )


def _settings(file: Path) -> dict[str, object]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # elan writes it when it first needs it
        return {}


def _first_line(file: Path) -> str:
    try:
        return (file.read_text(encoding="utf-8").splitlines() or [""])[0].strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _installed(name: str, toolchains: Path) -> tuple[str, Path]:
    """Return elan's full name of a toolchain, and the folder in which it is, or would be."""
    found = _NAME.fullmatch(name)
    if found is None:
        raise SettingsError(f"{name[:100]!r} is no toolchain's name; write one such as {_ORIGIN}:v4.22.0")
    origin, release = found[1] or _ORIGIN, found[2]
    if (linked := toolchains / release).is_symlink():
        return release, linked
    if release.startswith("nightly") and not origin.endswith("-nightly"):
        origin += "-nightly"
    if release in _CHANNELS:
        raise SettingsError(
            f"toolchain {release} changes, and only the network knows its version; write a version such as "
            f"{_ORIGIN}:v4.22.0 into lean-toolchain, or set `lean` to the path of a bin/lean"
        )
    release = f"v{release}" if release[0].isdigit() else release
    full = f"{origin}:{release}"
    return full, toolchains / full.replace("/", "--").replace(":", "---")
