"""Environment step, inside: finds the Lean that a table of the environments file names, and its version."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from farm.errors import SettingsError
from farm_workers.environments import elan

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
        if found is not None and elan.is_shim(Path(found)):
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
    if elan.is_shim(Path(found)):
        found = str(elan.chosen(Path(found), Path(folder or "/")))
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
