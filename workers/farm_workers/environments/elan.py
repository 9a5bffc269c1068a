"""Environment step, inside: finds the toolchain that elan would choose, without letting elan install it."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

from farm.errors import SettingsError

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
